"""How Hypothesis chooses its examples, for all suites."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("same", derandomize=True, database=None, print_blob=True)
settings.register_profile("search", derandomize=False, database=None, print_blob=True)
settings.load_profile("same")
"""A change is told by the same examples every time; `--hypothesis-profile search` looks for new ones."""
