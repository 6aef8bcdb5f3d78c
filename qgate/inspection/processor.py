"""The files that turn images, sound and video into a model's input: there where the baseline has them. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.schemas.inspection import Finding

PROCESSOR_MISSING = Code(
    "processor-missing",
    WARNING,
    breaks="engines do not start a model that takes images, sound or video without them",
    fix="copy the baseline's preprocessor_config.json, processor_config.json and the like",
)

CODES = (PROCESSOR_MISSING,)
FILES = frozenset({"preprocessor_config.json", "processor_config.json", "video_preprocessor_config.json"})
"""transformers 5 writes all of them into the second."""


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """A finding where none of the baseline's is there."""
    theirs = sorted(FILES & baseline.files) if baseline is not None else []
    if theirs and not FILES & facts.files:
        yield PROCESSOR_MISSING.at(theirs, "the baseline has it")
