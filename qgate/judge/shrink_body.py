"""A request body ↔ the draft of its prompt, which can be cut into pieces and put together from some of them. Pure.

A draft holds the texts of a chat's messages or of a completion's prompts; everything else of the body stays as filed.
What is no text (an image, a call of a tool) is one piece, there whole or not at all. Token ids are pieces of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

from qgate.judge.shrink_roles import repair
from qgate.judge.shrink_text import split
from qgate.schemas.minimised import Body, Level

Content = str | tuple[int, ...] | None


@dataclass(frozen=True)
class Part:
    """A stretch of a prompt: where it stands, and its text, its token ids, or None for what cannot be cut."""

    turn: int
    """Index of the message, or of the prompt."""
    place: int
    """Index in a message's list of content parts; 0 where its content is one text."""
    content: Content


Draft = tuple[Part, ...]
Piece = tuple[Part, ...]
"""What is kept or cut as one: the parts of a whole turn, or one stretch of text."""


def read(body: Body) -> Draft:
    """The draft of a body as filed. Raises ValueError where it has neither `messages` nor `prompt`."""
    if isinstance(messages := body.get("messages"), list) and messages:
        return tuple(part for turn, message in enumerate(messages) for part in _parts(turn, message.get("content")))
    prompt = body.get("prompt")
    if prompt is None or prompt == []:
        raise ValueError("the request has neither `messages` nor a `prompt`")
    return tuple(Part(turn, 0, _content(one)) for turn, one in enumerate(_prompts(prompt)))


def _prompts(prompt: Any) -> list[Any]:
    """A completion's prompts: it may be one text, one list of token ids, or a list of either."""
    many = isinstance(prompt, list) and not isinstance(prompt[0], int)
    return prompt if many else [prompt]


def _content(value: Any) -> Content:
    if isinstance(value, list) and all(isinstance(one, int) for one in value):
        return tuple(value)
    return value if isinstance(value, str) else None


def _parts(turn: int, content: Any) -> list[Part]:
    if not isinstance(content, list) or not content:
        return [Part(turn, 0, content if isinstance(content, str) else None)]
    return [Part(turn, place, one.get("text") if isinstance(one, dict) else None) for place, one in enumerate(content)]


def write(draft: Draft, body: Body) -> Body:
    """`body` with the prompt that `draft` is."""
    kept = {turn: list(parts) for turn, parts in groupby(draft, key=lambda part: part.turn)}
    if body.get("messages"):
        return body | {"messages": [_message(body["messages"][turn], parts) for turn, parts in kept.items()]}
    filed = body["prompt"]
    texts = [
        list(part.content) if isinstance(part.content, tuple) else part.content for (part,) in kept.values()
    ]  # fmt: skip
    return body | {"prompt": texts if _prompts(filed) is filed else texts[0]}


def _message(message: dict[str, Any], parts: Sequence[Part]) -> dict[str, Any]:
    content = message.get("content")
    if isinstance(content, list) and content:
        filed = [(content[part.place], part.content) for part in parts]
        return message | {"content": [one if text is None else one | {"text": text} for one, text in filed]}
    return message if parts[0].content is None else message | {"content": parts[0].content}


def pieces(draft: Draft, level: Level) -> tuple[Piece, ...]:
    """What `draft` is cut into at `level`, in order."""
    if level == "turns":
        return tuple(tuple(parts) for _, parts in groupby(draft, key=lambda part: part.turn))
    return tuple((replace(part, content=content),) for part in draft for content in _cut(part.content, level))


def _cut(content: Content, level: Level) -> Iterable[Content]:
    if isinstance(content, str):
        return split(content, level)
    if isinstance(content, tuple) and level in {"words", "characters"}:
        return [(token,) for token in content]
    return [content]


def joined(kept: Iterable[Piece], body: Body) -> Draft | None:
    """The draft of these pieces, with the turns dropped that may not stay; None where no valid request is left."""
    parts = [part for piece in kept for part in piece]
    if body.get("messages"):
        turns = set(repair([part.turn for part in parts], body["messages"]))
        parts = [part for part in parts if part.turn in turns]
    merged = [_merge(list(group)) for _, group in groupby(parts, key=lambda part: (part.turn, part.place))]
    return tuple(merged) or None


def _merge(parts: list[Part]) -> Part:
    """Stretches of one place as one."""
    first = parts[0]
    if isinstance(first.content, str):
        return replace(first, content="".join(str(part.content) for part in parts))
    if isinstance(first.content, tuple):
        return replace(
            first, content=tuple(token for part in parts if isinstance(part.content, tuple) for token in part.content)
        )
    return first


def count(draft: Draft, level: Level) -> int:
    """Words or characters of `draft`; ids count one each, what cannot be cut and empty texts none."""
    return sum(
        len(part.content) if isinstance(part.content, tuple) else len(split(part.content, level))
        for part in draft
        if part.content
    )
