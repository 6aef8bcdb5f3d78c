"""All defects by name, and the search for them: an answer in, hits out. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType

from qgate.judge.defects import (
    empty,
    language_switch,
    mojibake,
    nonfinite_logprob,
    repetition_loop,
    role_leak,
    stray_token,
    token_flood,
    token_salad,
    truncation,
)
from qgate.judge.defects.seen import Seen
from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit


@dataclass(frozen=True, slots=True)
class Defect:
    """A kind of defect: what it is called, what it is, and the function that finds it."""

    name: str
    summary: str
    detect: Callable[[View], DefectHit | None]


def _defect(module: ModuleType) -> Defect:
    return Defect(module.NAME, module.SUMMARY, module.detect)


_OF_THE_ANSWER = tuple(map(_defect, (empty, nonfinite_logprob, truncation)))
_OF_THE_TEXT = tuple(
    map(_defect, (repetition_loop, token_flood, token_salad, stray_token, language_switch, mojibake, role_leak))
)

DEFECTS: dict[str, Defect] = {defect.name: defect for defect in _OF_THE_TEXT + _OF_THE_ANSWER}
"""Name to defect, in the order in which reports list them."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What was found in an answer."""

    hits: tuple[DefectHit, ...]
    """Defects that neither the prompt nor the baseline's answer excuses, by offset."""
    excused: tuple[str, ...]
    """Names of defects that only the baseline's answer excuses, sorted."""


def examine(seen: Seen) -> Findings:
    """Search an answer, and where something is found, the baseline's answer to the same prompt too."""
    hits = sorted(_search(seen), key=lambda hit: hit.start)
    if not hits or seen.reference is None:
        return Findings(tuple(hits), ())
    reference = replace(seen.reference, prompt=seen.prompt, language=seen.language, reference=None)
    names = {hit.name for hit in _search(reference)}
    return Findings(
        tuple(hit for hit in hits if hit.name not in names),
        tuple(sorted({hit.name for hit in hits} & names)),
    )


def find(seen: Seen) -> tuple[DefectHit, ...]:
    """The defects of an answer that neither its prompt nor the baseline's answer excuses, by offset."""
    return examine(seen).hits


def _search(seen: Seen) -> list[DefectHit]:
    view = View(seen)
    defects = _OF_THE_ANSWER if view.is_blank else _OF_THE_ANSWER + _OF_THE_TEXT
    return [hit for defect in defects if (hit := defect.detect(view)) is not None]
