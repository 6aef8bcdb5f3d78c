"""vLLM's log lines become requests and answers."""

from __future__ import annotations

import json

import pytest

from qgate.errors import IncidentError
from qgate.io.incident_log import MOST_LISTED, from_log

PARAMS = (
    "SamplingParams(n=1, presence_penalty=0.0, frequency_penalty=0.0, repetition_penalty=1.1, temperature=0.7, "
    "watermarking=None, top_p=0.95, top_k=0, min_p=0.0, seed=3, stop=['a, b', '\\n'], stop_token_ids=[], bad_words=[], "
    "ignore_eos=False, max_tokens=5, min_tokens=0, logprobs=None)"
)
NEW = f"""\
DEBUG 11-29 10:00:00 [request_logger.py:56] Request chatcmpl-1 details: prompt: '<|im_start|>user\\nIt\\'s "me"<|im_end|>', \
prompt_token_ids: [1, 42, 7], prompt_embeds shape: None.
INFO 11-29 10:00:00 [request_logger.py:66] Received request chatcmpl-1: params: {PARAMS}, lora_request: None.
INFO 11-29 10:00:01 [request_logger.py:99] Generated response chatcmpl-1: output: 'más más\\n', output_token_ids: [5], \
finish_reason: length
"""
OLD = (
    "INFO 01-01 [logger.py:39] Received request cmpl-2-0: prompt: 'Once upon', params: "
    f"{PARAMS}, prompt_token_ids: None, lora_request: None, prompt_adapter_request: None."
)


def test_token_ids_are_taken_before_text_with_what_they_were_sampled_by() -> None:
    found = from_log("noise\n" + NEW)
    assert found.request.endpoint == "/v1/completions"
    assert found.request.body == {
        "prompt": [1, 42, 7], "temperature": 0.7, "top_p": 0.95, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.1,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "seed": 3, "max_tokens": 5, "min_tokens": 0,
        "stop": ["a, b", "\n"],
    }  # fmt: skip
    assert found.answer == {"choices": [{"message": {"content": "más más\n"}, "finish_reason": "length"}]}


def test_an_older_line_has_the_text_with_its_template_in_it() -> None:
    found = from_log(OLD)
    assert found.request.body["prompt"] == "Once upon"
    assert found.request.body["add_special_tokens"] is False
    assert found.request.body["seed"] == 3
    assert found.answer is None


def generated(name: str, output: str, finish_reason: str) -> str:
    return (
        f"INFO [request_logger.py:99] Generated response {name}: output: {output!r}, finish_reason: {finish_reason}\n"
    )


DELTA, COMPLETE = " (streaming delta)", " (streaming complete)"
ASKED = f"DEBUG Request chatcmpl-1 details: prompt: 'Hi', prompt_token_ids: [7].\nINFO Received request chatcmpl-1: {PARAMS}\n"


@pytest.mark.parametrize(
    ("lines", "answer"),
    [
        (generated("chatcmpl-10", "of another", "stop"), None),
        (generated(f"chatcmpl-1{DELTA}", "no ", "None") + generated(f"chatcmpl-1{DELTA}", "no", "length"), "no no"),
        (
            generated(f"chatcmpl-1{DELTA}", "no ", "None")
            + generated(f"chatcmpl-1{DELTA}", "no", "length")
            + generated(f"chatcmpl-1{COMPLETE}", "no no", "streaming_complete"),
            "no no",
        ),
        (generated("chatcmpl-1", "finish_reason: stop", "length"), "finish_reason: stop"),
        (generated("chatcmpl-1", "one of two", "length") + generated("chatcmpl-1", "other", "stop"), "one of two"),
    ],
)
def test_the_answer_is_that_of_the_request_and_whole(lines: str, answer: str | None) -> None:
    found = from_log(ASKED + lines)
    expected = {"choices": [{"message": {"content": answer}, "finish_reason": "length"}]}
    assert found.answer == (None if answer is None else expected)


def test_a_body_is_logged_under_its_id_without_the_endpoint() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    log = f"DEBUG Request 7f JSON body: {json.dumps(body)}\n" + generated("chatcmpl-7f", "Ho", "stop")
    assert from_log(log).answer == {"choices": [{"message": {"content": "Ho"}, "finish_reason": "stop"}]}


OTHER = {
    "messages": [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "What\nis it, sk-ABCDEFGHIJKLMNOPQRST?"},
    ]
}
SEVERAL = NEW + OLD + f"\nDEBUG Request 7f JSON body: {json.dumps(OTHER)}\n" + generated("chatcmpl-7f", "Ho", "stop")


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("chatcmpl-1", "chatcmpl-1"),
        ("2", "cmpl-2-0"),
        ("3", "7f"),
        ("7f", "7f"),
        ("chatcmpl-7f", "7f"),
        ("cmpl-2", "cmpl-2-0"),
    ],
)
def test_of_several_requests_one_is_taken_by_its_id_or_its_number(wanted: str, name: str) -> None:
    assert from_log(SEVERAL, wanted).source == f"a vLLM log, request {name}"


