"""All that a full report is drawn from. Data only, touches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from qgate.schemas.answers import GenerateRequest
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import Recipe
from qgate.schemas.run import Run
from qgate.schemas.verdict import VerdictSheet


@dataclass(frozen=True)
class ReportBundle:
    """A run, what was decided, the answers, and the requests that they answer."""

    run: Run
    sheet: VerdictSheet
    rows: Sequence[Row]
    recipe: Recipe
    requests: Mapping[str, GenerateRequest] = field(default_factory=dict)
    """By request id (`evalset/item/profile/seed`); an answer whose request is missing has no curl command."""
