"""A verified checkpoint in, its serving policy and the section of its model card on disk out. Writes disk."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime
from math import inf
from pathlib import Path

import yaml

from qgate.io import artefact, model_card
from qgate.io.checkpoint import MODEL_CARD
from qgate.io.files import write_text
from qgate.reports import card, policy
from qgate.reports.policy import Promotion
from qgate.rooms.verify import Verified
from qgate.schemas.policy import Policy


def promote(verified: Verified, tiers: Collection[str], output: Path, now: datetime) -> Policy:
    """Write the policy to `output` and the section into the checkpoint's model card. Raises StoreError, ArtefactError."""
    promotion = Promotion(
        statement=verified.statement,
        evidence_sha256=verified.evidence_sha256,
        signature=verified.signature,
        variant=verified.variant,
        checkpoint=str(verified.checkpoint),
        tiers=tiers,
    )
    made = policy.build(promotion, now)
    name = verified.checkpoint.resolve().name
    model_card.update(verified.checkpoint / MODEL_CARD, card.section(promotion, made), card.results(promotion), name)
    write_text(output, yaml.safe_dump(json.loads(artefact.dumps(made)), sort_keys=False, allow_unicode=True, width=inf))
    return made
