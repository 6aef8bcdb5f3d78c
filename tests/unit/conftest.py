"""Fixtures that several areas share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.promoted import Promoted, judge


@pytest.fixture(scope="session")
def _judged(tmp_path_factory: pytest.TempPathFactory) -> Promoted:
    return judge(tmp_path_factory.mktemp("judged"))


@pytest.fixture
def promoted(_judged: Promoted, tmp_path: Path) -> Promoted:
    """A copy of a judged run's evidence and checkpoints, to tamper with."""
    return _judged.copy(tmp_path)
