"""What tests need that a fresh clone has not: a locked environment by its name, the demo model's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from qgate.errors import EnvError
from qgate.io import envs
from qgate.ports import Tool

GGUF = Path(__file__).parents[1] / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"


def tool_or_skip(spec: str) -> Tool:
    """The environment, or a python's; without it the test is skipped, with the reason."""
    try:
        return envs.resolve(spec)
    except EnvError as error:
        pytest.skip(f"{error.message} ({error.advice})")


def gguf_or_skip() -> Path:
    """The file that `make model` fetches; without it the test is skipped, with the reason."""
    if not GGUF.is_file():
        pytest.skip(f"no {GGUF.name} in models/ (make model)")
    return GGUF
