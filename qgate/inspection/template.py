"""Chat templates: rendered on fixed conversations beside the baseline's, in jinja2's sandbox. Pure.

Two templates that render alike are alike, however they are written; transformers' own environment is imitated
(trim_blocks, lstrip_blocks, loop controls, `raise_exception`, `strftime_now` at a fixed date, `tojson` as it writes it).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts, TokenizerFacts
from qgate.inspection.tokenizer import special_token
from qgate.schemas.inspection import Finding

TEMPLATE_MISSING = Code(
    "template-missing",
    WARNING,
    breaks="chat requests are refused",
    fix="copy the baseline's chat template",
)
TEMPLATE_DIFFERS = Code(
    "template-differs",
    WARNING,
    breaks="the model is asked in another form than the baseline",
    fix="copy the baseline's chat template",
)
TEMPLATE_BROKEN = Code(
    "template-broken",
    WARNING,
    breaks="chat requests fail",
    fix="copy the baseline's chat template",
)

TEMPLATE_TWICE = Code(
    "template-twice",
    WARNING,
    breaks="transformers and vLLM take the file; what reads tokenizer_config.json alone asks the model in another form",
    fix="keep one of both, the baseline's",
)

CODES = (TEMPLATE_MISSING, TEMPLATE_DIFFERS, TEMPLATE_BROKEN, TEMPLATE_TWICE)
USER, ANSWER, SYSTEM = "What is 2 + 3?", "2 + 3 is 5.", "You are brief."
CONVERSATIONS: tuple[tuple[Mapping[str, Any], ...], ...] = (
    ({"role": "user", "content": USER},),
    ({"role": "system", "content": SYSTEM}, {"role": "user", "content": USER}),
    (
        {"role": "user", "content": USER},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": "¿Y 7 × 8? 数字だけ。\n"},
    ),
)
TOOL = {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}}
TRACKING = re.compile(r"{%-?\s*(end)?generation\s*-?%}")
"""A tag of transformers' own that marks the assistant's tokens and prints nothing."""
FIXED_DATE = "26 Jul 2024"


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """Findings on the default template, against the baseline's where there is one."""
    mine, theirs = facts.tokenizer, baseline.tokenizer if baseline is not None else TokenizerFacts()
    text, known = mine.templates.get("default"), theirs.templates.get("default")
    if text is None:
        if known is not None:
            yield TEMPLATE_MISSING.at("chat_template", f"the baseline has one ({sha256(known)})")
        return
    rendered = [render(text, mine, messages) for messages in CONVERSATIONS]
    beside = mine.settings.get("chat_template")
    if isinstance(beside, str) and beside != text and beside != theirs.settings.get("chat_template"):
        detail = f"{sha256(text)} in a file of its own, {sha256(beside)} in tokenizer_config.json"
        yield TEMPLATE_TWICE.at("tokenizer_config.json: chat_template", detail)
    if rendered[0] is None and (known is None or render(known, theirs, CONVERSATIONS[0]) is not None):
        yield TEMPLATE_BROKEN.at("chat_template", f"it does not render a single question ({sha256(text)})")
    elif known is not None and text != known:
        wanted = [render(known, theirs, messages) for messages in CONVERSATIONS]
        with_tools = [render(each, side, CONVERSATIONS[0], [TOOL]) for each, side in ((text, mine), (known, theirs))]
        if rendered != wanted or with_tools[0] != with_tools[1]:
            hashes = f"{sha256(text)} against {sha256(known)}"
            yield TEMPLATE_DIFFERS.at("chat_template", f"{_first_difference(rendered, wanted)} ({hashes})")


def sha256(text: str) -> str:
    """The first twelve digits: enough to tell templates apart."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def render(
    text: str, tokenizer: TokenizerFacts, messages: tuple[Mapping[str, Any], ...], tools: list[Any] | None = None
) -> str | None:
    """The prompt, or None where the template refuses the conversation or is broken."""
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _tojson
    environment.globals["raise_exception"] = _raise
    environment.globals["strftime_now"] = lambda pattern: FIXED_DATE
    tokens = {
        name: special_token(tokenizer, name) or "" for name in ("bos_token", "eos_token", "pad_token", "unk_token")
    }
    try:
        return environment.from_string(TRACKING.sub("", text)).render(
            messages=[dict(message) for message in messages], tools=tools, add_generation_prompt=True, **tokens
        )
    except (jinja2.TemplateError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError):
        return None


def _tojson(value: Any, indent: int | None = None, **_: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _raise(message: str) -> None:
    raise jinja2.TemplateError(message)


def _first_difference(mine: list[str | None], theirs: list[str | None]) -> str:
    for ours, other in zip(mine, theirs, strict=True):
        if ours != other:
            start = _common(ours or "", other or "")
            shown = [
                repr(text[max(0, start - 20) : start + 40]) if text is not None else "nothing" for text in (ours, other)
            ]
            return f"it renders {shown[0]}, the baseline's {shown[1]}"
    return "it renders tools in another form"


def _common(first: str, second: str) -> int:
    pairs = zip(first, second, strict=False)
    return next((number for number, (a, b) in enumerate(pairs) if a != b), min(len(first), len(second)))
