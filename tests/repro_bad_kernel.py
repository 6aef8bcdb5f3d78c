"""An engine plugin that serves as `transformers` does, with a bad kernel for quantized layers. For tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from qgate import ports
from qgate.engines.transformers import ENGINE as HEALTHY
from qgate.ports import ServeJob, Session, Tool

NAME = "bad-kernel"
WORKER = Path(__file__).with_name("repro_bad_kernel_serve.py")


class BadKernel:
    """Satisfies qgate.ports.Engine."""

    name = NAME
    options = HEALTHY.options
    lock = HEALTHY.lock
    workers = (*HEALTHY.workers, WORKER)

    def device(self, tool: Tool) -> str:
        """As the healthy engine's."""
        return HEALTHY.device(tool)

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[Session]:
        """The healthy engine, its worker started through the bad one."""
        python = job.work / "python"
        python.write_text(f'#!/bin/sh\nexec "{job.tool.python}" "{WORKER}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
        with HEALTHY.open(replace(job, tool=replace(job.tool, python=python))) as session:
            session.facts = session.facts.model_copy(update={"engine": NAME})
            yield session


ENGINE = BadKernel()


def install(patch: pytest.MonkeyPatch) -> None:
    """Make the plugin known, as if a package had brought it."""
    known = ports.entry_points

    def with_ours(*, group: str) -> list[EntryPoint]:
        ours = EntryPoint(name=NAME, value=f"{__name__}:ENGINE", group="qgate.engines")
        return [*known(group=group), *([ours] if group == "qgate.engines" else [])]

    patch.setattr(ports, "entry_points", with_ours)
