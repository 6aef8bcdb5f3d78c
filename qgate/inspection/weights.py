"""Dequantized weights beside the baseline's: how far they are apart, and whether that is what their width costs. Pure.

Relative error is ||W - Q||_F / ||W||_F. Quantizers may move scales between layers that cancel out (AWQ, arXiv 2306.00978;
SmoothQuant, 2211.10438): a norm's weights are divided by s and the next layer's columns multiplied, or a layer's rows
and the next one's columns. So weights that a norm feeds are compared as their product with the norm's, on both sides,
and scales between two layers are moved back where they are found to cancel.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median_low

import numpy as np
from numpy.typing import NDArray

from qgate.inspection.codes import ERROR, NOTE, WARNING, Code
from qgate.inspection.layers import IN_LAYER, Layer
from qgate.inspection.scales import WEIGHTS_NOT_FINITE
from qgate.inspection.scheme import Scheme
from qgate.schemas.inspection import Finding, LayerError

WEIGHT_ERROR = Code(
    "weight-error",
    ERROR,
    breaks="these weights are not a quantization of the baseline's",
    fix="quantize anew with another tool or version, and compare again",
)
WEIGHT_ERROR_HIGH = Code(
    "weight-error-high",
    WARNING,
    breaks="more is lost than a quantization to this width loses",
    fix="quantize with more bits, smaller groups or more calibration",
)
WEIGHT_OUTLIER = Code(
    "weight-outlier",
    WARNING,
    breaks="these layers lost far more than the others of their kind",
    fix="look at their calibration, or add them to the ignored layers",
)
SCALE_DRIFT = Code(
    "scale-drift",
    WARNING,
    breaks="the scales are not those of these weights: whole rows come out too large or too small",
    fix="take the scales from the run that made the checkpoint, or quantize the model anew",
)
GROUPS_MIXED = Code(
    "groups-mixed",
    WARNING,
    breaks="columns take the scales of other groups than their own",
    fix="take scales and g_idx from the run that made the checkpoint, or quantize the model anew",
)
PLAIN_TENSOR_DIFFERS = Code(
    "plain-tensor-differs",
    WARNING,
    breaks="tensors that were not quantized are other ones than the baseline's; or the norm before them was scaled, and "
    "they were not (llm-compressor 0.14's AWQ leaves the routers of Mixtral, gpt-oss, DeepSeek and Qwen3-Next so)",
    fix="compare with the baseline that it was made from",
)
WEIGHTS_NOT_COMPARED = Code(
    "weights-not-compared",
    NOTE,
    breaks="nothing: the weights were rotated or are in a format that is not read here",
    fix="rely on the run's token metrics",
)

HEAD_UNTIED = Code(
    "head-untied",
    WARNING,
    breaks="engines compute the output from the embedding, as the config ties them: what this output layer holds is lost",
    fix="set tie_word_embeddings to false, or remove lm_head.weight",
)

CODES = (
    WEIGHT_ERROR,
    WEIGHT_ERROR_HIGH,
    WEIGHT_OUTLIER,
    SCALE_DRIFT,
    GROUPS_MIXED,
    PLAIN_TENSOR_DIFFERS,
    WEIGHTS_NOT_COMPARED,
    HEAD_UNTIED,
)
Floats = NDArray[np.float32]
NUM_WORST = 3
LIMITS = {8: (0.06, 0.3), 4: (0.5, 0.8), 3: (0.6, 1.0), 2: (1.0, 2.0)}
"""Bits to the errors that are high and that no quantization makes. Rounding normal weights to 4 bits in groups of 128
costs 0.11, GPTQ's 0.15 with single layers at 0.35; to 8 bits 0.007, FP8 0.03."""
OUTLIER_RATIO, OUTLIER_LEAST = 3.0, 0.02
AWQ_RATIOS = (1.4, 2.0)
"""Of the error to what rounding alone costs. Clipping brings AutoAWQ to 1.14 at most, limits that were looked for on one
short text GPTQModel to 2.0, AutoAWQ's fault on CPUs comes to 2.9."""
DRIFT_LEAST = 0.05
"""Drift of scales beyond this, what rounding costs, and the square of the error is none of a quantizer's: an error that is
independent of the weights, as GPTQ's, comes to its square. That is 0.04 in SmolLM2's layers in 4 bits, 0.001 in 8; scales
of q and k that were swapped come to 0.12."""
MIXED_SHARE = 0.25
"""Columns that fit another group's scales better: up to 0.05 of a layer's by GPTQ (with act-order too, 3 and 4 bits) and AWQ of
each tool on SmolLM2, 0.45 to 0.55 where `g_idx` was permuted."""
FOLDED_SPREAD, FOLDED_AGREEMENT = 0.01, 0.05
"""Scales vary by more than the first (as logarithm) and cancel to within the second, where they were moved."""


