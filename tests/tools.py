"""A locked environment by its name, for tests that need one."""

from __future__ import annotations

import pytest

from qgate.errors import EnvError
from qgate.io import envs
from qgate.ports import Tool


def tool_or_skip(spec: str) -> Tool:
    """The environment, or a python's; without it the test is skipped, with the reason."""
    try:
        return envs.resolve(spec)
    except EnvError as error:
        pytest.skip(f"{error.message} ({error.advice})")
