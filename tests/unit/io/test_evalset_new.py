"""Sets of one's own: questions and recorded requests in, a locked set out, or nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate import scorers
from qgate.errors import EvalsetError
from qgate.io import evalset_new, evalsets
from qgate.io.evalset_import import Imported, read
from qgate.io.redact import REMOVED, redact
from qgate.schemas.recipe import EvalsetUse

QUESTION = {"prompt": "What is 2 + 2?", "answer": 4, "scorer": "number"}
BODY = {"model": "m", "messages": [{"role": "user", "content": "hello"}], "temperature": 0.2, "max_tokens": 32}


def write(folder: Path, *lines: Any) -> Path:
    source = folder / "in.jsonl"
    texts = [line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines]
    source.write_bytes(b"\n".join(texts))
    return source


def make(folder: Path, *lines: Any, skip_bad: bool = False) -> Imported:
    source = write(folder, *lines)
    return evalset_new.new(folder / "mine", source, description="d", license_id="LicenseRef-own", skip_bad=skip_bad)


def test_questions_become_items_that_score_their_answer(tmp_path: Path) -> None:
    make(tmp_path, QUESTION, {"prompt": "Say yes.", "answer": ["yes", "Yes."], "scorer": "exact", "language": "en"})
    number, exact = evalsets.load(EvalsetUse(name="mine"), tmp_path).items
    assert scorers.load("number")("It is 4.", number.scorer.args, "en") == 1
    assert scorers.load("number")("It is 5.", number.scorer.args, "en") == 0
    assert scorers.load("exact")("yes", exact.scorer.args, "en") == 1
    assert (number.id, exact.id) == ("line-000001", "line-000002")


def test_recorded_requests_keep_every_field_aside(tmp_path: Path) -> None:
    other = BODY | {"messages": [{"role": "user", "content": "another"}]}
    batch = {"custom_id": "r7", "method": "POST", "url": "/v1/chat/completions", "body": other}
    make(tmp_path, BODY, batch)
    first, second = evalsets.load(EvalsetUse(name="mine"), tmp_path).items
    assert (first.max_tokens, second.id) == (32, "r7")
    aside = [json.loads(line) for line in (tmp_path / "mine" / "requests.jsonl").read_text("utf-8").splitlines()]
    kept = {"model": "m", "temperature": 0.2, "max_tokens": 32}
    assert aside == [
        {"id": "line-000001", **kept},
        {"id": "r7", "custom_id": "r7", "method": "POST", "url": "/v1/chat/completions", "body": kept},
    ]
    assert "requests.jsonl" in evalsets.verify(tmp_path / "mine").files


def test_what_a_request_is_scored_on_is_that_it_is_answered(tmp_path: Path) -> None:
    make(tmp_path, BODY)
    (item,) = evalsets.load(EvalsetUse(name="mine"), tmp_path).items
    scorer = scorers.load(item.scorer.name)
    assert scorer("Hello, how are you today?", item.scorer.args, item.language) == 1
    assert scorer("", item.scorer.args, item.language) == 0


def test_parts_of_text_are_joined_and_a_developer_is_the_system(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    turns = [{"role": "developer", "content": "short"}, {"role": "user", "content": parts}]
    make(tmp_path, {"messages": turns})
    (item,) = evalsets.load(EvalsetUse(name="mine"), tmp_path).items
    assert [(turn.role, turn.content) for turn in item.messages] == [("system", "short"), ("user", "ab")]


def test_the_questions_of_the_documentation_make_a_set(tmp_path: Path) -> None:
    text = (Path(__file__).parents[3] / "docs" / "own-sets.md").read_text("utf-8")
    lines = [line.strip().encode() for line in text.splitlines() if line.startswith('    {"')]
    lines = [line for line in lines if b'"shortness"' not in line]  # the page's own scorer, which its reader installs
    assert len(lines) == 4
    assert len(make(tmp_path, *lines).items) == len(lines)


BAD = [
    (b"{", "not JSON: Expecting property name"),
    (b"\xff{}", "not UTF-8 (byte 1 of the line)"),
    (b"[" * 100_000, "not JSON that can be read"),
    ([1], "not a JSON object"),
    ({"text": "x"}, "neither a question"),
    (QUESTION | {"lang": "en"}, "unknown field `lang`"),
    (QUESTION | {"scorer": "nunber"}, "did you mean 'number'?"),
    (QUESTION | {"answer": "four"}, "number: `value`"),
    ({"prompt": "?", "answer": "x"}, "`scorer` is missing"),
    ({"prompt": "?", "scorer": "exact"}, "`answer` is missing"),
    ({"prompt": "?", "answer": "x", "scorer": {"name": "exact", "args": {"values": ["x"]}}}, "say it in `scorer.args`"),
    (QUESTION | {"messages": BODY["messages"]}, "exactly one of `prompt` and `messages`"),
    (QUESTION | {"prompt": 3}, "`prompt` is not a string"),
    (QUESTION | {"difficulty": 0}, "difficulty:"),
    (b'{"prompt": "\\ud800", "answer": "x", "scorer": "exact"}', "has half of a surrogate pair"),
    (b'{"prompt": "x", "answer": NaN, "scorer": "number"}', "not JSON: NaN is no number"),
    (b'{"prompt": "x", "answer": ' + b"9" * 5000 + b', "scorer": "number"}', "Exceeds the limit"),
    ({"messages": []}, "`messages` is not a list with a message in it"),
    ({"messages": [{"role": "tool", "content": "x"}]}, "`messages.0` has a role that is not text"),
    (
        {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
        "has a part that is not text",
    ),
    ({"messages": [{"role": "assistant", "content": None, "tool_calls": [{}]}]}, "calls tools"),
    ({"messages": [{"role": "user", "content": None}]}, "has no text"),
    ({"messages": [{"role": "assistant", "content": "x"}]}, "the last message is not the user's"),
    (BODY | {"max_tokens": -1}, "max_tokens:"),
]


@pytest.mark.parametrize(("line", "expected"), BAD)
def test_a_bad_line_is_named_and_nothing_is_written(tmp_path: Path, line: Any, expected: str) -> None:
    with pytest.raises(EvalsetError) as caught:
        make(tmp_path, QUESTION, line)
    assert expected in caught.value.message.split("in.jsonl:2: ")[1]
    assert "--skip-bad" in str(caught.value.advice)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_every_bad_line_is_named_once_and_the_good_ones_can_be_kept(tmp_path: Path) -> None:
    lines = [part for at, (line, _) in enumerate(BAD) for part in (line, QUESTION | {"prompt": f"Say {at}."})]
    with pytest.raises(EvalsetError) as caught:
        make(tmp_path, *lines)
    numbers = [str(2 * number + 1) for number in range(len(BAD))]
    assert all(f"in.jsonl:{number}:" in caught.value.message for number in numbers[:20])
    assert "also bad: lines " + ", ".join(numbers[20:]) in caught.value.message
    imported = make(tmp_path, *lines, skip_bad=True)
    assert [str(fault.line) for fault in imported.faults] == numbers
    assert len(evalsets.load(EvalsetUse(name="mine"), tmp_path).items) == len(BAD)


def test_an_id_used_twice_is_a_bad_line(tmp_path: Path) -> None:
    with pytest.raises(EvalsetError, match=r"in\.jsonl:2: its id is already used in line 1"):
        make(tmp_path, QUESTION | {"id": "a"}, QUESTION | {"id": "a"})


def test_a_prompt_asked_twice_is_a_bad_line(tmp_path: Path) -> None:
    with pytest.raises(EvalsetError, match=r"in\.jsonl:2: it asks what line 1 asks: .* no more evidence"):
        make(tmp_path, BODY, {"custom_id": "r2", "body": BODY})
    said = [{"messages": [{"role": "user", "content": text}]} for text in ("Hello there.", " Hello  there.\n")]
    with pytest.raises(EvalsetError, match=r"in\.jsonl:2: it asks what line 1 asks"):
        make(tmp_path, *said)


def test_a_folder_in_use_or_a_bad_name_is_refused(tmp_path: Path) -> None:
    make(tmp_path, QUESTION)
    with pytest.raises(EvalsetError, match="exists already"):
        make(tmp_path, QUESTION)
    with pytest.raises(EvalsetError, match="name"):
        evalset_new.new(tmp_path / "Bad Name", tmp_path / "in.jsonl", description="d", license_id="MIT")
    assert not (tmp_path / "Bad Name").exists()


def test_an_empty_file_makes_no_set(tmp_path: Path) -> None:
    with pytest.raises(EvalsetError, match="holds no usable line"):
        make(tmp_path, b"")


@pytest.mark.parametrize(
    "secret",
    [
        "Bearer abcdef0123456789",
        "sk-proj-abcdefghijklmnop0123",
        "hf_abcdefghijklmnopqrst",
        "ghp_abcdefghijklmnopqrst",
        "AKIAABCDEFGHIJKLMNOP",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.abcdefgh",
        "api_key=abcdef0123456789",
        "-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----",
    ],
)
def test_a_secret_in_a_text_is_never_kept(tmp_path: Path, secret: str) -> None:
    body = BODY | {"messages": [{"role": "user", "content": f"my key: {secret} thanks"}], "user": secret}
    imported = make(tmp_path, body)
    kept = "".join(path.read_text("utf-8") for path in (tmp_path / "mine").iterdir())
    assert imported.num_secrets == 2
    assert secret.rsplit(maxsplit=1)[-1].rsplit("=", maxsplit=1)[-1] not in kept
    assert REMOVED in kept
    assert "thanks" in kept


def test_a_secret_by_its_name_is_never_kept_nor_told(tmp_path: Path) -> None:
    names = ("api_key", "x-api-key", "Authorization", "access_token", "password", "Cookie", "client_secret", "token")
    body = BODY | dict.fromkeys(names, "hunter22")
    imported = make(tmp_path, body)
    assert imported.num_secrets == len(names)
    assert "hunter22" not in (tmp_path / "mine" / "requests.jsonl").read_text("utf-8")
    with pytest.raises(EvalsetError) as caught:
        make(
            tmp_path / "mine", {"prompt": "hunter22", "scorer": "exact", "answer": "hunter22", "password2": "hunter22"}
        )
    assert "hunter22" not in caught.value.message


def test_what_is_no_secret_stays() -> None:
    body = {"max_tokens": 5, "tokens": [1, 2], "stop_token_ids": [3], "logprobs": True, "n": 1, "key": "c major"}
    assert redact(body) == (body, 0)


Json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(Json)
def test_redacting_twice_changes_nothing_more(value: Any) -> None:
    once, _ = redact(value)
    assert redact(once) == (once, 0)


@given(st.lists(st.binary().map(lambda data: data.replace(b"\n", b""))))
def test_no_line_whatever_ends_in_anything_but_an_item_or_a_fault(lines: list[bytes]) -> None:
    imported = read(b"\n".join(lines), lambda use: None)
    assert len(imported.items) + len(imported.faults) == sum(bool(line.strip()) for line in lines)
