"""What was found on checkpoints that were damaged on purpose in, two CSV tables and a Markdown page out. Touches nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import combinations

from statsmodels.stats.proportion import proportion_confint

from qgate.judge.selftest.controls import FEWEST_ITEMS, MOST_ITEMS, NUM_PARTS
from qgate.judge.selftest.damaged import Damaged
from qgate.judge.selftest.grid import ALIKE
from qgate.judge.selftest.needs import Need
from qgate.judge.selftest.order import Alike, Gain

RANK = {"FAIL": 0, "INCONCLUSIVE": 1, "PASS": 2, "VOID": None, "INVALID": None}
ALL = 0.05
"""Chance that a sound gate is called unsound by one of the counts that are looked at."""


def needed_table(found: Damaged) -> str:
    """One line per metric, set and level of damage."""
    names = (
        "metric", "scope", "num_items", "level", "harm", "no_damage", "margin", "needed_to_see", "needed_to_settle",
    )  # fmt: skip
    return _csv(
        names,
        (
            (
                need.series.criterion.metric, need.series.scope, need.series.num_items, need.level,
                f"{need.harm:.6g}", f"{need.series.unharmed:.6g}", need.series.criterion.margin,
                _number(need.see) if need.is_harm else "", _number(need.settle),
            )
            for need in found.needs
        ),
    )  # fmt: skip


def order_table(found: Damaged) -> str:
    """One line per metric, set and pair of levels."""
    names = ("metric", "scope", "num_items", "lower_level", "higher_level", "gain", "holm_p")
    return _csv(
        names,
        (
            (
                gain.series.criterion.metric, gain.series.scope, gain.series.num_items, gain.lower, gain.higher,
                f"{gain.gain:.6g}", f"{gain.p:.6g}",
            )
            for gain in found.gains
        ),
    )  # fmt: skip


def wrong_order(found: Damaged, alpha: float) -> list[Gain]:
    """Pairs of levels where more damage is judged better beyond chance."""
    return [gain for gain in found.gains if gain.p <= alpha]


def alarms(found: Damaged, alpha: float) -> list[Alike]:
    """Parts of the A/A arm that FAIL more often than alpha for sure (Clopper–Pearson, Bonferroni over all of them)."""
    level = ALL / max(1, 2 * len(found.alike))
    return [each for each in found.alike if any(_low(count, each, level) > alpha for count in _counts(each))]


def _counts(each: Alike) -> Iterator[int]:
    yield each.num_fail
    if each.num_fail_at_zero is not None:
        yield each.num_fail_at_zero


def _low(count: int, each: Alike, level: float) -> float:
    return float(proportion_confint(count, each.num_runs, alpha=2 * level, method="beta")[0])


def page(found: Damaged, alpha: float, command: str, source: str) -> str:
    """The page that a person reads."""
    wrong, loud = wrong_order(found, alpha), alarms(found, alpha)
    return "\n".join(
        [
            "# What the sets see, and whether the gate keeps the order of damage",
            "",
            f"Made by `{command}` from {source}",
            "",
            "## Verdicts by level of damage",
            "",
            "Noise in standard deviations of a weight's row; the whole sets, as `qgate run` judges them at alpha = "
            f"{alpha:g}.",
            "",
            *_verdicts(found),
            "",
            "## Items needed to see a level of damage",
            "",
            "Least number of items at which 80 % of such sets show more harm than no damage does, for sure (lower bound "
            "above 0, or above what the baseline's second run has where a harm cannot be a gain). Sizes are tried a tenth "
            f"apart, from {FEWEST_ITEMS}; in brackets the harm on the whole set. Beyond the size of the set the items that "
            "there are stand for more like them.",
            "",
            *_needed(found.needs),
            "",
            "## Items needed to settle it",
            "",
            "Least number at which 80 % of such sets end in the verdict that is true at the margin. Harms near the margin "
            "are dear.",
            "",
            *_settled(found.needs),
            "",
            "## More damage is never judged better beyond chance",
            "",
            f"Of {len(found.gains)} pairs of levels over all metrics and sets, **{len(wrong)}** have less harm at the "
            f"higher level at Holm-adjusted p ≤ {alpha:g} (paired permutation test, one-sided, by item).",
            *(f"- {gain.series.name}: {gain.higher:g} below {gain.lower:g} by {gain.gain:.4g}, p {gain.p:.3g}" for gain in wrong),
            "",
            *_better(found),
            "",
            *_ordered(found),
            "",
            "## No damage never FAILs more than alpha",
            "",
            f"The baseline against its own second run, on {NUM_PARTS:,} parts of each size drawn without replacement. Above "
            f"alpha for sure: **{len(loud)}** of {len(found.alike)}.",
            *(f"- {each.series.name}, {each.num_items} items: {each.num_fail} and {each.num_fail_at_zero} FAIL" for each in loud),
            "",
            *_alike(found.alike),
            "",
            "## How KL is spread",
            "",
            "Share of the variance of ln KL that lies between items, by level; the rest lies within answers. The simulation "
            f"of quantiles (results/selftest) spans {min(ALIKE):g} to {max(ALIKE):g}.",
            "",
            f"| level | {' | '.join(f'{level:g}' for level in found.between)} |",
            "| --- |" + " --- |" * len(found.between),
            f"| share | {' | '.join('' if share is None else f'{share:.2f}' for share in found.between.values())} |",
            "",
        ]
    )  # fmt: skip


def _verdicts(found: Damaged) -> Iterator[str]:
    levels = list(dict.fromkeys(level for row in found.verdicts for level in row.verdicts))
    yield f"| criterion | margin | {' | '.join(f'{level:g}' for level in levels)} |"
    yield "| --- | --- |" + " --- |" * len(levels)
    for row in found.verdicts:
        cells = [f"{row.verdicts[level]} {_value(row.values[level])}" for level in levels]
        yield f"| {row.name} | {row.margin:g} | {' | '.join(cells)} |"


def _value(value: float | None) -> str:
    return "" if value is None else f"({value:.3g})"


def _needed(needs: Sequence[Need]) -> Iterator[str]:
    def cell(need: Need) -> str:
        return f"{_number(need.see)} ({need.harm:.3g})" if need.is_harm else f"nothing to see ({need.harm:.3g})"

    yield from _by_level(needs, cell)


def _settled(needs: Sequence[Need]) -> Iterator[str]:
    def cell(need: Need) -> str:
        wanted = "PASS" if need.harm <= need.series.criterion.margin else "FAIL"
        return f"{wanted} {_number(need.settle)}"

    yield from _by_level(needs, cell)


def _by_level(needs: Sequence[Need], cell: Callable[[Need], str]) -> Iterator[str]:
    levels = sorted({need.level for need in needs})
    yield f"| set | metric | items there are | {' | '.join(f'{level:g}' for level in levels)} |"
    yield "| --- | --- | --- |" + " --- |" * len(levels)
    for series in dict.fromkeys(id(need.series) for need in needs):
        part = {need.level: need for need in needs if id(need.series) == series}
        first = next(iter(part.values())).series
        cells = " | ".join(cell(part[level]) for level in levels)
        yield f"| {first.scope} | {first.criterion.metric} | {first.num_items} | {cells} |"


def _number(items: int | None) -> str:
    if items is None:
        return f"> {MOST_ITEMS}"
    return f"≤ {items}" if items == FEWEST_ITEMS else str(items)


def _better(found: Damaged) -> Iterator[str]:
    """Criteria whose verdict on the whole evidence is better at some level than at a lower one."""
    better = [row for row in found.verdicts if _improves([RANK[row.verdicts[level]] for level in sorted(row.verdicts)])]
    yield (
        f"On the whole sets the verdict is better at some level than at a lower one for {len(better)} of "
        f"{len(found.verdicts)} criteria{': ' if better else '.'}{', '.join(row.name for row in better)}"
    )


def _improves(ranks: Sequence[int | None]) -> bool:
    known = [rank for rank in ranks if rank is not None]
    return any(later > earlier for earlier, later in combinations(known, 2))


def _ordered(found: Damaged) -> Iterator[str]:
    yield "| set | metric | p that the harm does not rise | parts on which a level FAILs and a higher one passes |"
    yield "| --- | --- | --- | --- |"
    for each in found.ordered:
        most = max(each.contradicted.values())
        yield f"| {each.series.scope} | {each.series.criterion.metric} | {each.p_rise:.4f} | at most {most:.4f} |"


def _alike(found: Sequence[Alike]) -> Iterator[str]:
    yield "| metric | most FAIL at the margin | most FAIL at margin 0, the two runs swapped at random by item |"
    yield "| --- | --- | --- |"
    for metric in dict.fromkeys(each.series.criterion.metric for each in found):
        part = [each for each in found if each.series.criterion.metric == metric]
        zeros = [each.num_fail_at_zero / each.num_runs for each in part if each.num_fail_at_zero is not None]
        most = max(each.num_fail / each.num_runs for each in part)
        yield f"| {metric} | {most:.4f} | {f'{max(zeros):.4f}' if zeros else ''} |"


def _csv(names: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)
    return stream.getvalue()
