"""An incident's answer and an engine's answer in, whether the failure shows in it out. Pure.

Where an incident does not say how its failure is recognised: by a defect of the family that the filed answer's defects
belong to (any defect, where no answer was filed), or by likeness to the filed answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from qgate.judge.defects import DEFECTS, Seen, find
from qgate.judge.observe import came, shown, similarity
from qgate.judge.request_body import cut_at_stop, prompt_text, stop_strings
from qgate.schemas.answers import Answer
from qgate.schemas.incident import Incident, Recognition
from qgate.schemas.minimised import Body
from qgate.schemas.repro import Try

Scorer = Callable[[str, dict[str, Any], str], float]
"""As qgate.ports says."""
DEFAULT_LIKENESS = 0.8
FAMILIES = (
    frozenset({"repetition_loop", "token_flood"}),
    frozenset({"token_salad", "stray_token", "language_switch", "mojibake", "nonfinite_logprob", "token_flood"}),
    frozenset({"role_leak"}),
    frozenset({"empty"}),
)
"""Defects that one cause shows as, now this one, now that."""


@dataclass(frozen=True)
class Filed:
    """What the incident says of the bad answer; None where it does not say."""

    text: str | None = None
    finish_reason: str | None = None
    completion_tokens: int | None = None


def filed_answer(answer: str | dict[str, Any] | None) -> Filed:
    """The text, or what a whole response (chat or completion) holds."""
    if not isinstance(answer, dict):
        return Filed(text=answer)
    choice = (answer.get("choices") or [answer])[0]
    message = choice.get("message") or {}
    text = message.get("content") if message else choice.get("text", choice.get("content"))
    usage = answer.get("usage") or {}
    return Filed(text, choice.get("finish_reason"), usage.get("completion_tokens"))


@dataclass(frozen=True)
class Recogniser:
    """Tells failed answers from good ones."""

    how: Recognition
    filed: Filed
    defects: frozenset[str]
    """Names, any of which is the failure."""
    likeness: float | None
    scorer: Scorer | None = None

    def judge(self, answer: Answer, body: Body, seed: int) -> Try:
        """One answer to `body` as a try."""
        if not came(answer):
            why = answer.error or answer.status
            return _try(answer, seed, failed=self.how.error, came=self.how.error, why=why)
        text = cut_at_stop(answer.text or "", stop_strings(body))
        hits = tuple(hit.name for hit in find(replace(shown(answer, prompt_text(body), self.how.language), text=text)))
        reasons = [f"defect {name}" for name in hits if name in self.defects]
        if self.likeness is not None and self.filed.text:
            alike = similarity(self.filed.text, text)
            reasons += [f"{alike:.0%} like the filed answer"] if alike >= self.likeness else []
        if self.how.regex is not None and re.search(self.how.regex, text):
            reasons.append("the pattern is found")
        if self.how.finish_reason is not None and answer.finish_reason == self.how.finish_reason:
            reasons.append(f"ends by {answer.finish_reason}")
        if self.scorer is not None and self.how.scorer is not None:
            score = self.scorer(text, self.how.scorer.args, self.how.language)
            reasons += [f"score {score:.2f}"] if score < self.how.below else []
        return _try(answer, seed, failed=bool(reasons), why="; ".join(reasons), defects=hits)

    def in_words(self) -> str:
        """How a failure is recognised, for the report."""
        parts = [f"one of the defects {', '.join(sorted(self.defects))}"] if self.defects else []
        parts += [f"at least {self.likeness:.0%} like the filed answer"] if self.likeness and self.filed.text else []
        parts += [f"the pattern `{self.how.regex}`"] if self.how.regex else []
        parts += [f"`{self.how.scorer.name}` scores below {self.how.below:g}"] if self.how.scorer else []
        parts += [f"an end by `{self.how.finish_reason}`"] if self.how.finish_reason else []
        parts += ["no answer at all"] if self.how.error else []
        return ", or ".join(parts)


def recogniser(incident: Incident, load: Callable[[str], Scorer]) -> Recogniser:
    """The incident's recogniser. `load` looks a scorer up by name; raises what it raises."""
    how, filed = incident.recognise, filed_answer(incident.answer)
    scorer = load(how.scorer.name) if how.scorer else None
    if not how.is_default:
        return Recogniser(how, filed, frozenset(how.defects), how.likeness, scorer)
    return Recogniser(how, filed, _expected(incident, filed), DEFAULT_LIKENESS if filed.text else None)


def defects_of(text: str | None, body: Body, finish_reason: str | None, language: str) -> tuple[str, ...]:
    """Names of the defects in a text that answers `body`."""
    seen = Seen(text=text, prompt=prompt_text(body), finish_reason=finish_reason, language=language)
    return tuple(hit.name for hit in find(seen))


def _expected(incident: Incident, filed: Filed) -> frozenset[str]:
    """The families of the filed answer's defects; all, where nothing was filed; none, where it has no defect."""
    if filed.text is None:
        return frozenset(DEFECTS) - {"truncation"}
    found = defects_of(filed.text, incident.request.body, filed.finish_reason, incident.recognise.language)
    return frozenset(found).union(*(family for family in FAMILIES if family & set(found)))


def _try(answer: Answer, seed: int, *, failed: bool, why: str, came: bool = True, defects: tuple[str, ...] = ()) -> Try:
    return Try(
        failed=failed,
        text=answer.text,
        finish_reason=answer.finish_reason,
        defects=defects,
        seed=seed,
        came=came,
        why=why,
        prompt_token_ids_sha256=answer.prompt_token_ids_sha256,
        prompt_tokens=answer.prompt_tokens,
        completion_tokens=answer.completion_tokens,
    )
