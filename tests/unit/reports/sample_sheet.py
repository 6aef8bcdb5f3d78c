"""The verdict sheet of the sample: four tiers and every state that a verdict can have."""

from __future__ import annotations

from typing import Any

from qgate.schemas.verdict import (
    Breakdown,
    CriterionResult,
    Estimate,
    Example,
    TierVerdict,
    VariantVerdict,
    Verdict,
    VerdictSheet,
)
from tests.unit.reports.sample_run import DAMAGE, PRECISION, RUN_ID, SETS, SPEED, TEXTS, WEIGHT_BYTES


def _estimate(value: float | None, spread: float, items: int = 120) -> Estimate:
    low, high = (None, None) if value is None else (value - spread, value + spread)
    pairs = 0 if value is None else 3 * items
    return Estimate(
        value=value, low=low, high=high, num_items=items if value is not None else 0, num_pairs=pairs,
        method="cluster bootstrap-t",
    )  # fmt: skip


def _criterion(metric: str, margin: float, value: float | None, verdict: Verdict, reason: str, **more: Any) -> Any:
    spread = more.pop("spread", margin / 3 or 0.004)
    scope = more.pop("scope", "all sets")
    floor = None if value is None else _estimate(margin * 0.05, margin * 0.08 or 0.001)
    return CriterionResult(
        metric=metric, scope=scope, margin=margin, estimate=_estimate(value, spread), floor=floor, verdict=verdict,
        reason=reason, baseline_value=0.71, variant_value=None if value is None else 0.71 - value, **more,
    )  # fmt: skip


def _good() -> tuple[CriterionResult, ...]:
    return (
        _criterion("score_loss", 0.02, 0.004, Verdict.PASS, "loses 0.4 pp at most 1.1 pp"),
        _criterion("score_loss", 0.03, 0.006, Verdict.PASS, "loses 0.6 pp", scope="instruction · warm · language=zh"),
        _criterion("defect_increase", 0.01, 0.0011, Verdict.PASS, "0.1 pp more defects"),
        _criterion("kl_mean", 0.06, 0.0123, Verdict.PASS, "0.012 nats", spread=0.002),
    )


def _bad() -> tuple[CriterionResult, ...]:
    return (
        _criterion("score_loss", 0.02, 0.187, Verdict.FAIL, "loses at least 18.0 pp, more than the 2 pp allowed"),
        _criterion("defect_increase", 0.01, 0.131, Verdict.FAIL, "repetition_loop in 13.1 pp more answers than FP16"),
        _criterion("kl_mean", 0.06, 0.41, Verdict.FAIL, "0.41 nats from FP16's own answers", spread=0.02),
        _criterion("flip_rate", 0.1, 0.093, Verdict.INVALID, "the A/A arm itself flips 12 % of the answers"),
        _criterion("truncation_increase", 0.0, None, Verdict.VOID, "no answer in scope"),
    )


def _unsettled() -> tuple[CriterionResult, ...]:
    return (
        _criterion(
            "score_loss", 0.02, 0.013, Verdict.INCONCLUSIVE, "loses 1.3 pp, between 0.1 and 2.5 pp; 190 more items",
            spread=0.012, further_items=190,
        ),
        _criterion("defect_increase", 0.01, 0.004, Verdict.PASS, "0.4 pp more defects"),
        _criterion("kl_mean", 0.06, 0.031, Verdict.PASS, "0.031 nats", flags=("implausible gain",)),
    )  # fmt: skip


def _variant(name: str, verdict: Verdict, reason: str, criteria: Any = (), *, allowed: bool = True) -> VariantVerdict:
    return VariantVerdict(
        variant=name, precision=PRECISION[name], allowed=allowed, verdict=verdict, reason=reason, criteria=criteria
    )


def _variants() -> tuple[VariantVerdict, ...]:
    return (
        _variant("baseline", Verdict.PASS, "the reference"),
        _variant("w8a8", Verdict.PASS, "all 4 criteria pass", _good()),
        _variant("awq", Verdict.INCONCLUSIVE, "score loss not settled: 190 more items would", _unsettled()),
        _variant("gptq", Verdict.FAIL, "repetition_loop in 13.1 pp more answers than FP16 (1 pp allowed)", _bad()),
    )


def sheet() -> VerdictSheet:
    only_baseline = tuple(
        replace_model(v, allowed=v.variant == "baseline", criteria=(), verdict=Verdict.PASS, reason="FP16 only")
        for v in _variants()
    )
    tiers = (
        _tier("public-chat", "w8a8", Verdict.PASS, "all 4 criteria pass", "w8a8", "Anonymous users in a browser"),
        _tier("agents", "awq", Verdict.INCONCLUSIVE, "score loss not settled: 190 more items would", "w8a8"),
        _tier("batch-summaries", "gptq", Verdict.FAIL, "13.1 pp more defects (1 pp allowed)", "baseline"),
        TierVerdict(
            tier="evaluation-api", default="baseline", verdict=Verdict.PASS, reason="only FP16 is allowed here",
            serve="baseline", variants=only_baseline,
        ),
    )  # fmt: skip
    return VerdictSheet(
        run_id=RUN_ID, recipe="smollm2-demo", engine="transformers", tiers=tiers, findings=FINDINGS,
        breakdowns=_breakdowns(), examples=examples(), summary=_summary(),
    )  # fmt: skip


