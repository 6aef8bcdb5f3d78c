"""What every report says in the same words: sentences on tiers, numbers with units. Pure: values in, text out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from qgate.errors import ExitCode
from qgate.judge.units import MISSING, harm, number
from qgate.schemas.recipe import BASELINE
from qgate.schemas.run import Run
from qgate.schemas.verdict import CriterionResult, Estimate, Example, TierVerdict, VariantVerdict, Verdict, VerdictSheet

NOT_ALLOWED = "n.a."
Column = tuple[str, str, Callable[[Any], str]]
"""A column of figures: its title, the summary's field, and how a value of it is shown."""
EXIT_MEANING = {
    ExitCode.PASS: "every tier's default variant passes",
    ExitCode.FAIL: "a tier's default variant fails",
    ExitCode.INCONCLUSIVE: "no tier fails, but at least one could not be settled",
}


def variants_of(sheet: VerdictSheet) -> tuple[str, ...]:
    """Every variant that a tier speaks of, in the order of the sheet, the baseline first where it is there."""
    names = dict.fromkeys(variant.variant for tier in sheet.tiers for variant in tier.variants)
    return tuple(sorted(names, key=lambda name: name != BASELINE))


def precisions(run: Run, sheet: VerdictSheet) -> dict[str, str]:
    """Variant name to precision, from the checkpoints and, where one is missing there, from the sheet."""
    known = {variant.variant: variant.precision for tier in sheet.tiers for variant in tier.variants}
    return known | {name: checkpoint.precision for name, checkpoint in run.checkpoints.items()}


def labelled(name: str, precision: Mapping[str, str]) -> str:
    """`w8a8 (W8A8)`; the baseline is called by its precision alone, e.g. `FP16`."""
    if name == BASELINE:
        return precision.get(name) or "the unquantized baseline"
    return f"{name} ({precision[name]})" if precision.get(name) else name


def tier_sentence(tier: TierVerdict, precision: Mapping[str, str]) -> str:
    """What a tier may serve, in one sentence: `public-chat may serve w8a8 (W8A8)`."""
    default = labelled(tier.default, precision)
    if tier.serve is None:
        return f"{tier.tier} may serve nothing"
    if tier.serve == tier.default:
        return f"{tier.tier} stays {default}" if tier.serve == BASELINE else f"{tier.tier} may serve {default}"
    why = f"{default} fails" if tier.verdict is Verdict.FAIL else f"{default} is not settled"
    if tier.serve == BASELINE:
        return f"{tier.tier} stays {labelled(BASELINE, precision)}: {why}"
    return f"{tier.tier} may serve {labelled(tier.serve, precision)} instead: {why}"


def verdict_word(variant: VariantVerdict | None) -> str:
    """The cell of a tiers × variants table: a verdict, or `n.a.` where the tier does not allow the variant."""
    return NOT_ALLOWED if variant is None or not variant.allowed else variant.verdict.value


def in_tier(tier: TierVerdict, name: str) -> VariantVerdict | None:
    """The verdict on variant `name` in `tier`, None where the tier does not speak of it."""
    return next((variant for variant in tier.variants if variant.variant == name), None)


def is_sound_baseline(variant: VariantVerdict) -> bool:
    """Whether it is the baseline, and passes: then nothing is asked of it, and what is open in its criteria fails nobody."""
    return variant.variant == BASELINE and variant.verdict is Verdict.PASS


def share(value: Any) -> str:
    """A share in per cent, `—` where there is none."""
    return f"{value:.1%}".replace("%", " %") if isinstance(value, int | float) and math.isfinite(value) else MISSING


def rise(value: Any) -> str:
    """ln of a ratio as the share by which the first is larger: a perplexity's rise."""
    return share(math.expm1(min(value, 700.0)) if isinstance(value, int | float) else value)


def size(value: Any) -> str:
    """Bytes in decimal units, as disks and hubs count."""
    if not isinstance(value, int | float) or not math.isfinite(value):
        return MISSING
    for unit, factor in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if abs(value) >= factor:
            return f"{number(value / factor)} {unit}"
    return f"{value:.0f} B"


