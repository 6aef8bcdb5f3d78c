"""The rates of all cells in, a CSV table and a Markdown summary out. Touches nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence

from qgate.judge.selftest.rates import Rates

SETTINGS = (
    "base_rate", "discordance", "num_seeds", "correlation", "shape", "spread", "broken", "factor", "slices", "harmed",
)  # fmt: skip
COLUMNS = (
    "question", "method", "family", *SETTINGS, "num_items", "margin", "harm", "num_runs", "share_pass", "share_pass_low",
    "share_pass_high", "share_fail", "share_fail_low", "share_fail_high",
)  # fmt: skip


def table(rates: Iterable[Rates]) -> str:
    """One line per cell; `_low` and `_high` are the 95 % Monte-Carlo interval of the share before."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for each in rates:
        pass_low, pass_high = each.interval(each.num_pass)
        fail_low, fail_high = each.interval(each.num_fail)
        writer.writerow(
            {
                "question": each.cell.question,
                "method": each.cell.method,
                "family": each.cell.world.family,
                **each.cell.world.settings,
                "num_items": each.cell.num_items,
                "margin": each.cell.margin,
                "harm": each.cell.harm,
                "num_runs": each.num_runs,
                "share_pass": each.passes,
                "share_pass_low": round(pass_low, 5),
                "share_pass_high": round(pass_high, 5),
                "share_fail": each.fails,
                "share_fail_low": round(fail_low, 5),
                "share_fail_high": round(fail_high, 5),
            }
        )
    return stream.getvalue()


def too_often(rates: Iterable[Rates], alpha: float) -> list[Rates]:
    """Cells that pass or fail at the margin's edge, or fail without any harm, more often than `alpha` for sure.

    Sure means beyond the Monte-Carlo error, corrected for the number of cells looked at (Bonferroni, 5 % for all).
    """
    promised = [each for each in rates if each.cell.question in {"edge", "A/A"}]
    level = 1 - 0.05 / (2 * len(promised)) if promised else 0.95
    return [
        each
        for each in promised
        if each.interval(each.num_fail, level)[0] > alpha
        or (each.cell.question == "edge" and each.interval(each.num_pass, level)[0] > alpha)
    ]


def summary(rates: Sequence[Rates], alpha: float, command: str) -> str:
    """What the table says, in Markdown."""
    edge = [each for each in rates if each.cell.question == "edge"]
    alike = [each for each in rates if each.cell.question == "A/A"]
    beyond = [each for each in rates if each.cell.question == "beyond"]
    power = [each for each in rates if each.cell.question == "power"]
    others = [each for each in rates if each.cell.question == "other"]
    bad = too_often(rates, alpha)
    lines = [
        "# The gate's own error rates",
        "",
        f"Made by `{command}`: {len(rates)} cells, {min(each.num_runs for each in rates):,} simulated runs each, decided "
        f"by the estimators that decide a verdict, at alpha = {alpha:g}. All cells are in table.csv.",
        "",
        f"Cells above alpha beyond their Monte-Carlo error: **{len(bad)}** of {len(edge) + len(alike)}.",
        *(f"- {_name(each)}: PASS {each.passes:.4f}, FAIL {each.fails:.4f}" for each in bad),
        "",
        "## The true harm is the margin: a PASS is an error, and so is a FAIL",
        "",
        "The worst cell of each family; in brackets the 95 % Monte-Carlo interval.",
        "",
        "| family | cells | most PASS | where | most FAIL | where |",
        "| --- | --- | --- | --- | --- | --- |",
        *_worst_by_family(edge),
        "",
        "The same question put to intervals in common use, where there is one pair per item:",
        "",
        "| method | cells | above alpha for sure | most PASS | where |",
        "| --- | --- | --- | --- | --- |",
        *_by_method([each for each in edge if each.cell.world.settings.get("num_seeds") == 1], others, alpha),
        "",
        "## Both arms are the same but for noise (A/A)",
        "",
        "| family | items | most FAIL | least PASS at the margin 0.02 |",
        "| --- | --- | --- | --- |",
        *_alike(alike),
        "",
        "## What a set can show",
        "",
        "Share of runs with PASS where the true harm is below the margin, with FAIL where it is above. The harm behind a "
        "quantile is the share of tokens above it, and its margin the share that there may be.",
        "",
        *_power(power),
        "",
        "## Beyond the promise",
        "",
        "Means over tokens (KL, surprise, the share of tokens at which another is likeliest) are bounded from the worst item "
        "seen. Items that are 20 or 50 times as bad as the rest, or all of whose tokens differ, may not be among those seen "
        "where they are rarer than one in twenty. Scores, defects and quantiles of KL do not have this gap: their bounds "
        "take an unseen item to be as bad as an item can be.",
        "",
        "| family | margin | share of items broken | times as bad | items | PASS although the harm is the margin |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(_gap, beyond),
        "",
        "This page is simulation. What the gate makes of checkpoints that were damaged on purpose is in results/power.",
        "",
    ]
    return "\n".join(lines)