FINDINGS = (
    "gptq leaves the noise floor at output position 65–128: damage grows with the answer's length",
    "The numbers come from transformers on a CPU; a tier that accepts only vllm cannot use them",
)


def replace_model(value: Any, **changes: Any) -> Any:
    return value.model_copy(update=changes)


def _tier(name: str, default: str, verdict: Verdict, reason: str, serve: str, description: str = "") -> TierVerdict:
    return TierVerdict(
        tier=name, description=description, default=default, verdict=verdict, reason=reason, serve=serve,
        variants=_variants(),
    )  # fmt: skip


def _breakdowns() -> tuple[Breakdown, ...]:
    axes = {
        "output position": ("1–16", "17–32", "33–64", "65–128", "129–256"),
        "prompt length": ("≤256", "257–1k", "1k–4k", "4k–16k"),
        "temperature": ("0", "0.8"),
        "noise": ("ocr", "keyboard", "asr", "emoji"),
        "language": ("en", "zh", "ar", "es"),
        "prompt length × temperature": ("≤256 × 0", "≤256 × 0.8", "1k–4k × 0", "1k–4k × 0.8", "4k–16k × 0"),
    }
    return tuple(
        _breakdown(variant, metric, axis, labels)
        for axis, labels in axes.items()
        for metric in (("kl_mean", "top1_disagreement") if axis == "output position" else ("defect_rate", "score_loss"))
        for variant in DAMAGE
    )


def _breakdown(variant: str, metric: str, axis: str, labels: tuple[str, ...]) -> Breakdown:
    damage = DAMAGE[variant]
    values: list[float | None] = [damage * (0.4 + 0.3 * index) for index in range(len(labels))]
    base, floor = (0.71, 0.7) if metric == "score_loss" else (0.004, 0.006)
    if metric == "score_loss":
        values = [base - (value or 0.0) for value in values]
    if variant == "awq":
        values[-1] = None
    return Breakdown(
        variant=variant, metric=metric, axis=axis, labels=labels, baseline=tuple(base for _ in labels),
        variant_values=tuple(values), floor=tuple(floor for _ in labels), num=tuple(60 for _ in labels),
        first_departure=labels[2] if variant == "gptq" and len(labels) > 2 else None,
    )  # fmt: skip


def _example(name: str, text: str | None, defects: tuple[str, ...], where: str, language: str = "en") -> Example:
    return Example(
        id=f"instruction/{name}/warm/3", evalset="instruction", variant="gptq",
        prompt_tail="When does the parcel arrive? Answer in one sentence.", baseline_text=TEXTS[language] * 3,
        variant_text=text, baseline_score=1.0, variant_score=0.0, defects=defects, where=where,
    )  # fmt: skip


def examples() -> tuple[Example, ...]:
    loop = TEXTS["en"] * 3 + " Please keep the receipt." * 12
    hostile = (
        "Sure.\x1b[2J\x1b]0;owned\x07 [bold red]not markup[/] <script>alert(1)</script> \u202egnp.exe\u2069 \x00 | `x`"
    )
    return (
        _example("json-schema-00012", loop, ("repetition_loop",), f"char {len(TEXTS['en']) * 3}: repetition_loop"),
        _example("format-00044", hostile, ("token_salad",), "char 5: token_salad"),
        _example("format-00051", "包裹九点\ufffd\ufffd离开", ("mojibake",), "char 4: mojibake", "zh"),
        _example("format-00052", None, (), ""),
    )


def _summary() -> dict[str, Any]:
    summary: dict[str, Any] = {}
    for index, name in enumerate(PRECISION):
        summary[name] = {
            "precision": PRECISION[name],
            "bits_per_weight": 8 * WEIGHT_BYTES[name] / 134_515_008,
            "weight_bytes": WEIGHT_BYTES[name],
            "mean_score": 0.713 - DAMAGE.get(name, 0.0) / 2,
            "mean_score_by_evalset": {key: 0.7 - 0.05 * index - 0.02 * place for place, key in enumerate(SETS)},
            "defect_share": 0.004 + DAMAGE.get(name, 0.0) / 3,
            "tokens_per_s": SPEED[name],
            "kl_mean": None if name == "baseline" else DAMAGE[name] * 1.1,
            "top1_agreement": None if name == "baseline" else 1 - DAMAGE[name],
            "identical_share": None if name == "baseline" else 0.8 - DAMAGE[name],
            "num_answers": 240,
        }
    return summary
