"""What all suites have in common whatever the machine: Hypothesis's examples, a plain environment, servers within reach."""

from __future__ import annotations

import os
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from qgate.engines.fake import ENGINE

SLOW_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None, "print_blob": True}

settings.register_profile("same", derandomize=True, **SLOW_MACHINE)
settings.register_profile("search", derandomize=False, **SLOW_MACHINE)
settings.load_profile("same")
"""A change is told by the same examples every time; `--hypothesis-profile search` looks for new ones."""

for _name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE",
              "GITHUB_ACTIONS", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "QGATE_RESULTS", "QGATE_MODEL"):  # fmt: skip
    os.environ.pop(_name, None)
"""How wide and coloured the caller's terminal is, and of which workflow's step the tests may be a part."""

_AROUND = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
os.environ["no_proxy"] = ",".join(filter(None, (_AROUND, "127.0.0.1", "localhost")))
"""A machine may have a proxy for its package index, which does not reach what a test serves."""


@pytest.fixture(autouse=True)
def _no_sessions_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake engine's draws depend on how many sessions a variant had: none of other tests."""
    monkeypatch.setattr(ENGINE, "_sessions", Counter())


def pytest_fixture_setup(fixturedef: pytest.FixtureDef[object]) -> None:
    """Nor on those of fixtures that tests share, of which another worker of the suite sets up others before."""
    if fixturedef.scope != "function":
        ENGINE._sessions.clear()