@dataclass(frozen=True)
class Sums:
    """Sums over the columns of some rows, each [rows]; `raw` ones without factors."""

    error: Floats
    raw_error: Floats
    raw_base: Floats
    base: Floats
    mine: Floats
    dot: Floats


@dataclass(frozen=True)
class Factors:
    """What a layer's weights are multiplied by before they are compared, on both sides; None: by nothing."""

    rows: Floats | None = None
    columns: Floats | None = None
    base_columns: Floats | None = None

    @property
    def are_none(self) -> bool:
        """Whether there is nothing to multiply by."""
        return self.rows is None and self.columns is None and self.base_columns is None

    def of(self, rows: slice) -> Factors:
        """For some rows alone."""
        return self if self.rows is None else replace(self, rows=self.rows[rows])


def compare(mine: Floats, theirs: Floats, factors: Factors) -> Sums:
    """Both [rows, columns]."""
    raw_error, raw_base = _squares(theirs - mine), _squares(theirs)
    if factors.are_none:
        return Sums(raw_error, raw_error, raw_base, raw_base, _squares(mine), _dots(mine, theirs))
    mine = _times(mine, factors.rows, factors.columns)
    theirs = _times(theirs, None, factors.base_columns)
    error = _squares(theirs - mine)
    return Sums(error, raw_error, raw_base, _squares(theirs), _squares(mine), _dots(mine, theirs))


def _times(values: Floats, rows: Floats | None, columns: Floats | None) -> Floats:
    if rows is not None:
        values = values * rows[:, None]
    return values if columns is None else values * columns


def _squares(values: Floats) -> Floats:
    return _dots(values, values)


def _dots(first: Floats, second: Floats) -> Floats:
    found: Floats = np.einsum("ij,ij->i", first, second)
    return found


def layer_error(module: str, parts: Sequence[Sums], rounding: float | None) -> LayerError:
    """Of a whole layer, from the sums of its rows and the squared error of rounding. Rows of zeros count as they are."""
    error, raw_error, raw_base, base, mine, dot = (
        np.concatenate([getattr(part, name) for part in parts]).astype(np.float64)
        for name in ("error", "raw_error", "raw_base", "base", "mine", "dot")
    )
    by_row = np.sqrt(error / np.where(base > 0, base, 1.0))
    worst = np.argsort(-np.nan_to_num(by_row, nan=np.inf))[:NUM_WORST]
    scale = np.sqrt(base.sum() * mine.sum())
    fitted = np.where(mine > 0, dot / np.where(mine > 0, mine, 1.0), 1.0)
    return LayerError(
        module=module,
        relative_error=_ratio(error.sum(), base.sum()),
        raw_relative_error=_ratio(raw_error.sum(), raw_base.sum()),
        rounding_error=None if rounding is None else _ratio(rounding, base.sum()),
        cosine=float(dot.sum() / scale) if scale > 0 else 0.0,
        scale_drift=float(np.median(np.abs(fitted - 1))),
        worst_rows=tuple((int(row), float(by_row[row])) for row in worst),
    )


def _ratio(error: float, base: float) -> float:
    return float(np.sqrt(error / base)) if base > 0 else float(np.sqrt(error))


def fit(mine: Floats, theirs: Floats, factors: Factors, axis: int) -> Floats:
    """Least-squares factors of `mine`'s rows (axis 1) or columns (axis 0); 1 where there is nothing to fit."""
    mine, theirs = _times(mine, factors.rows, factors.columns), _times(theirs, None, factors.base_columns)
    dot = (mine * theirs).sum(axis=axis)
    square = (mine * mine).sum(axis=axis)
    found: Floats = np.where(square > 0, dot / np.where(square > 0, square, 1), 1).astype(np.float32)
    return found


def are_folded(rows: Floats, columns: Floats) -> bool:
    """Whether a layer's row factors and the next one's column factors are scales that were moved: they vary and cancel."""
    if rows.shape != columns.shape or not (rows > 0).all() or not (columns > 0).all():
        return False
    spread, rest = np.log(rows), np.log(rows) + np.log(columns)
    return bool(np.std(spread) > FOLDED_SPREAD and np.median(np.abs(rest - np.median(rest))) < FOLDED_AGREEMENT)


