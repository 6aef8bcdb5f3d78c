"""Where it breaks: every metric of every variant along every axis, and where it first leaves the floor. Touches nothing."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from qgate.judge.arms import FLOOR, Pair, Scope, slice_of
from qgate.judge.compare import MEAN_TOKEN_METRICS, Case
from qgate.judge.criteria import ROW_METRICS, RowMetric, Support, came
from qgate.judge.sample import Floats, Sample, from_pairs, from_tokens, interval
from qgate.judge.tokens import TokenTable
from qgate.schemas.evidence import Row
from qgate.schemas.verdict import Breakdown

ROW_METRIC_NAMES = (
    "score_loss", "defect_rate", "truncation_increase", "length_drift", "flip_rate", "output_disagreement",
    "garble_nll_increase",
)  # fmt: skip
TOKEN_METRIC_NAMES = ("kl_mean", "top1_disagreement", "probability_drop", "perplexity_increase")
ROW_AXES = ("evalset", "kind", "language", "difficulty", "temperature", "profile")
POSITIONS = (0, 16, 64, 128, 256, 512, 1024, 2048, 4096)
PROMPT_LENGTHS = (0, 50, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
FEWEST_ITEMS = 5
"""A label with fewer items is shown, but nothing departs from the floor there."""


@dataclass(frozen=True)
class _Axis:
    """A way to part rows: the label of a row, and the labels' order."""

    name: str
    label: Callable[[Row], str | None]
    order: Callable[[str], tuple[float, str]]


@dataclass(frozen=True)
class _Cell:
    """One label of one axis: levels of the three arms, and by how much the variant leaves the floor for sure."""

    label: str
    baseline: float | None
    variant: float | None
    floor: float | None
    num: int
    departs: bool


def break_down(case: Case, variants: Sequence[str]) -> tuple[Breakdown, ...]:
    """Every metric by axis for each variant that answered; an axis with a single label says nothing and is left out."""
    axes = _axes(case.arms.reference.values())
    made: list[Breakdown] = []
    floor = case.arms.pairs(FLOOR)
    for variant in sorted(variants):
        if not case.arms.has(variant):
            continue
        pairs = case.arms.pairs(variant)
        for axis in axes:
            made += _by_axis(case, variant, axis, _split(pairs, axis), _split(floor, axis))
        made += _by_position(case, variant)
    return tuple(made)


def _axes(rows: Collection[Row]) -> list[_Axis]:
    keys = sorted({key for row in rows for key in row.slices} - set(ROW_AXES))
    own = [_Axis(key, lambda row, key=key: slice_of(row, key), _natural) for key in (*ROW_AXES, *keys)]  # type: ignore[misc]
    return [_Axis("prompt length", _prompt_length, _natural), *_crossed(rows), *own]


def _crossed(rows: Collection[Row]) -> list[_Axis]:
    """Prompt length × temperature, where both vary: a fault of long prompts that only sampling shows is in no margin."""
    if min(len({_prompt_length(row) for row in rows}), len({row.temperature for row in rows})) < 2:
        return []
    return [_Axis("prompt length × temperature", _length_and_temperature, _by_length_first)]


def _length_and_temperature(row: Row) -> str | None:
    length = _prompt_length(row)
    return None if length is None else f"{length} × {row.temperature:g}"


def _by_length_first(label: str) -> tuple[float, str]:
    length, _, temperature = label.partition(" × ")
    return (_natural(length)[0], f"{float(temperature):08.4f}")


def _prompt_length(row: Row) -> str | None:
    return None if row.prompt_tokens is None else _bucket(row.prompt_tokens, PROMPT_LENGTHS)


def _bucket(value: int, edges: Sequence[int]) -> str:
    for low, high in pairwise(edges):
        if low <= value < high:
            return f"{low}–{high - 1}"
    return f"{edges[-1]}+"


def _natural(label: str) -> tuple[float, str]:
    """Labels that begin with a number in the order of it (1k after 512), others by name after them."""
    digits = label.rstrip("k+").partition("–")[0]
    try:
        number = float(digits)
    except ValueError:
        return (np.inf, label)
    return (number * 1024 if label.endswith("k") else number, label)


def _split(pairs: Sequence[Pair], axis: _Axis) -> dict[str, list[Pair]]:
    parts: dict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        label = axis.label(pair.reference or pair.row)
        if label is not None:
            parts[label].append(pair)
    return parts