def _share(each: Rates, verdict: str) -> str:
    count = each.num_pass if verdict == "pass" else each.num_fail
    low, high = each.interval(count)
    return f"{count / each.num_runs:.4f} ({low:.4f}–{high:.4f})"


def _gap(each: Rates) -> str:
    settings = each.cell.world.settings
    words = [each.cell.world.family, each.cell.margin, settings["broken"], settings.get("factor", "all tokens")]
    return f"| {' | '.join(map(str, words))} | {each.cell.num_items} | {_share(each, 'pass')} |"


def _name(each: Rates) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in each.cell.world.settings.items() if value != "")
    return f"{each.cell.world.family}, {settings}, {each.cell.num_items} items, margin {each.cell.margin:g}"


def _where(each: Rates) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in each.cell.world.settings.items())
    return f"{each.cell.num_items} items, {settings}"


def _most(rates: Sequence[Rates], verdict: str) -> Rates:
    return max(rates, key=lambda each: each.num_pass if verdict == "pass" else each.num_fail)


def _worst_by_family(rates: Sequence[Rates]) -> Iterable[str]:
    for family in dict.fromkeys(each.cell.world.family for each in rates):
        part = [each for each in rates if each.cell.world.family == family]
        passing, failing = _most(part, "pass"), _most(part, "fail")
        yield (
            f"| {family} | {len(part)} | {_share(passing, 'pass')} | {_where(passing)} "
            f"| {_share(failing, 'fail')} | {_where(failing)} |"
        )


def _by_method(ours: Sequence[Rates], others: Sequence[Rates], alpha: float) -> Iterable[str]:
    family = "score loss, right or wrong"
    rates = [each for each in (*ours, *others) if each.cell.world.family == family]
    for method in dict.fromkeys(each.cell.method for each in rates):
        part = [each for each in rates if each.cell.method == method]
        above = sum(each.interval(each.num_pass)[0] > alpha for each in part)
        worst = _most(part, "pass")
        yield f"| {method} | {len(part)} | {above} | {_share(worst, 'pass')} | {_where(worst)} |"


def _alike(rates: Sequence[Rates]) -> Iterable[str]:
    for family in dict.fromkeys(each.cell.world.family for each in rates):
        lines = _by_size(
            [each for each in rates if each.cell.world.family == family],
            lambda part: f"{_share(_most(part, 'fail'), 'fail')} | {min(each.passes for each in part):.3f}",
        )
        yield from (f"| {family} {line}" for line in lines)


def _by_size(rates: Sequence[Rates], say: Callable[[Sequence[Rates]], str]) -> Iterable[str]:
    for size in sorted({each.cell.num_items for each in rates}):
        yield f"| {size} | {say([each for each in rates if each.cell.num_items == size])} |"


def _power(rates: Sequence[Rates]) -> Iterable[str]:
    for world in dict.fromkeys(each.cell.world for each in rates):
        part = [each for each in rates if each.cell.world == world]
        harms = sorted(set(map(_harm, part)))
        settings = ", ".join(f"{key} {value}" for key, value in world.settings.items())
        yield f"{world.family}, margin {part[0].cell.margin:g}, {settings}:"
        yield ""
        yield "| items | " + " | ".join(f"harm {harm:g}" for harm in harms) + " |"
        yield "| --- |" + " --- |" * len(harms)
        yield from _by_size(part, _outcomes)
        yield ""


def _outcomes(of_size: Sequence[Rates]) -> str:
    return " | ".join(map(_outcome, sorted(of_size, key=_harm)))


def _harm(each: Rates) -> float:
    return each.cell.harm


def _outcome(each: Rates) -> str:
    return f"PASS {each.passes:.2f}" if each.cell.harm < each.cell.margin else f"FAIL {each.fails:.2f}"
