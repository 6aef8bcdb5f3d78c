from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from qgate.errors import UserError
from qgate.io.answers_file import BadLine, FoundAnswer, read, read_stream
from qgate.schemas.answers import Answer

CHAT = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "It boils."},
            "finish_reason": "stop",
            "logprobs": {"content": [{"token": "It", "logprob": -0.1}, {"token": " boils", "logprob": -9999.0}]},
        }
    ],
    "usage": {"completion_tokens": 3},
}


def parse(*lines: Any) -> list[FoundAnswer | BadLine]:
    data = b"\n".join(line if isinstance(line, bytes) else json.dumps(line).encode() for line in lines)
    return list(read_stream(io.BytesIO(data), "answers.jsonl"))


def only(*lines: Any) -> FoundAnswer:
    (found,) = parse(*lines)
    assert isinstance(found, FoundAnswer)
    return found


def test_plain_answer_keeps_every_field() -> None:
    found = only(
        {
            "id": "a", "text": "x", "prompt": "p", "finish_reason": "length", "completion_tokens": 7,
            "logprobs": [-0.5, None], "tool_calls": 1, "language": "en", "reference": "y", "expect": [], "why": "",
        }
    )  # fmt: skip
    seen = found.seen
    assert (found.id, seen.text, seen.prompt, seen.finish_reason) == ("a", "x", "p", "length")
    assert (seen.completion_tokens, seen.logprobs, seen.tool_calls, seen.language) == (7, (-0.5, None), 1, "en")
    assert seen.reference is not None and seen.reference.text == "y" and seen.reference.stopped


def test_reference_may_be_an_answer_of_its_own() -> None:
    reference = only({"text": "x", "reference": {"text": "y", "finish_reason": "length"}}).seen.reference
    assert reference is not None and reference.cut


def test_an_answer_without_id_is_named_by_its_line() -> None:
    assert only(b"", b"  ", {"text": "x"}).id == "line 3"


def test_chat_completion() -> None:
    found = only(CHAT)
    assert found.id == "chatcmpl-1"
    assert found.seen.text == "It boils."
    assert found.seen.logprobs == (-0.1, -9999.0)
    assert found.seen.completion_tokens == 3


def test_tool_call_has_no_content() -> None:
    message = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}, {"id": "2"}]}
    seen = only({"id": "c", "choices": [{"message": message, "finish_reason": "tool_calls"}]}).seen
    assert (seen.text, seen.tool_calls) == (None, 2)


def test_several_choices_are_several_answers() -> None:
    choices = [{"text": "a", "finish_reason": "stop", "logprobs": {"token_logprobs": [None, -1]}}, {"text": "b"}]
    first, second = parse(
        {"id": "cmpl", "object": "text_completion", "choices": choices, "usage": {"completion_tokens": 9}}
    )
    assert isinstance(first, FoundAnswer) and isinstance(second, FoundAnswer)
    assert (first.id, second.id) == ("cmpl#0", "cmpl#1")
    assert first.seen.logprobs == (None, -1.0)
    assert first.seen.completion_tokens is None, "usage counts both choices together"


def test_batch_line_goes_by_its_custom_id() -> None:
    found = only({"id": "batch_1", "custom_id": "mine", "response": {"status_code": 200, "body": CHAT}, "error": None})
    assert (found.id, found.seen.text) == ("mine", "It boils.")


@pytest.mark.parametrize(
    "line",
    [
        {"custom_id": "m", "response": None, "error": {"message": "overloaded"}},
        {"custom_id": "m", "response": {"status_code": 500, "body": {"error": {"message": "overloaded"}}}},
    ],
)
def test_failed_batch_request_is_no_answer(line: dict[str, Any]) -> None:
    bad, _ = parse(line, {"text": "x"})
    assert isinstance(bad, BadLine) and "overloaded" in bad.reason


def test_responses_api_object() -> None:
    output = [{"type": "reasoning"}, {"type": "message", "content": [{"type": "output_text", "text": "Hi"}]}]
    details = {"incomplete_details": {"reason": "max_output_tokens"}, "usage": {"output_tokens": 4}}
    seen = only({"id": "resp", "object": "response", "output": output, **details}).seen
    assert (seen.text, seen.finish_reason, seen.completion_tokens) == ("Hi", "length", 4)


def test_messages_are_the_prompt() -> None:
    messages = [{"role": "system", "content": "a"}, {"role": "user", "content": [{"type": "text", "text": "b"}]}]
    assert only({"text": "x", "messages": messages}).seen.prompt == "a\nb"


def test_stored_answers_are_read_and_those_that_never_came_are_reported() -> None:
    stored = Answer(id="s/1", text="x", status="truncated", latency_s=0.1, logprobs=(float("nan"),))
    failed = Answer(id="s/2", text=None, status="timeout", error="no answer in 60 s", latency_s=60.0)
    good, bad = parse(*(answer.model_dump_json(exclude_defaults=True).encode() for answer in (stored, failed)))
    assert isinstance(good, FoundAnswer) and good.id == "s/1" and good.seen.cut
    assert bad == BadLine(2, "holds no answer: status timeout, no answer in 60 s")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "is not JSON"),
        (b"[1]", "holds a list"),
        (b'{"text": "caf\xe9"}', "is not UTF-8: byte 0xe9 at position 13"),
        (b"[" * 100_000, "is not JSON"),
        ({"answer": "x"}, "neither `text` nor `choices`"),
        ({"text": 3}, "`text` that is not a string"),
        ({"text": "x", "finish_reason": 1}, "`finish_reason`"),
        ({"text": "x", "completion_tokens": "9"}, "`completion_tokens`"),
        ({"text": "x", "logprobs": ["a"]}, "`logprobs`"),
        ({"choices": []}, "no `choices`"),
        ({"choices": [3]}, "choice that is not an object"),
        ({"choices": [{"delta": {"content": "x"}}]}, "streamed chunk"),
        ({"custom_id": "x", "response": {"status_code": 200}}, "response.body"),
    ],
)
def test_bad_lines_are_named_and_the_rest_is_read(line: Any, said: str) -> None:
    first, bad, last = parse({"text": "a"}, line, {"text": "b"})
    assert isinstance(first, FoundAnswer) and isinstance(last, FoundAnswer)
    assert isinstance(bad, BadLine) and bad.number == 2 and said in bad.reason


def test_nothing_readable_is_the_users_error() -> None:
    with pytest.raises(UserError, match="line 1 is not JSON") as caught:
        parse(b"hello", b"world")
    assert caught.value.advice is not None and "finish_reason" in caught.value.advice
    with pytest.raises(UserError, match="holds no answers"):
        parse(b"")
    with pytest.raises(UserError, match="UTF-16"):
        list(read_stream(io.BytesIO('{"text": "x"}'.encode("utf-16")), "x"))


def test_a_byte_order_mark_is_no_harm() -> None:
    assert only(b'\xef\xbb\xbf{"text": "x"}').seen.text == "x"


def test_reading_by_path(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text('{"id": 5, "text": "x"}\n', encoding="utf-8")
    (found,) = read(str(path))
    assert isinstance(found, FoundAnswer) and found.id == "5"
    with pytest.raises(UserError, match="cannot read"):
        list(read(str(tmp_path / "missing.jsonl")))
    with pytest.raises(UserError, match="cannot read"):
        list(read(str(tmp_path)))
