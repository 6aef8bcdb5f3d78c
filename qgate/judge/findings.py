"""What must be known beside the verdicts, and each arm's own figures: a case in, sentences and a summary out. Touches nothing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from qgate.judge import token_facts
from qgate.judge.arms import FLOOR, Arms
from qgate.judge.compare import Case
from qgate.judge.criteria import all_defects, differs, garble, length, score, truncated
from qgate.judge.observe import came
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import BASELINE, Recipe
from qgate.schemas.verdict import Breakdown


def find(case: Case, evidence: Evidence, recipe: Recipe, breakdowns: Sequence[Breakdown]) -> tuple[str, ...]:
    """Sentences for the report, the gravest first."""
    return (
        *_invalid(evidence),
        *_floor(case.arms),
        *_repeats(case.arms, tuple(recipe.variants)),
        *_nonfinite(case.arms, (BASELINE, *recipe.variants)),
        *_defective(case.arms, tuple(recipe.variants)),
        *_departures(breakdowns, tuple(recipe.variants)),
        *token_facts.tell(case, evidence, recipe),
        *_missing(case.arms),
    )


def _invalid(evidence: Evidence) -> list[str]:
    return [f"{name} could not be run: {why}" for name, why in sorted(evidence.invalid.items())]


def _floor(arms: Arms) -> list[str]:
    if not arms.has(FLOOR):
        return ["There is no A/A arm: differences cannot be told from the engine's own noise (noise_floor.replicates)."]
    same, num = _agreement(pair.other for pair in arms.pairs(FLOOR).pairs if pair.other is not None)
    if not num:
        return ["The A/A arm gave no answer that could be compared: the engine's own noise is unknown."]
    return [f"Asked twice, the baseline gives the same answer to {same} of {num} requests (A/A)."]


def _repeats(arms: Arms, variants: Iterable[str]) -> list[str]:
    """A kernel that does not repeat itself is a finding."""
    said = []
    for variant in variants:
        same, num = _agreement(arms.repeats(variant))
        if num:
            tail = "" if same == num else ": its kernels do not repeat themselves"
            said.append(f"Asked twice, {variant} gives the same answer to {same} of {num} requests{tail}.")
    return said


def _agreement(rows: Iterable[Row]) -> tuple[int, int]:
    """How many answers are the same as the first, of how many that can be compared."""
    known = [value for value in map(differs, rows) if not np.isnan(value)]
    return len(known) - int(sum(known)), len(known)


def _nonfinite(arms: Arms, names: Iterable[str]) -> list[str]:
    """NaN in the logits is never noise: told of a single answer, whatever the criteria are."""
    said = []
    for name in names:
        rows = [row for row in arms.replicates.get((name, 0), {}).values() if came(row)]
        num = sum(NONFINITE in all_defects(row) for row in rows)
        if num:
            said.append(f"{name} has NaN or infinity in its logits in {num} of {len(rows)} answers ({NONFINITE}).")
    return said


NONFINITE = "nonfinite_logprob"
TOLD_SHARE = 0.05
"""Share of answers with a defect, the baseline's own or a variant's beyond it, that is worth a sentence."""


def _defective(arms: Arms, variants: Iterable[str]) -> list[str]:
    """A baseline that is broken itself, and a variant that is more so, whether or not a criterion asks for it."""
    num_own, num_rows, named = _defects(arms, BASELINE)
    share = num_own / max(1, num_rows)
    said = (
        [f"The baseline itself has defects in {num_own} of {num_rows} answers ({named})."]
        if share >= TOLD_SHARE
        else []
    )
    for variant in variants:
        num, of, named = _defects(arms, variant)
        if num / max(1, of) - share >= TOLD_SHARE:
            said.append(
                f"{variant} has defects in {num} of {of} answers ({named}), the baseline in {num_own} of {num_rows}."
            )
    return said


def _defects(arms: Arms, name: str) -> tuple[int, int, str]:
    """Answers with a defect, answers that came, and how many had which."""
    rows = [row for row in arms.replicates.get((name, 0), {}).values() if came(row) and row.written]
    counts = Counter(defect for row in rows for defect in all_defects(row))
    named = ", ".join(f"{defect} {count}" for defect, count in sorted(counts.items(), key=lambda c: (-c[1], c[0])))
    return sum(bool(all_defects(row)) for row in rows), len(rows), named


TOLD_ALONG = ("output position", "prompt length", "temperature")
TOLD_OF = {
    "score_loss": "scores",
    "defect_rate": "defects",
    "kl_mean": "KL",
    "output_disagreement": "changed answers",
}


def _departures(breakdowns: Sequence[Breakdown], variants: Iterable[str]) -> list[str]:
    """Where along positions, lengths and temperatures a variant first leaves the floor: is the damage amplified there?"""
    said = []
    for variant in variants:
        starts: dict[str, list[str]] = defaultdict(list)
        for metric, what in TOLD_OF.items():
            parts = [each for each in breakdowns if each.variant == variant and each.metric == metric]
            start = _start([part for part in parts if part.axis in TOLD_ALONG and part.first_departure is not None])
            if start is not None:
                starts[start].append(what)
        if starts:
            told = "; ".join(f"{_listed(what)} {start}" for start, what in starts.items())
            said.append(f"{variant} leaves the baseline's noise floor: {told}.")
    return said


def _start(left: Sequence[Breakdown]) -> str | None:
    """Where it begins on each axis that does not leave the floor at its very first label; None where it does nowhere."""
    late = [f"{part.axis} {part.first_departure}" for part in left if part.first_departure != part.labels[0]]
    if late:
        return f"from {_listed(late)} on"
    return "from the start" if left else None


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _missing(arms: Arms) -> list[str]:
    said = []
    for (name, number), part in sorted(arms.replicates.items()):
        gone = [row for row in part.values() if not came(row)]
        if gone:
            words = ", ".join(
                f"{count} {status}" for status, count in sorted(Counter(row.status for row in gone).items())
            )
            arm = name if number == 0 else f"{name}#{number}"
            errors = Counter(sorted(row.error for row in gone if row.error is not None)).most_common(1)
            why = "".join(f", most often: {error}" for error, _ in errors)
            said.append(f"{arm} has {len(gone)} of {len(part)} answers that did not come ({words}){why or '.'}")
    return said


def summarise(case: Case, evidence: Evidence, recipe: Recipe) -> dict[str, Any]:
    """Per arm: scores by set, defects by name, lengths, agreement with the baseline, token figures, latency."""
    arms = {BASELINE: (BASELINE, 0), FLOOR: (BASELINE, 1)} | {name: (name, 0) for name in recipe.variants}
    summary: dict[str, Any] = {}
    for arm, key in arms.items():
        rows = [row for _, row in sorted(case.arms.replicates.get(key, {}).items())]
        if rows:
            figures = _figures(rows) | token_facts.figures(case, arm)
            summary[arm] = {"precision": evidence.precisions.get(key[0])} | figures
    return summary


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    scores: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        scores[row.evalset].append(score(row))
    defects = Counter(name for row in rows for name in all_defects(row))
    written = [row for row in rows if row.written and came(row)]
    return {
        "num_answers": len(rows),
        "mean_score": _mean(score(row) for row in rows),
        "mean_score_by_evalset": {name: _mean(values) for name, values in sorted(scores.items())},
        "defect_share": sum(bool(all_defects(row)) for row in written) / len(written) if written else None,
        "num_by_defect": dict(sorted(defects.items())),
        "truncated_share": _mean(truncated(row) for row in written),
        "mean_completion_tokens": _mean(length(row) for row in rows),
        "identical_share": _mean(1.0 - differs(row) for row in rows),
        "mean_similarity": _mean(float("nan") if row.similarity is None else row.similarity for row in rows),
        "mean_baseline_nll": _mean(garble(row) for row in rows),
        "median_latency_s": float(np.median([row.latency_s for row in written])) if written else None,
    }


def _mean(values: Iterable[float]) -> float | None:
    known = [value for value in values if not np.isnan(value)]
    return float(sum(known) / len(known)) if known else None
