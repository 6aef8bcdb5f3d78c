"""The verdict as a section of a model card, and as results that the hub lists. Pure: values in, text and values out."""

from __future__ import annotations

from qgate.judge.promotion import Promotion
from qgate.judge.units import number
from qgate.reports.markdown import escape, grid
from qgate.reports.words import share
from qgate.schemas.policy import Policy
from qgate.schemas.recipe import BASELINE
from qgate.wording import counted

BEGIN, END = "<!-- qgate: begin -->", "<!-- qgate: end -->"


def section(promotion: Promotion, policy: Policy) -> str:
    """The section between its two markers; a later one takes its place."""
    said = promotion.statement.predicate
    judged = said.variants[promotion.variant]
    facts = judged.engine
    served = "it" if facts is None else f"it on {facts.engine} {facts.version}, {facts.device},"
    precision = escape(judged.precision)
    intro = (
        f"This checkpoint is `{promotion.variant}` ({precision}, {number(judged.bits_per_weight)} bits per "
        f"weight) of run {escape(said.run_id)}. qgate {escape(said.qgate_version)} ran {escape(served)} beside the unquantized "
        "baseline, on the same inputs with the same seeds."
    )
    sources = (
        f"Evidence: sha256 `{promotion.evidence_sha256}` ({escape(promotion.signature)}); judged "
        f"{said.finished_at:%Y-%m-%d} with the recipe {escape(said.recipe.name)} (sha256 `{said.recipe.sha256}`)."
    )
    parts = [BEGIN, "## Where it may serve", intro, _interfaces(promotion, policy), _scores(promotion), sources, END]
    return "\n\n".join(part for part in parts if part) + "\n"


def results(promotion: Promotion) -> list[dict[str, str | float]]:
    """What huggingface_hub's EvalResult takes, one per evaluation set."""
    said = promotion.statement.predicate
    scores = said.variants[promotion.variant].mean_scores
    found: list[dict[str, str | float]] = []
    for name, used in said.evalsets.items():
        score = scores.get(name.partition("@")[0])
        if score is not None:
            found.append(
                {
                    "task_type": "text-generation",
                    "dataset_type": name.partition("@")[0],
                    "dataset_name": f"{name}, {counted(used.num_items, 'item')}",
                    "dataset_revision": used.sha256,
                    "metric_type": "mean_score",
                    "metric_name": "Mean score (0 to 1), qgate",
                    "metric_value": round(score, 4),
                }
            )
    return found


def _interfaces(promotion: Promotion, policy: Policy) -> str:
    said = promotion.statement.predicate.tiers
    rows = []
    for name, interface in policy.interfaces.items():
        mine = said[name].variants.get(promotion.variant)
        verdict = "—" if mine is None else mine.verdict.value if mine.allowed else "not allowed"
        backs = ", ".join(back.server for back in interface.fallbacks)
        rows.append([escape(name), verdict, escape(interface.server or "nothing"), escape(backs) or "—"])
    return grid(["Interface", "This checkpoint", "Serves", "Falls back to"], rows)


def _scores(promotion: Promotion) -> str:
    said = promotion.statement.predicate
    baseline, mine = said.variants.get(BASELINE), said.variants[promotion.variant]
    before = {} if baseline is None else baseline.mean_scores
    rows = [[escape(name), share(before.get(name)), share(score)] for name, score in mine.mean_scores.items()]
    if baseline is not None:
        rows.append(["Answers with a defect", share(baseline.defect_share), share(mine.defect_share)])
    return grid(["Mean score", "Baseline", "This checkpoint"], rows)
