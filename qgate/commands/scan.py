"""`qgate scan FILE`: defects in answers of any origin. Reads a file or standard input; needs no model."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from qgate.errors import ExitCode
from qgate.io import answers_file
from qgate.io.answers_file import BadLine, FoundAnswer
from qgate.judge.defects import find
from qgate.schemas.evidence import DefectHit
from qgate.wording import counted


def scan(args: argparse.Namespace) -> ExitCode:
    """Print one JSON line per answer of `args.file` (`-`: standard input), and a summary on stderr.

    FAIL where a defect was found; else USER_ERROR where a line could not be read; else PASS. Raises UserError where no
    line holds an answer.
    """
    num_answers, num_bad, counts = 0, 0, Counter[str]()
    num_defective = 0
    for found in answers_file.read(args.file):
        if isinstance(found, BadLine):
            num_bad += 1
            sys.stderr.write(f"line {found.number} {found.reason}\n")
            continue
        hits = find(found.seen)
        sys.stdout.write(_line(found, hits))
        num_answers += 1
        num_defective += bool(hits)
        counts.update(hit.name for hit in hits)
    sys.stderr.write(_summary(num_answers, num_defective, num_bad, counts))
    if num_defective:
        return ExitCode.FAIL
    return ExitCode.USER_ERROR if num_bad else ExitCode.PASS


def _line(answer: FoundAnswer, hits: tuple[DefectHit, ...]) -> str:
    """ASCII JSON, so that broken characters of an answer cannot break the output."""
    defects = [{"name": hit.name, "start": hit.start, "detail": hit.detail} for hit in hits]
    return json.dumps({"id": answer.id, "defects": defects}) + "\n"


def _summary(num_answers: int, num_defective: int, num_bad: int, counts: Counter[str]) -> str:
    said = f"{num_defective} of {num_answers} answers have defects"
    if counts:
        said += ": " + ", ".join(f"{name} {num}" for name, num in counts.most_common())
    if num_bad:
        said += f"; {counted(num_bad, 'line')} could not be read"
    return said + "\n"