def _by_axis(
    case: Case, variant: str, axis: _Axis, parts: Mapping[str, list[Pair]], floors: Mapping[str, list[Pair]]
) -> list[Breakdown]:
    labels = sorted(parts, key=axis.order)
    if len(labels) < 2:
        return []
    made = []
    for name in ROW_METRIC_NAMES:
        metric = ROW_METRICS[name]
        cells = [_row_cell(case, metric, label, parts[label], floors.get(label, []), len(labels)) for label in labels]
        if any(cell.num for cell in cells):
            made.append(_breakdown(variant, name, axis.name, cells))
    return made


def _row_cell(
    case: Case, metric: RowMetric, label: str, pairs: list[Pair], floor: list[Pair], num_labels: int
) -> _Cell:
    sample, noise = from_pairs(pairs, metric), from_pairs(floor, metric)
    level = _levels(metric)
    return _Cell(
        label=label,
        baseline=sample.baseline_value if level else (0.0 if sample.num_items else None),
        variant=sample.other_value if level else _value(sample),
        floor=noise.other_value if level else _value(noise),
        num=sample.num_items,
        departs=_departs(case, metric, pairs, floor, num_labels),
    )


def _levels(metric: RowMetric) -> bool:
    """Whether a breakdown shows the arms' own levels (scores, rates) rather than harms against the baseline."""
    return metric not in {ROW_METRICS[name] for name in ("flip_rate", "output_disagreement", "length_drift")}


def _value(sample: Sample) -> float | None:
    return sample.value if sample.num_items else None


def _departs(case: Case, metric: RowMetric, pairs: list[Pair], floor: list[Pair], num_labels: int) -> bool:
    """Whether the variant's harm is more than the A/A arm's, request by request, corrected for the number of labels."""
    noise: dict[tuple[str, str, str, int], list[float]] = defaultdict(list)
    for pair in floor:
        if pair.reference is not None and pair.other is not None and came(pair.other):
            noise[pair.other.pair].append(metric.harm(pair.reference, pair.other))
    means = {key: float(np.mean(values)) for key, values in noise.items()}
    width = metric.support.greatest - max(metric.support.least, -1.0)
    over = RowMetric(
        harm=lambda reference, other: metric.harm(reference, other) - means.get(reference.pair, 0.0),
        level=metric.level,
        support=metric.support if metric.support.open else Support(-width, width),
    )
    sample = from_pairs(pairs, over)
    if sample.num_items < FEWEST_ITEMS:
        return False
    return interval(sample, case.alpha / num_labels, case.draws).low > 0


def _by_position(case: Case, variant: str) -> list[Breakdown]:
    """Token metrics by position in the answer."""
    tokens, noise = case.tokens.get(variant), case.tokens.get(FLOOR)
    if tokens is None:
        return []
    made = []
    for name in TOKEN_METRIC_NAMES:
        harms, support = MEAN_TOKEN_METRICS[name]
        cells = _token_cells(case, harms, support, tokens, noise)
        made.append(_breakdown(variant, name, "output position", cells))
    return made


def _token_cells(
    case: Case,
    harms: Callable[[TokenTable], Floats],
    support: Support,
    tokens: TokenTable,
    noise: TokenTable | None,
) -> list[_Cell]:
    edges = [*POSITIONS, int(np.iinfo(np.int64).max)]
    used = [(low, high) for low, high in pairwise(edges) if ((tokens.position >= low) & (tokens.position < high)).any()]
    cells = []
    for low, high in used:
        sample = _at_positions(tokens, harms, support, low, high)
        floor = None if noise is None else _at_positions(noise, harms, support, low, high)
        floor_value = None if floor is None else _value(floor)
        departs = sample.num_items >= FEWEST_ITEMS and (
            interval(sample, case.alpha / len(used), case.draws).low > (floor_value or 0.0)
        )
        label = f"{low}+" if high == edges[-1] else f"{low}–{high - 1}"
        cells.append(_Cell(label, 0.0, _value(sample), floor_value, sample.num_items, departs))
    return cells


def _at_positions(
    tokens: TokenTable, harms: Callable[[TokenTable], Floats], support: Support, low: int, high: int
) -> Sample:
    inside = (tokens.position >= low) & (tokens.position < high)
    return from_tokens(tokens, np.where(inside, harms(tokens), np.nan), Scope(), support)


def _breakdown(variant: str, metric: str, axis: str, cells: Sequence[_Cell]) -> Breakdown:
    return Breakdown(
        variant=variant,
        metric=metric,
        axis=axis,
        labels=tuple(cell.label for cell in cells),
        baseline=tuple(cell.baseline for cell in cells),
        variant_values=tuple(cell.variant for cell in cells),
        floor=tuple(cell.floor for cell in cells),
        num=tuple(cell.num for cell in cells),
        first_departure=next((cell.label for cell in cells if cell.departs), None),
    )
