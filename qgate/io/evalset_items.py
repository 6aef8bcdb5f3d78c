"""The lines of an items.jsonl: bytes in, validated items out. Touches nothing.

Every fault is named with the file and the line; several are reported at once.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator

from pydantic import ValidationError

from qgate.errors import EvalsetError
from qgate.schemas.base import faults
from qgate.schemas.evalset import Evalset, Item, Message
from qgate.wording import counted

MOST_SHOWN = 8


def parse(data: bytes, name: str) -> tuple[Item, ...]:
    """The items of a JSON-lines file called `name` in messages. Raises EvalsetError."""
    items: list[tuple[int, Item]] = []
    wrong: list[str] = []
    for number, line in lines(data):
        try:
            items.append((number, Item.model_validate_json(line.decode(), strict=True)))
        except UnicodeDecodeError as error:
            wrong.append(f"{name}:{number}: not UTF-8 (byte {error.start + 1} of the line)")
        except ValidationError as error:
            wrong.append(f"{name}:{number}: {describe(error)}")
    wrong += _inconsistencies(items, name)
    if wrong:
        more = f"\n  and {len(wrong) - MOST_SHOWN} more" if len(wrong) > MOST_SHOWN else ""
        raise EvalsetError(
            "the items do not validate:\n  " + "\n  ".join(wrong[:MOST_SHOWN]) + more,
            advice="one JSON object a line, UTF-8 without a byte order mark; `qgate evalset new` makes such lines",
        )
    if not items:
        raise EvalsetError(f"{name} holds no item", advice="a set without items cannot judge anything")
    return tuple(item for _, item in items)


def lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Line number (from 1) and bytes of every line that is not blank; only LF ends a line."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            yield number, line


def describe(error: ValidationError) -> str:
    """A pydantic error in one line: `field: what is wrong; …`, without its links and the input's text."""
    parts = []
    for fault in faults(error):
        where = ".".join(str(step) for step in fault["loc"])
        parts.append(f"{where}: {fault['msg']}" if where else fault["msg"])
    return "; ".join(parts)


def asked_again(line: int) -> str:
    """Why the prompt of an earlier line is no further item: one answer would be counted as several pieces of evidence."""
    return f"it asks what line {line} asks: the same prompt twice is no more evidence"


def check_apart(sets: Iterable[Evalset]) -> None:
    """Refuse sets of which one asks what another asks: an item in both would count as two. Raises EvalsetError."""
    asked: dict[tuple[tuple[str, str], ...], str] = {}
    for evalset in sets:
        mine = {words_of(item.messages): f"{evalset.name}/{item.id}" for item in evalset.items}
        if shared := [(name, asked[words]) for words, name in mine.items() if words in asked]:
            first, other = shared[0]
            raise EvalsetError(
                f"{counted(len(shared), 'prompt')} of evaluation set {evalset.name} {'is' if len(shared) == 1 else 'are'} "
                f"in another set too: {first} asks what {other} asks",
                advice="leave them out of one of the sets or narrow it by `where`, or name lm-eval's tasks in one set: the same "
                "prompt twice is no more evidence",
            )
        asked |= mine


def words_of(messages: tuple[Message, ...]) -> tuple[tuple[str, str], ...]:
    """What a prompt asks, whatever its blanks and invisible characters: roles and words."""
    return tuple((message.role, " ".join(_seen(message.content).split())) for message in messages)


def _seen(text: str) -> str:
    return text if text.isascii() else "".join(char for char in text if unicodedata.category(char) != "Cf")


def _inconsistencies(items: list[tuple[int, Item]], name: str) -> Iterator[str]:
    """Ids and prompts used twice, twins of nothing, prompts that do not end with the user.

    Blanks and invisible characters make no prompt another one, unless they are the noise of a twin.
    """
    first: dict[str, int] = {}
    asked: dict[tuple[Message, ...], int] = {}
    families: dict[tuple[tuple[str, str], ...], tuple[str, int]] = {}
    for number, item in items:
        family = item.twin_of or item.id
        earlier, line = families.setdefault(words_of(item.messages), (family, number))
        if item.id in first:
            yield f"{name}:{number}: the id {item.id!r} is already used in line {first[item.id]}"
        elif item.messages in asked or earlier != family:
            yield f"{name}:{number}: {asked_again(asked.get(item.messages, line))}"
        first.setdefault(item.id, number)
        asked.setdefault(item.messages, number)
    clean = {item.id for _, item in items if item.twin_of is None}
    for number, item in items:
        if item.twin_of is not None and item.twin_of not in clean:
            yield f"{name}:{number}: `twin_of` names {item.twin_of!r}, which is no clean item of this set"
        if item.messages[-1].role != "user":
            yield f"{name}:{number}: the last message is the {item.messages[-1].role}'s, not the user's"
