"""Incident files: every error with its line, every path absolute, and what is saved is read again."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from qgate.errors import IncidentError
from qgate.io import incident
from qgate.schemas.incident import Incident

GOOD = """\
kind: incident
version: 1
title: Garbage
request:
  body:
    messages: [{role: user, content: Hi}]
    guided_choice: [a, b]
    vllm_xargs: {unknown: 1}
candidate:
  checkpoint: {path: quantized}
  launch: vllm serve x --enforce-eager --max-model-len 4k --api-key sk-x
baseline:
  checkpoint: {path: plain}
  engine: transformers
recognise: {regex: "a+"}
"""


def read(tmp_path: Path, text: str) -> incident.LoadedIncident:
    path = tmp_path / "incident.yaml"
    path.write_text(text, encoding="utf-8")
    return incident.load(path)


def test_a_good_file(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD)
    assert found.incident.request.body["vllm_xargs"] == {"unknown": 1}
    assert found.incident.candidate.checkpoint.path == tmp_path / "quantized"  # type: ignore[union-attr]
    assert found.written.candidate.checkpoint.path == Path("quantized")  # type: ignore[union-attr]
    candidate = found.sides["candidate"]
    assert candidate.options.model_dump()["enforce_eager"] is True
    assert candidate.launched.max_model_len == 4000
    assert candidate.launched.left_out == ("--api-key",)
    assert found.sides["baseline"].side.engine_name == "transformers"


def test_what_is_saved_is_read_again(tmp_path: Path) -> None:
    first = read(tmp_path, GOOD)
    text = 'Line one\n  indented: "quoted"\n\n- dash\nשלום 😀\t\x07'
    changed = first.written.model_copy(update={"answer": text, "log": "a: b\n# no comment\n"})
    incident.save(tmp_path / "again.yaml", changed)
    assert incident.load(tmp_path / "again.yaml").written == changed


@pytest.mark.parametrize(
    ("baseline", "engine", "eager", "args"),
    [
        ("", "vllm", True, ("--trust-remote-code",)),
        ("  options: {}\n", "vllm", False, ()),
        ("  launch: --port 80\n", "vllm", False, ()),
        ("  engine: vllm\n", "vllm", True, ("--trust-remote-code",)),
    ],
)
def test_a_baseline_that_says_nothing_is_served_as_the_candidate_is(
    baseline: str, engine: str, eager: bool, args: tuple[str, ...], tmp_path: Path
) -> None:
    text = GOOD.replace("  engine: transformers\n", baseline)
    text = text.replace("--api-key sk-x", "--quantization awq --trust-remote-code -q=awq").replace(
        "  launch:", "  engine: vllm\n  launch:"
    )
    found = read(tmp_path, text)
    side = found.sides["baseline"]
    assert side.side.engine_name == engine
    assert side.options.model_dump()["enforce_eager"] is eager
    assert side.options.model_dump()["args"] == args
    candidate = found.sides["candidate"].options.model_dump()
    assert candidate["args"] == ("--quantization", "awq", "--trust-remote-code", "-q=awq")


def test_a_baseline_without_options_stays_without_them(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD.replace("  engine: transformers\n", "  options: {}\n"))
    incident.save(tmp_path / "again.yaml", found.written)
    again = incident.load(tmp_path / "again.yaml")
    assert not again.sides["baseline"].options.model_dump()["enforce_eager"]


def test_a_key_that_was_written_by_hand_is_taken_out_and_counted(tmp_path: Path) -> None:
    text = GOOD.replace("guided_choice: [a, b]", "api_key: sk-SECRET").replace(
        "title: Garbage", "title: Garbage\ntried: [with Bearer SECRETSECRET]\nlog: password=SECRETSECRET"
    )
    found = read(tmp_path, text)
    assert "SECRET" not in repr(found.incident) + repr(found.written)
    assert found.incident.secrets_removed == 3
    assert read(tmp_path, GOOD).incident.secrets_removed == 0


def test_keys_that_a_server_was_started_with_are_not_passed_on(tmp_path: Path) -> None:
    text = GOOD.replace("--api-key sk-x", "--api-key=SECRET1 --hf-token SECRET2").replace(
        "launch: vllm", "launch: VLLM_API_KEY=SECRET3 vllm"
    )
    found = read(tmp_path, text)
    assert "SECRET" not in repr(found.written)
    assert "--enforce-eager" in found.written.candidate.launch
    assert found.written.secrets_removed == 3
    incident.save(tmp_path / "again.yaml", found.written)
    assert incident.load(tmp_path / "again.yaml").written.secrets_removed == 3


def test_json_is_yaml(tmp_path: Path) -> None:
    value = {"kind": "incident", "version": 1, "request": {"body": {"prompt": "x"}, "endpoint": "/v1/completions"},
             "candidate": {"url": "http://h:1/v1", "model": "m"}}  # fmt: skip
    found = read(tmp_path, json.dumps(value))
    assert found.sides["candidate"].side.engine_name == "openai"
    assert found.sides["candidate"].options.model_dump()["model"] == "m"


def test_the_schema_takes_what_is_taken(tmp_path: Path) -> None:
    found = read(tmp_path, GOOD).written.model_dump(mode="json", exclude_defaults=True)
    Draft202012Validator(Incident.model_json_schema()).validate({"kind": "incident", "version": 1, **found})


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("title: Garbage", "titel: Garbage", r"line 3, titel: unknown field `titel` \(did you mean 'title'\?\)"),
        ("version: 1", "version: 2", "line 2, version: incident format 2 is newer"),
        ("messages: [{role: user, content: Hi}]", "messages: []", r"line 4, request: the body .* has no `messages`"),
        ("messages: [{role: user, content: Hi}]", "messages: [Hi]", "list of turns"),
        ("  checkpoint: {path: quantized}", "  checkpoint: {path: q}\n  url: http://x", "exactly one of"),
        ("  engine: transformers", "  engine: transformer", "line 14, baseline.engine: no engine named 'transformer'"),
        ("--enforce-eager", "--tensor-parallel-size two", "line 11, candidate.launch: .*no number"),
        ('regex: "a+"', 'regex: "a("', "not a regular expression"),
        ('regex: "a+"', "defects: [garbel]", "no defect named 'garbel'"),
        ("  engine: transformers", "  engine: transformers\n  options: {threds: 1}", "did you mean 'threads'"),
        ("kind: incident", "kind: recipe", "kind"),
    ],
)
def test_an_error_names_line_and_field(old: str, new: str, said: str, tmp_path: Path) -> None:
    text = GOOD.replace(old, new)
    assert text != GOOD
    with pytest.raises(IncidentError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [("", "is empty"), ("- a", "a mapping"), ("a: [", "not valid YAML"), ("kind: incident", "missing")],
)
def test_no_incident_at_all(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(IncidentError, match=said):
        read(tmp_path, text)


@pytest.mark.parametrize("url", ["http://me:pw@h/v1", "http://h/v1?key=x", "ftp://h"])
def test_an_address_with_a_secret_is_refused(url: str, tmp_path: Path) -> None:
    text = GOOD.replace("  checkpoint: {path: plain}\n  engine: transformers", f"  url: {url}")
    with pytest.raises(IncidentError, match="baseline: `url`") as caught:
        read(tmp_path, text)
    assert url not in str(caught.value)


def test_a_missing_file_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(IncidentError) as caught:
        incident.load(tmp_path / "none.yaml")
    assert caught.value.advice == "`qgate repro new` makes one"


BODY = "    messages: [{role: user, content: Hi}]\n"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (BODY, f"{BODY}    temperature: hot\n", "`temperature` of the body is no number"),
        (BODY, f"{BODY}    temperature: .nan\n", "NaN"),
        (BODY, f"{BODY}    temperature: -1\n", "`temperature` of the body is less than 0"),
        (BODY, f"{BODY}    max_tokens: 0\n", "`max_tokens` of the body is less than 1"),
        (BODY, f"{BODY}    max_tokens: '5'\n", "`max_tokens` of the body is no whole number"),
        (BODY, f"{BODY}    seed: true\n", "`seed` of the body is no whole number"),
        (BODY, f"{BODY}    stop: 5\n", "`stop` of the body is neither"),
        (BODY, '    messages: [{role: user, content: "\\ud800"}]\n', "lone surrogate"),
        ("  launch: vllm", '  launch: "vllm \'x" #', "`launch` cannot be read as a shell does"),
        ("title: Garbage", "answer: {choices: 5}", "`answer` is neither a text nor a response"),
        ("title: Garbage", "answer: {choices: [5]}", "`answer` is neither a text nor a response"),
        ("title: Garbage", "answer: {choices: [{message: 5}]}", "`answer` is neither a text nor a response"),
        ("title: Garbage", "answer: {choices: [{text: a}], usage: 7}", "`answer` is neither a text nor a response"),
        ("title: Garbage", "answer: {usage: {completion_tokens: many}}", "`answer` is neither a text nor a response"),
    ],
)
def test_what_no_server_takes_is_refused_before_one_is_started(old: str, new: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(IncidentError, match=said):
        read(tmp_path, GOOD.replace(old, new))


@pytest.mark.parametrize("prompt", ["5", "{a: 1}", "[a, b]", "[1, x]"])
def test_a_prompt_is_one_text_or_its_token_ids(prompt: str, tmp_path: Path) -> None:
    text = GOOD.replace("  body:\n", "  endpoint: /v1/completions\n  body:\n").replace(BODY, f"    prompt: {prompt}\n")
    with pytest.raises(IncidentError, match="neither a text nor a list of token ids"):
        read(tmp_path, text)


@pytest.mark.parametrize("url", ["ftp://h", "http://[::1", "http://h:99999999/v1", "http://$HOST/v1"])
def test_an_address_that_cannot_be_asked(url: str, tmp_path: Path) -> None:
    candidate = GOOD[GOOD.index("candidate:") : GOOD.index("baseline:")]
    with pytest.raises(IncidentError, match="no http\\(s\\) address"):
        read(tmp_path, GOOD.replace(candidate, f"candidate: {{url: '{url}'}}\n"))


@pytest.mark.parametrize("key", ["sk-s3cr3tVALUE99aaaaaaaa", "hf_s3cr3tVALUE99aaaaaaaa", "abc/def+ghi="])
def test_a_key_in_place_of_its_variables_name_is_refused_and_not_repeated(key: str, tmp_path: Path) -> None:
    candidate = GOOD[GOOD.index("candidate:") : GOOD.index("baseline:")]
    with pytest.raises(IncidentError, match="name of an environment variable") as caught:
        read(tmp_path, GOOD.replace(candidate, f"candidate: {{url: 'http://h/v1', api_key_env: '{key}'}}\n"))
    assert key not in caught.value.message


def test_an_answer_may_hold_what_was_no_number(tmp_path: Path) -> None:
    answer = "answer: {choices: [{text: '!!', logprobs: {token_logprobs: [.nan, -.inf]}}]}"
    found = read(tmp_path, GOOD.replace("title: Garbage", answer)).incident.answer
    assert isinstance(found, dict)
    nan, inf = found["choices"][0]["logprobs"]["token_logprobs"]
    assert math.isnan(nan)
    assert inf == -math.inf


def test_a_field_of_several_types_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(IncidentError) as caught:
        read(tmp_path, GOOD.replace("title: Garbage", "answer: 5"))
    assert "incident.yaml, line 3, answer: needs text; put it in quotes (found 5)" in caught.value.message
