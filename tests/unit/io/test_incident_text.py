"""Pasted texts become requests and answers."""

from __future__ import annotations

import json

import pytest

from qgate.errors import IncidentError
from qgate.io.incident_text import from_pasted


@pytest.mark.parametrize(
    ("request_text", "messages"),
    [
        ('{"messages": [{"role": "user", "content": "Hi"}]}', [{"role": "user", "content": "Hi"}]),
        (
            '{"custom_id": "a", "body": {"messages": [{"role": "user", "content": "Hi"}]}}',
            [{"role": "user", "content": "Hi"}],
        ),
        ('[{"role": "user", "content": "Hi"}]', [{"role": "user", "content": "Hi"}]),
        ("What is 2 + 2?\n", [{"role": "user", "content": "What is 2 + 2?"}]),
        ("42", [{"role": "user", "content": "42"}]),
    ],
)
def test_a_pasted_request(request_text: str, messages: object) -> None:
    assert from_pasted(request_text, None).request.body["messages"] == messages


def test_a_body_with_a_typing_error_is_not_taken_for_a_prompt() -> None:
    with pytest.raises(IncidentError, match="looks like a JSON body"):
        from_pasted('{"messages": [{"role": "user", "content": "Hi"}],}', None)


def test_a_pasted_answer_is_a_response_or_a_text() -> None:
    response = {"choices": [{"message": {"content": "Bearer abcdefghijk"}}]}
    found = from_pasted("Hi", json.dumps(response))
    assert found.answer == {"choices": [{"message": {"content": "Bearer [removed]"}}]}
    assert found.num_secrets == 1
    assert from_pasted("Hi", "!!!!\n").answer == "!!!!"
    assert from_pasted("Hi", '{"a": 1}').answer == '{"a": 1}'