def test_a_chosen_request_has_its_own_prompt_and_answer() -> None:
    assert from_log(SEVERAL, "1").request.body["prompt"] == [1, 42, 7]
    assert from_log(SEVERAL, "3").answer == {"choices": [{"message": {"content": "Ho"}, "finish_reason": "stop"}]}


@pytest.mark.parametrize("wanted", [None, "4", "0", "cmpl-9"])
def test_where_it_is_not_clear_which_is_meant_all_are_listed_with_the_start_of_what_was_asked(
    wanted: str | None,
) -> None:
    with pytest.raises(IncidentError) as caught:
        from_log(SEVERAL, wanted)
    lacks = "" if wanted is None else f", none of them {wanted}"
    assert caught.value.message.splitlines() == [
        f"the log holds 3 requests{lacks}:",
        """  1  chatcmpl-1  <|im_start|>user It's "me"<|im_end|>""",
        "  2  cmpl-2-0  Once upon",
        "  3  7f  What is it, [removed]?",
    ]
    assert caught.value.advice == "name the one that is meant by its id or its number: --item 3"


def test_a_request_that_is_logged_twice_is_one_and_its_body_goes_before_its_details() -> None:
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    found = from_log(NEW + f"DEBUG Request 1 JSON body: {json.dumps(body)}\n" + NEW)
    assert found.request.body == body


def test_requests_without_an_id_are_several_and_not_all_are_listed() -> None:
    lines = [f'Request N/A JSON body: {{"prompt": "no. {number}"}}' for number in range(1, MOST_LISTED + 4)]
    with pytest.raises(IncidentError, match=f"holds {MOST_LISTED + 3} requests") as caught:
        from_log("\n".join(lines))
    assert caught.value.message.splitlines()[MOST_LISTED:] == [
        f"  {MOST_LISTED}  N/A  no. {MOST_LISTED}",
        "  … and 3 more",
    ]
    assert from_log("\n".join(lines), str(MOST_LISTED + 3)).request.body["prompt"] == f"no. {MOST_LISTED + 3}"


def test_one_that_cannot_be_read_hides_no_other() -> None:
    log = NEW + 'DEBUG Request cut JSON body: {"messages": [{"role"\n'
    with pytest.raises(IncidentError, match=r"  2  cut  \(cannot be read\)"):
        from_log(log)
    assert from_log(log, "1").request.body["prompt"] == [1, 42, 7]


def test_what_ends_an_answer_is_taken_over() -> None:
    params = "SamplingParams(temperature=0.5, stop=[], stop_token_ids=[2, 3], ignore_eos=True, max_tokens=5)"
    body = from_log(f"INFO Received request cmpl-1: prompt: 'Hi', params: {params}, lora_request: None.").request.body
    assert (body["stop_token_ids"], body["ignore_eos"]) == ([2, 3], True)


def test_a_logged_body_is_taken_verbatim() -> None:
    body = {"messages": [{"role": "user", "content": "Hi {you}"}], "guided_regex": "a+", "api_key": "sk-SECRET"}
    found = from_log(f"DEBUG Request chatcmpl-9 JSON body: {json.dumps(body)} [and more]")
    assert found.request.body == {**body, "api_key": "[removed]"}
    assert found.num_secrets == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("INFO nothing here", "no line of a request"),
        (f"INFO Received request x: params: {PARAMS}, lora_request: None.", "not its prompt"),
        ('DEBUG Request x JSON body: {"messages": [{"role"', "cut the request's body off"),
        (
            "DEBUG Request x details: prompt: None, prompt_token_ids: [], prompt_embeds shape: (1, 2).",
            "no prompt in it",
        ),
    ],
)
def test_a_log_without_a_prompt_says_how_to_log_one(text: str, said: str) -> None:
    with pytest.raises(IncidentError, match=said) as caught:
        from_log(text)
    assert caught.value.advice


@pytest.mark.parametrize(
    "line",
    [
        "Received request a: prompt: '\\x', params: SamplingParams()",
        "Received request a: prompt: 'b', params: SamplingParams(temperature=1.2.3)",
        "Received request a: prompt: 'b', params: SamplingParams(seed=" + "9" * 400 + "e9)",
        "Received request a: prompt: 'b', params: SamplingParams(stop=[f()], stop_token_ids=[])",
        "Received request a: prompt: '', params: SamplingParams(), prompt_token_ids: [1, , 2]",
        'Request a JSON body: {"a":' + "[" * 100_000,
    ],
)
def test_a_broken_line_is_no_bug(line: str) -> None:
    with pytest.raises(IncidentError) as caught:
        from_log(line)
    assert caught.value.advice
