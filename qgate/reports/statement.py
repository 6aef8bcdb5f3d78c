"""evidence.intoto.json: the run as an in-toto statement that travels with a checkpoint. Pure: values in, text out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from qgate.reports.bundle import ReportBundle
from qgate.reports.words import summary_of
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import Tier
from qgate.schemas.statement import (
    Digest,
    JudgedSet,
    JudgedVariant,
    Judgement,
    RecipeReference,
    SaidOfTier,
    SaidOfVariant,
    Size,
    Statement,
    Subject,
)
from qgate.schemas.verdict import TierVerdict


def render(bundle: ReportBundle, evalsets: Mapping[str, JudgedSet]) -> str:
    """The statement as readable JSON. `evalsets`: by `name@version`."""
    return json.dumps(build(bundle, evalsets).model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"


def build(bundle: ReportBundle, evalsets: Mapping[str, JudgedSet]) -> Statement:
    """Everything that a promotion depends on, bound to the bytes of the checkpoints."""
    run, sheet = bundle.run, bundle.sheet
    predicate = Judgement.model_validate(
        {
            "qgate_version": run.qgate_version,
            "run_id": run.run_id,
            "started_at": run.started_at,
            "finished_at": run.finished_at,
            "recipe": RecipeReference(name=run.recipe_name, sha256=run.recipe_sha256),
            "evalsets": dict(evalsets),
            "engine": sheet.engine,
            "variants": {name: _variant(bundle, checkpoint) for name, checkpoint in run.checkpoints.items()},
            "tiers": {tier.tier: _tier(tier, bundle.recipe.tiers[tier.tier]) for tier in sheet.tiers},
        }
    )
    subjects = (subject for checkpoint in run.checkpoints.values() for subject in _subjects(checkpoint))
    return Statement(subject=tuple(subjects), predicate=predicate)


def _subjects(checkpoint: Checkpoint) -> Iterator[Subject]:
    for name, record in sorted(checkpoint.files.items()):
        size = Size(size_bytes=record.size_bytes)
        yield Subject(name=f"{checkpoint.name}/{name}", digest=Digest(sha256=record.sha256), annotations=size)


def _variant(bundle: ReportBundle, checkpoint: Checkpoint) -> JudgedVariant:
    facts, figures = bundle.run.engine_facts.get(checkpoint.name), summary_of(bundle.sheet, checkpoint.name)
    return JudgedVariant(
        precision=checkpoint.precision,
        digest=checkpoint.digest,
        path=str(checkpoint.path),
        source=checkpoint.source,
        bits_per_weight=checkpoint.bits_per_weight,
        engine=None if facts is None else facts.model_copy(update={"details": {}, "start_s": None}),
        mean_scores=figures.get("mean_score_by_evalset", {}),
        defect_share=figures.get("defect_share"),
    )


def _tier(tier: TierVerdict, asked: Tier) -> SaidOfTier:
    return SaidOfTier(
        description=tier.description,
        default=tier.default,
        fallback=asked.fallback,
        serve=tier.serve,
        verdict=tier.verdict,
        reason=tier.reason,
        variants={
            each.variant: SaidOfVariant(verdict=each.verdict, allowed=each.allowed, reason=each.reason)
            for each in tier.variants
        },
    )