def check(errors: Sequence[LayerError], layers: Iterable[Layer], strays: Mapping[str, float]) -> Iterator[Finding]:
    """Findings on layers that lost too much, for their width, for their method or for their kind.

    `strays`: by layer the share of columns that fit another group's scales better.
    """
    schemes = {layer.module: layer.scheme for layer in layers}
    limits = {error.module: _limits(error, schemes[error.module]) for error in errors}
    broken = [error for error in errors if not error.relative_error <= limits[error.module][1]]
    high = [error for error in errors if error.relative_error > limits[error.module][0] and error not in broken]
    for code, found in ((WEIGHT_ERROR, broken), (WEIGHT_ERROR_HIGH, high)):
        if found:
            yield code.at([error.module for error in found], _told(found[0], limits[found[0].module][0]))
    told = {error.module for error in (*broken, *high)}
    drifted = [error for error in errors if error.module not in told and _has_drifted(error, schemes[error.module])]
    if drifted:
        detail = f"half of the rows would fit better by {drifted[0].scale_drift:.0%} or more"
        yield SCALE_DRIFT.at([error.module for error in drifted], detail)
        told |= {error.module for error in drifted}
    mixed = {module: share for module, share in strays.items() if share > MIXED_SHARE and module not in told}
    if mixed:
        detail = (
            f"{next(iter(mixed.values())):.0%} of the columns fit another group's scales better, by chance half would"
        )
        yield GROUPS_MIXED.at(list(mixed), detail)
        told |= mixed.keys()
    apart = [(error, usual) for error, usual in _outliers(errors) if error.module not in told]
    if apart:
        error, usual = apart[0]
        detail = f"relative error {error.relative_error:.3f}, its kind's median {usual:.3f}"
        yield WEIGHT_OUTLIER.at([error.module for error, _ in apart], detail)


def _has_drifted(error: LayerError, scheme: Scheme) -> bool:
    """In 2 bits GPTQ's own error, which no row's factor would leave as it is, is too large for a word on scales."""
    limit = max(DRIFT_LEAST, error.rounding_error or 0.0, error.relative_error**2)
    return scheme.bits > 2 and error.scale_drift is not None and error.scale_drift > limit


def _limits(error: LayerError, scheme: Scheme) -> tuple[float, float]:
    """The errors that are high, and that no quantization makes; AWQ rounds to nearest once the scales are moved."""
    high, broken = LIMITS[max(width for width in LIMITS if width <= max(2, scheme.bits))]
    if scheme.method != "awq" or error.rounding_error is None:
        return high, broken
    of_awq = [max(ratio * error.rounding_error, OUTLIER_LEAST) for ratio in AWQ_RATIOS]
    return min(high, of_awq[0]), min(broken, of_awq[1])


def _told(error: LayerError, usual: float) -> str:
    rounding = f", rounding alone costs {error.rounding_error:.3f}" if error.rounding_error is not None else ""
    said = f"relative error {error.relative_error:.3f}, cosine {error.cosine:.4f}{rounding}"
    return f"{said}; below {usual:.3g} is usual at this width"


def _outliers(errors: Sequence[LayerError]) -> Iterator[tuple[LayerError, float]]:
    kinds: dict[str, list[LayerError]] = defaultdict(list)
    for error in errors:
        found = IN_LAYER.match(error.module)
        kinds[found[3] if found else error.module].append(error)
    for group in kinds.values():
        usual = median_low(error.relative_error for error in group)
        for error in group:
            if error.relative_error > max(OUTLIER_RATIO * usual, OUTLIER_LEAST):
                yield error, usual


def check_plain(differences: Mapping[str, float]) -> Iterator[Finding]:
    """Tensors that were not quantized, by relative difference from the baseline's."""
    broken = [name for name, difference in differences.items() if not math.isfinite(difference)]
    if broken:
        yield WEIGHTS_NOT_FINITE.at(broken, "its values, or the baseline's, have NaN or infinite ones among them")
    bad = {name: each for name, each in differences.items() if name not in broken and each > PLAIN_LIMIT}
    if bad:
        worst = sorted(bad, key=lambda name: -bad[name])
        yield PLAIN_TENSOR_DIFFERS.at(worst, f"relative difference {bad[worst[0]]:.3g}")


PLAIN_LIMIT = 0.01
"""Rounding to float16 or bfloat16 costs 0.002 at most."""