def moment(stamp: str) -> str:
    """`2026-11-29 19:37:28 UTC`, of an ISO 8601 time with its zone."""
    return datetime.fromisoformat(stamp).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def interval(metric: str, estimate: Estimate) -> str:
    """`1.2 pp [0.3 pp, 2.1 pp]`; `not estimated` where nothing could be."""
    if estimate.value is None:
        return "not estimated"
    return f"{harm(metric, estimate.value)} [{harm(metric, estimate.low)}, {harm(metric, estimate.high)}]"


def bounds(metric: str, estimate: Estimate) -> str:
    """`0.3 to 2.1 pp`: the interval alone, its unit said once."""
    if estimate.low is None or estimate.high is None:
        return "not estimated"
    low, _, unit = harm(metric, estimate.low).rpartition(" ")
    return f"{low or unit} to {harm(metric, estimate.high)}"


def metric_words(metric: str) -> str:
    """A metric's name for a sentence."""
    return metric.replace("_", " ").replace("kl ", "KL ").replace("top1", "top-1")


def criterion_name(criterion: CriterionResult) -> str:
    """`score loss ≤ 2 pp · instruction · language=zh`."""
    limit = harm(criterion.metric, criterion.margin)
    return f"{metric_words(criterion.metric)} ≤ {limit} · {criterion.scope}"


def not_passed(sheet: VerdictSheet) -> dict[tuple[Verdict, str, str], list[str]]:
    """(verdict, variant, reason) to the tiers where it holds: allowed variants that did not pass, FAIL first."""
    grouped: dict[tuple[Verdict, str, str], list[str]] = {}
    for tier in sheet.tiers:
        for variant in tier.variants:
            if variant.allowed and variant.verdict is not Verdict.PASS:
                grouped.setdefault((variant.verdict, variant.variant, variant.reason), []).append(tier.tier)
    return dict(sorted(grouped.items(), key=lambda entry: entry[0][0] is not Verdict.FAIL))


def findings_of(run: Run, sheet: VerdictSheet) -> tuple[str, ...]:
    """What the judge found, and every variant that could not be run of which the judge did not say so."""
    failed = {f"{name} could not be run: ": why for name, why in run.failures.items()}
    untold = (
        begin + why for begin, why in failed.items() if not any(each.startswith(begin) for each in sheet.findings)
    )
    return (*sheet.findings, *untold)


def worst_examples(sheet: VerdictSheet, most: int) -> list[Example]:
    """The `most` worst examples; of equally bad ones each variant's first come first, those that fail before others."""
    fails = {variant for verdict, variant, _ in not_passed(sheet) if verdict is Verdict.FAIL}
    turns: Counter[str] = Counter()
    ranked = []
    for example in sheet.examples:
        ranked.append(((-_badness(example), turns[example.variant], example.variant not in fails), example))
        turns[example.variant] += 1
    return [example for _, example in sorted(ranked, key=lambda entry: entry[0])][:most]


def _badness(example: Example) -> float:
    """Lost score, and one for a defect or a missing answer."""
    lost = max(0.0, (example.baseline_score or 0.0) - (example.variant_score or 0.0))
    return lost + bool(example.defects or example.variant_text is None)


def evalsets_of(sheet: VerdictSheet) -> tuple[str, ...]:
    """Names of the sets that a summary gives scores for."""
    scores = [summary_of(sheet, name).get("mean_score_by_evalset") for name in sheet.summary]
    return tuple(dict.fromkeys(name for part in scores if isinstance(part, Mapping) for name in part))


def has_references(sheet: VerdictSheet) -> bool:
    """Whether any figure is one of right answers."""
    return any("reference_kl_mean" in summary_of(sheet, name) for name in sheet.summary)


def columns_of(sheet: VerdictSheet, columns: Iterable[Column]) -> Sequence[Column]:
    """Those of `columns` that the sheet has: figures of right answers only where some were scored."""
    some = has_references(sheet)
    return [column for column in columns if some or not column[1].startswith("reference_")]


def summary_of(sheet: VerdictSheet, name: str) -> Mapping[str, Any]:
    """The summary of one variant; empty where there is none. A missing figure is shown as `—`."""
    found = sheet.summary.get(name)
    return found if isinstance(found, Mapping) else {}
