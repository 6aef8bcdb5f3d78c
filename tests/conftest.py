"""How Hypothesis chooses its examples, for all suites: by what is tested, never by how fast the machine is."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

SLOW_MACHINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None, "print_blob": True}

settings.register_profile("same", derandomize=True, **SLOW_MACHINE)
settings.register_profile("search", derandomize=False, **SLOW_MACHINE)
settings.load_profile("same")
"""A change is told by the same examples every time; `--hypothesis-profile search` looks for new ones."""
