"""What changed from one run to another, for a person. Pure: values in, something that rich can print out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Group, JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from qgate.judge.releases import Change
from qgate.judge.units import harm
from qgate.reports.visible import one_line
from qgate.reports.words import bounds, share

COLUMNS = ("", "variant", "set", "what", "before", "after", "worse by", "interval")
LEVELS = {"score_loss": "score", "defect_increase": "defects", "truncation_increase": "cut off"}


def render(titles: tuple[str, str], changes: Sequence[Change], notes: Iterable[str]) -> RenderableType:
    """A table of what moved, a sentence on what is sure, and the notes. `titles`: the earlier and the later run."""
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, collapse_padding=True)
    for title in COLUMNS:
        justify: JustifyMethod = "right" if title in {"before", "after", "worse by"} else "left"
        grid.add_column(title, overflow="fold", justify=justify, no_wrap=title not in {"variant", "set"})
    moved = [change for change in changes if not _is_same(change)]
    for change in moved:
        grid.add_row(*_row(change))
    head = Text(f"from {titles[0]} to {titles[1]}", style="bold")
    same = f"{len(changes) - len(moved)} of {len(changes)} figures are the same in both runs, and not listed"
    parts: list[RenderableType] = [head, *([grid] if moved else []), Text(f"\n{_sentence(changes)}", style="bold")]
    parts += [Text(f"· {same}")] if len(moved) < len(changes) else []
    return Group(*parts, *(Text(f"· {one_line(note)}") for note in notes))


def _is_same(change: Change) -> bool:
    """Whether both runs have the very same figure, item by item in the mean."""
    result = change.result
    return result.estimate.value == 0 and result.baseline_value == result.variant_value


def _row(change: Change) -> tuple[Text, ...]:
    result = change.result
    words = (
        change.variant,
        change.evalset,
        LEVELS[result.metric],
        share(result.baseline_value),
        share(result.variant_value),
        harm(result.metric, result.estimate.value),
        bounds(result.metric, result.estimate),
    )
    return (_verdict(change), *(Text(one_line(word)) for word in words))


def _verdict(change: Change) -> Text:
    if change.is_worse:
        return Text("worse", style="bold red")
    if change.is_better:
        return Text("better", style="bold green")
    if change.is_unknown:
        return Text("?", style="bold yellow")
    return Text("·", style="dim")


def _sentence(changes: Sequence[Change]) -> str:
    worse = _where(change for change in changes if change.is_worse)
    unknown = _where(change for change in changes if change.is_unknown)
    said = f"Worse for sure: {worse}" if worse else "Nothing got worse for sure"
    said += f" ({len(changes)} comparisons, together at one error of 5 %)."
    return said + (f" Too many answers did not come to say anything of {unknown}." if unknown else "")


def _where(changes: Iterable[Change]) -> str:
    return ", ".join(dict.fromkeys(f"{change.variant} on {change.evalset}" for change in changes))
