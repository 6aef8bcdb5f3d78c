"""Weights with zeros where there should be none, as a download leaves them that ended after the file was allocated. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.schemas.inspection import Finding

WEIGHTS_BLANK = Code(
    "weights-blank",
    WARNING,
    breaks="a stretch of these weights is all zeros: the file was allocated and not filled, or the layer was erased",
    fix="compare the file with its published hash, and copy or download it again",
)

CODES = (WEIGHTS_BLANK,)


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """A finding for all tensors that are so, but not in the baseline."""
    theirs = baseline.blank if baseline is not None else frozenset()
    if new := sorted(facts.blank - theirs):
        files = sorted({facts.headers[name].file for name in new})
        yield WEIGHTS_BLANK.at(new, f"the bytes in its middle are zero; it is in {files[0]}")
