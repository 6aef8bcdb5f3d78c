"""A verified checkpoint in, its serving policy and the section of its model card on disk out. Writes disk."""

from __future__ import annotations

import json
from datetime import datetime
from math import inf
from pathlib import Path

import yaml

from qgate.io import artefact, model_card
from qgate.io.checkpoint import MODEL_CARD
from qgate.io.files import write_text
from qgate.judge.promotion import Promotion
from qgate.reports import card, policy
from qgate.schemas.policy import Policy


def promote(promotion: Promotion, output: Path, now: datetime) -> Policy:
    """Write the policy to `output` and the section into the checkpoint's model card. Raises StoreError, ArtefactError."""
    made = policy.build(promotion, now)
    name = promotion.checkpoint.resolve().name
    model_card.update(promotion.checkpoint / MODEL_CARD, card.section(promotion, made), card.results(promotion), name)
    write_text(output, yaml.safe_dump(json.loads(artefact.dumps(made)), sort_keys=False, allow_unicode=True, width=inf))
    return made
