"""A run as it could have been: four tiers, every verdict state, several scripts, any number of answers."""

from __future__ import annotations

import random

from qgate.reports.bundle import ReportBundle
from tests.unit.reports.sample_answers import places, request, rows
from tests.unit.reports.sample_run import DAMAGE, PRECISION, recipe, run
from tests.unit.reports.sample_sheet import sheet

__all__ = ["PRECISION", "bundle", "recipe", "run", "sheet"]


def bundle(num_answers: int = 240, *, seed: int = 7) -> ReportBundle:
    """A bundle with about `num_answers` answers of variants, the baseline's and the A/A arm's beside them."""
    where = places(max(1, num_answers // len(DAMAGE)))
    return ReportBundle(
        run=run(len(where)),
        sheet=sheet(),
        rows=rows(where, random.Random(seed)),
        recipe=recipe(),
        requests={place.id: request(place) for place in where},
    )
