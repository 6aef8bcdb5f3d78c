"""Stored answers of the baseline and criteria in, how often they miss rare garbage out, and a page of it. Touches nothing.

The variant is the baseline's own second run in which each item is garbled with a small chance: wrong, a token salad, every
token of it another. So the truth is known, and all else is as harmless as an engine's own noise. A tier passes no more
often than its strictest criterion does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from qgate.judge.arms import FLOOR, Arms
from qgate.judge.compare import Case, support_of
from qgate.judge.resample import Draws, Floats
from qgate.judge.selftest.decided import passing, relative
from qgate.judge.selftest.series import series
from qgate.judge.selftest.worlds import Runs
from qgate.judge.tokens import TokenTable
from qgate.schemas.evidence import DefectHit, Evidence, Row
from qgate.schemas.recipe import BASELINE, Criterion, Recipe, Statistics

GARBLED = "garbled"
NATS = 5.0
"""KL and rise of surprise of a garbled answer's tokens."""
SHARES = (0.005, 0.01, 0.02, 0.05)
NUM_RUNS = 2_000


@dataclass(frozen=True)
class Missed:
    """By share of garbled items, how often a criterion passes; `num_items` have it."""

    criterion: Criterion
    num_items: int
    passes: Mapping[float, float]

    @property
    def name(self) -> str:
        """For tables."""
        chosen = f" ({', '.join(self.criterion.defects)})" if self.criterion.defects else ""
        return f"{self.criterion.metric} {self.criterion.margin:g}{chosen}"


def missed(
    rows: Sequence[Row], tokens: Mapping[str, TokenTable], criteria: Sequence[Criterion], statistics: Statistics
) -> list[Missed]:
    """Each criterion that is a mean over items of all sets; others (the worst slice, one set only) are left out."""
    case = _case(rows, tokens, statistics)
    found = []
    for number, criterion in enumerate({_key(each): each for each in criteria}.values()):
        generator = np.random.default_rng([statistics.seed, number])
        harms = None if _narrow(criterion) else series(case, criterion, {GARBLED: 1.0})
        if harms is not None:
            passes = {share: _passes(harms.harms, share, criterion, case, generator) for share in SHARES}
            found.append(Missed(criterion, harms.num_items, passes))
    return found


def _key(criterion: Criterion) -> str:
    return criterion.model_dump_json()


def _narrow(criterion: Criterion) -> bool:
    scoped = criterion.evalset or criterion.profile or criterion.where
    return bool(scoped) or criterion.by is not None or criterion.metric.startswith("kl_p")


def _case(rows: Sequence[Row], tokens: Mapping[str, TokenTable], statistics: Statistics) -> Case:
    """The two runs of the baseline, and all of its answers garbled."""
    own = [row for row in rows if row.variant == BASELINE]
    salad = (DefectHit(name="token_salad"),)
    garbled = [
        replace(row, variant=GARBLED, score=0.0, defects=salad, excused=(), identical=False)
        for row in own
        if not row.replicate
    ]
    arms = Arms.of(Evidence(rows=(*own, *garbled)))
    tables = {FLOOR: tokens[FLOOR], GARBLED: _garbled(tokens[FLOOR])} if FLOOR in tokens else {}
    return Case(arms, tables, statistics.alpha, Draws(statistics.resamples, statistics.seed, len(arms.clusters)))


def _garbled(table: TokenTable) -> TokenTable:
    ones = np.ones(table.kl.size)
    return replace(table, kl=NATS * ones, disagree=ones, drop=ones, log_drop=NATS * ones)


def _passes(harms: Floats, share: float, criterion: Criterion, case: Case, generator: np.random.Generator) -> float:
    """Of float64[2, n] harms of items (as they are; garbled): the share of runs that pass."""
    hit = generator.random((NUM_RUNS, harms.shape[1])) < share
    mixed = np.where(hit, harms[1], harms[0])
    if criterion.metric == "relative_score_loss":  # an answer that is garbled loses all that the baseline had
        runs = Runs(mixed, np.broadcast_to(harms[1], mixed.shape))
        return float(relative(runs, criterion.margin, case.alpha, case.draws)[0].mean())
    return float(passing(mixed, support_of(criterion.metric), criterion.margin, case.alpha, case.draws).mean())


def page(found: Sequence[Missed], recipes: Mapping[str, Recipe], command: str, source: str) -> str:
    """What the criteria of the shipped tiers miss, in Markdown."""
    head = " | ".join(f"{100 * share:g} %" for share in SHARES)
    return "\n".join(
        [
            "# Rare garbage",
            "",
            f"Made by `{command}` from {source}",
            "",
            "A variant that is the baseline but for a share of its items, which it garbles: wrong answers of token salad. "
            f"How often it PASSes, in {NUM_RUNS:,} runs each; in every run other items are garbled.",
            "",
            "## By tier, on the whole sets",
            "",
            "A tier passes at most as often as its strictest criterion, which is named.",
            "",
            f"| recipe | tier | strictest | {head} |",
            "| --- | --- | --- |" + " --- |" * len(SHARES),
            *_by_tier({_key(each.criterion): each for each in found}, recipes),
            "",
            "## By criterion",
            "",
            f"| criterion and margin | items that have it | {head} |",
            "| --- | --- |" + " --- |" * len(SHARES),
            *(f"| {each.name} | {each.num_items} | {_cells(each)} |" for each in sorted(found, key=lambda each: each.name)),
            "",
        ]
    )  # fmt: skip


def _by_tier(found: Mapping[str, Missed], recipes: Mapping[str, Recipe]) -> Iterator[str]:
    for name, recipe in recipes.items():
        for tier_name, tier in recipe.tiers.items():
            judged = [found[key] for key in map(_key, tier.criteria) if key in found]
            if judged:
                strictest = min(judged, key=lambda each: sum(each.passes.values()))
                yield f"| {name} | {tier_name} | {strictest.name} | {_cells(strictest)} |"


def _cells(each: Missed) -> str:
    return " | ".join(f"{share:.4f}" for share in each.passes.values())
