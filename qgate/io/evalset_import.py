"""One's own prompts as items: the bytes of a JSONL file in, items and what was left of each line out. Touches nothing.

Two kinds of line are read. A question has `prompt` or `messages`, an `answer` and a `scorer`, and may say `id`, `kind`,
`language`, `difficulty`, `slices`, `max_tokens`, and as `reference` a right answer in full. A recorded request is the
body of an OpenAI chat completion, bare or in a line of their batch format (`custom_id`, `body`): it has no right answer,
so what is scored is that there is one and that it does not loop. Every other field of a request is kept aside. Secrets
are removed before anything is kept, and no message of an error holds a word of the input.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from qgate.errors import QgateError
from qgate.io.evalset_items import asked_again, describe, lines, words_of
from qgate.io.redact import redact
from qgate.schemas.evalset import Item, ScorerUse
from qgate.wording import near_or_known

QUESTION_FIELDS = frozenset(
    {
        "id", "prompt", "messages", "answer", "reference", "scorer", "kind", "language", "difficulty", "slices",
        "max_tokens",
    }
)  # fmt: skip
ANSWERED = {
    "name": "constraints",
    "args": {"checks": [{"name": "length_constraints:number_characters", "args": {"min": 1}}]},
}
"""The scorer of a recorded request: an answer that is there and does not loop."""
DEFAULT_DIFFICULTY = 3


class LineError(ValueError):
    """What is wrong with one line."""


@dataclass(frozen=True)
class Fault:
    """A line that is no item, and why."""

    line: int
    reason: str


@dataclass(frozen=True)
class Imported:
    """What a file gave."""

    items: tuple[Item, ...]
    aside: tuple[dict[str, Any], ...]
    """Per recorded request, `id` and every field that is not part of the item."""
    faults: tuple[Fault, ...]
    num_secrets: int


def read(data: bytes, check: Callable[[ScorerUse], None]) -> Imported:
    """The items of a JSONL file, and every line that is none. `check` raises QgateError or ValueError on a scorer."""
    items: list[Item] = []
    aside: list[dict[str, Any]] = []
    faults: list[Fault] = []
    taken: dict[str, int] = {}
    asked: dict[tuple[tuple[str, str], ...], int] = {}
    total = 0
    for number, line in lines(data):
        try:
            value, num_secrets = redact(_object(line))
            item, rest = _item(value, f"line-{number:06d}")
            check(item.scorer)
            if item.id in taken:
                raise LineError(f"its id is already used in line {taken[item.id]}")
            if (words := words_of(item.messages)) in asked:
                raise LineError(asked_again(asked[words]))
        except QgateError as error:
            faults.append(Fault(number, f"{error.message} ({error.advice})" if error.advice else error.message))
            continue
        except ValueError as error:
            faults.append(Fault(number, str(error)))
            continue
        taken[item.id] = asked[words] = number
        total += num_secrets
        items.append(item)
        if rest:
            aside.append({"id": item.id, **rest})
    return Imported(tuple(items), tuple(aside), tuple(faults), total)


def _object(line: bytes) -> dict[str, Any]:
    try:
        value = json.loads(line.decode(), parse_constant=_no_number)
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeDecodeError as error:
        raise LineError(f"not UTF-8 (byte {error.start + 1} of the line)") from None
    except UnicodeEncodeError:
        raise LineError("has half of a surrogate pair, which is no character") from None
    except json.JSONDecodeError as error:
        raise LineError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise LineError("not JSON that can be read: nested too deeply") from None
    if not isinstance(value, dict):
        raise LineError("not a JSON object")
    return value


def _no_number(name: str) -> None:
    raise LineError(f"not JSON: {name} is no number there")


def _item(value: dict[str, Any], default_id: str) -> tuple[Item, dict[str, Any]]:
    """The item of one line, and what is kept aside."""
    if "answer" in value or "scorer" in value or "prompt" in value:
        return _validated(_question(value, default_id)), {}
    if isinstance(value.get("body"), dict):
        rest = {name: part for name, part in value.items() if name != "body"}
        item, aside = _request(value["body"], str(value.get("custom_id") or default_id))
        return item, rest | ({"body": aside} if aside else {})
    if "messages" in value:
        return _request(value, default_id)
    raise LineError("neither a question (`prompt`, `answer`, `scorer`) nor a chat body (`messages`)")


def _question(value: dict[str, Any], default_id: str) -> dict[str, Any]:
    for name in value:
        if name not in QUESTION_FIELDS:
            raise LineError(f"unknown field `{name}`; {near_or_known(name, sorted(QUESTION_FIELDS))}")
    if ("prompt" in value) == ("messages" in value):
        raise LineError("give exactly one of `prompt` and `messages`")
    prompt = value.get("prompt")
    if prompt is not None and not isinstance(prompt, str):
        raise LineError("`prompt` is not a string")
    told = {name: part for name, part in value.items() if name not in {"prompt", "answer", "scorer", "messages"}}
    defaults = {"id": default_id, "kind": "own", "language": "en", "difficulty": DEFAULT_DIFFICULTY}
    messages = [{"role": "user", "content": prompt}] if prompt is not None else _messages(value["messages"])
    return defaults | told | {"messages": messages, "scorer": _scorer(value)}


def _scorer(value: dict[str, Any]) -> dict[str, Any]:
    """`scorer` as an item has it; a bare name takes its arguments from `answer`."""
    scorer, answer = value.get("scorer"), value.get("answer")
    if isinstance(scorer, dict):
        if answer is not None:
            raise LineError("`answer` goes with the bare name of a scorer; with arguments, say it in `scorer.args`")
        return scorer
    if not isinstance(scorer, str):
        raise LineError("`scorer` is missing: the name of one (exact, contains_all, number, …) or {name, args}")
    if answer is None or answer == []:
        raise LineError(f"`answer` is missing: the scorer `{scorer}` needs it")
    if scorer == "number":
        return {"name": scorer, "args": {"value": answer}}
    values = answer if isinstance(answer, list) else [answer]
    return {"name": scorer, "args": {"values": [part if isinstance(part, list) else str(part) for part in values]}}


def _request(body: dict[str, Any], item_id: str) -> tuple[Item, dict[str, Any]]:
    limit = body.get("max_completion_tokens") or body.get("max_tokens")
    item = _validated(
        {
            "id": item_id,
            "messages": _messages(body.get("messages")),
            "kind": "traffic",
            "language": "und",
            "difficulty": DEFAULT_DIFFICULTY,
            "scorer": ANSWERED,
            "max_tokens": limit,
        }
    )
    return item, {name: part for name, part in body.items() if name != "messages"}


def _messages(value: Any) -> list[dict[str, str]]:
    """Chat messages of text; what a text model cannot be asked is refused. A developer's turn is a system's."""
    if not isinstance(value, list) or not value:
        raise LineError("`messages` is not a list with a message in it")
    return [_message(message, at) for at, message in enumerate(value)]


def _message(message: Any, at: int) -> dict[str, str]:
    if not isinstance(message, dict):
        raise LineError(f"`messages.{at}` is not an object")
    role = {"developer": "system"}.get(str(message.get("role")), message.get("role"))
    if role not in {"system", "user", "assistant"}:
        raise LineError(f"`messages.{at}` has a role that is not text: only system, user and assistant can be replayed")
    if message.get("tool_calls"):
        raise LineError(f"`messages.{at}` calls tools, which cannot be replayed")
    content = message.get("content")
    if isinstance(content, list):
        if not all(isinstance(part, dict) and part.get("type") == "text" for part in content):
            raise LineError(f"`messages.{at}` has a part that is not text")
        content = "".join(str(part.get("text", "")) for part in content)
    if not isinstance(content, str):
        raise LineError(f"`messages.{at}` has no text")
    return {"role": str(role), "content": content}


def _validated(value: dict[str, Any]) -> Item:
    try:
        item = Item.model_validate(value)
    except ValidationError as error:
        raise LineError(describe(error)) from None
    if item.messages[-1].role != "user":
        raise LineError("the last message is not the user's")
    return item
