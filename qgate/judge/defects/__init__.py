"""Defects of an answer (loops, garble, leaks): what is seen of it in, hits with their offsets out. Pure.

An answer is judged against its prompt, the baseline's answer and how it ended, so that what was asked for, or what the
baseline also does, is not the variant's fault. One small module per defect; `DEFECTS` lists them.
"""

from __future__ import annotations

from qgate.judge.defects.registry import DEFECTS, Defect, Findings, examine, find
from qgate.judge.defects.seen import Seen

__all__ = ["DEFECTS", "Defect", "Findings", "Seen", "examine", "find"]
