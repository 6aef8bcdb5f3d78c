"""Curl commands as people paste them: every way to quote, and no secret that comes through."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.errors import IncidentError
from qgate.io.incident_curl import parse
from qgate.io.shell_words import commands, find_command

BODY = {"model": "m", "messages": [{"role": "user", "content": 'Tell me of "it", isn\'t it?\nPlease.'}], "top_p": 0.9}
JSON = json.dumps(BODY)
QUOTED = JSON.replace("'", "'\\''")
URL = "http://127.0.0.1:8000/v1/chat/completions"
ANSI = JSON.replace("\\", "\\\\").replace("'", "\\'")
DOUBLE = JSON.replace("\\", "\\\\").replace('"', '\\"')

VARIANTS = {
    "-d": f"curl {URL} -d '{QUOTED}'",
    "--data": f"curl {URL} --data '{QUOTED}'",
    "--data-raw": f"curl --location {URL} --header 'Content-Type: application/json' --data-raw '{QUOTED}'",
    "--data-binary": f"curl {URL} --data-binary '{QUOTED}'",
    "--json": f"curl --json '{QUOTED}' {URL}",
    "joined -d": f"curl {URL} -d'{QUOTED}'",
    "--data=": f"curl {URL} --data='{QUOTED}'",
    "ansi": f"curl '{URL}' -H 'content-type: application/json' --data-raw $'{ANSI}' --compressed",
    "double": f'curl "{URL}" -d "{DOUBLE}"',
    "lines": f"curl {URL} \\\n  -H 'Content-Type: application/json' \\\n  -d '{QUOTED}'",
    "crlf": f"curl {URL} \\\r\n  -d '{QUOTED}'\r\n",
    "prompt sign": f"$ curl -sS -X POST {URL} -d '{QUOTED}' | jq .",
    "cluster": f"curl -sSXPOST {URL} -d '{QUOTED}' > out.json 2>&1",
    "--url": f"curl -d '{QUOTED}' --url {URL} -o out.json -m 60",
    "before": f"export KEY=1; cd /tmp && /usr/bin/curl {URL} -d '{QUOTED}'",
    "here": f"curl {URL} -d @- <<'EOF'\n{JSON}\nEOF\n",
    "several": f"curl {URL} -A agent -e http://else.where -w '%{{http_code}}' --retry 3 -k -d '{QUOTED}'",
}


@pytest.mark.parametrize("text", VARIANTS.values(), ids=list(VARIANTS))
def test_the_body_is_what_curl_would_send(text: str, tmp_path: Path) -> None:
    parsed = parse(text, tmp_path)
    assert parsed.request.body == BODY
    assert parsed.request.endpoint == "/v1/chat/completions"
    assert parsed.base_url == "http://127.0.0.1:8000"
    assert parsed.num_secrets == 0


@pytest.mark.parametrize("name", ["body.json", "my body.json"])
def test_a_file_is_read_beside_the_command(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(JSON, encoding="utf-8")
    assert parse(f"curl {URL} -d @'{name}'", tmp_path).request.body == BODY


def test_a_text_completion_is_told_by_its_prompt(tmp_path: Path) -> None:
    parsed = parse('curl host:9/v1/completions -d \'{"prompt": [1, 2], "temperature": 0}\'', tmp_path)
    assert parsed.request.endpoint == "/v1/completions"
    assert parsed.base_url == "http://host:9"


def test_a_path_in_front_stays_and_v1_does_not(tmp_path: Path) -> None:
    parsed = parse(f"curl https://h.example/llm/v1/chat/completions -d '{QUOTED}'", tmp_path)
    assert parsed.base_url == "https://h.example/llm"


SECRETS = {
    "bearer": ("-H 'Authorization: Bearer sk-SECRET-abcdefghijklmnop'", URL, BODY),
    "joined": ("-H'authorization: Bearer SECRET'", URL, BODY),
    "x-api-key": ('--header "X-Api-Key: SECRET"', URL, BODY),
    "api-key": ("-H api-key:SECRET", URL, BODY),
    "cookie": ("-H 'Cookie: session=SECRET'", URL, BODY),
    "-b": ("-b 'session=SECRET'", URL, BODY),
    "user": ("-u me:SECRET", URL, BODY),
    "oauth": ("--oauth2-bearer SECRET", URL, BODY),
    "url": ("", "https://me:SECRET@h.example/v1/chat/completions", BODY),
    "query": ("", "https://h.example/v1/chat/completions?api_key=SECRET", BODY),
    "body field": ("", URL, {**BODY, "api_key": "SECRET"}),
    "body text": ("", URL, {"messages": [{"role": "user", "content": "use hf_SECRETabcdefghijklmnop, please"}]}),
    "tool": ("", URL, {**BODY, "tools": [{"headers": {"Authorization": "Bearer SECRETSECRET"}}]}),
}


@pytest.mark.parametrize(("option", "url", "body"), SECRETS.values(), ids=list(SECRETS))
def test_no_secret_comes_through_and_each_is_counted(option: str, url: str, body: object, tmp_path: Path) -> None:
    parsed = parse(f"curl {option} '{url}' --json '{json.dumps(body).replace(chr(39), chr(39) * 2)}'", tmp_path)
    assert "SECRET" not in repr(parsed)
    assert parsed.num_secrets == 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("wget http://x", "no curl command"),
        ("curl http://x/v1/chat/completions", "sends no body"),
        ("curl -d '{}'", "names no URL"),
        (f"curl {URL} -d 'not json'", "not JSON"),
        (f"curl {URL} -d '[1]'", "no JSON object"),
        (f"curl {URL} -d '{{\"input\": 1}}'", "neither `messages` nor `prompt`"),
        (f"curl {URL} -d '{{\"messages\": [1]}}'", "list of turns"),
        (f"curl {URL} -d '{{\"a", "does not end"),
        (f'curl {URL} -d "{{', "does not end"),
        (f"curl {URL} -d $'{{", "does not end"),
        (f"curl {URL} -d @missing.json", "cannot read missing.json"),
        (f"curl {URL} -d @-", "from a pipe"),
    ],
)
def test_what_cannot_be_read_is_refused_with_advice(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(IncidentError, match=said) as caught:
        parse(text, tmp_path)
    assert "SECRET" not in str(caught.value)


def test_ansi_quotes_know_every_escape() -> None:
    assert commands(r"$'\n\t\\\'\x41\u00e9\U0001F600\101'") == [["\n\t\\'Aé😀A"]]
    assert commands(r"$'\ud83d\ude00'") == [["😀"]]


def test_an_empty_word_is_a_word_and_ends_are_ends() -> None:
    assert commands("a '' b; c|d\ne") == [["a", "", "b"], ["c"], ["d"], ["e"]]
    assert find_command("echo curl-like", "curl") is None


@given(st.lists(st.text(st.characters(exclude_characters="\0\r", exclude_categories=("Cs",))), min_size=1))
def test_single_quoted_words_come_back_as_they_are(words: list[str]) -> None:
    text = " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)
    assert commands(text) == [words]


CMD = JSON.replace("\\", "\\\\").replace('"', '\\"')
FOR_WINDOWS = {
    "cmd": f'curl.exe "{URL}" ^\r\n  -H "Authorization: Bearer s3cr3tVALUE99" ^\r\n  -d "{CMD}"\r\n',
    "PowerShell": f"curl {URL} `\n  -H 'Authorization: Bearer s3cr3tVALUE99' `\n  -d '{QUOTED}'",
    "copied by a browser": f'curl ^"{URL}^" ^\r\n  -H ^"authorization: Bearer s3cr3tVALUE99^" ^\r\n  --data-raw ^"'
    + "".join(f"^{char}" if char in '\\"' else char for char in CMD)
    + '^"\r\n',
}


@pytest.mark.parametrize("name", FOR_WINDOWS)
def test_windows_shells_are_read_too(name: str, tmp_path: Path) -> None:
    found = parse(FOR_WINDOWS[name], tmp_path)
    assert (found.request.body, found.base_url, found.num_secrets) == (BODY, "http://127.0.0.1:8000", 1)


def test_carets_in_a_body_are_left_alone(tmp_path: Path) -> None:
    body = {"messages": [{"role": "user", "content": 'a ^" b ^\n `\n'}], "guided_regex": "^"}
    found = parse(f"curl {URL} -d '{json.dumps(body)}'", tmp_path)
    assert found.request.body == body


def test_the_value_of_an_unknown_option_is_no_address(tmp_path: Path) -> None:
    found = parse(f"curl --tlspassword s3cr3tVALUE99 --some-new-option s3cr3tVALUE98 {URL} -d '{QUOTED}'", tmp_path)
    assert "s3cr3t" not in found.base_url + found.request.model_dump_json()


def test_a_body_file_with_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "b.json").write_text(JSON, encoding="utf-8-sig")
    assert parse(f"curl {URL} --data-binary @b.json", tmp_path).request.body == BODY


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (f"curl {URL} -d '{'[' * 100_000}'", "not JSON"),
        (f"curl 'http://[::1/v1/chat/completions' -d '{QUOTED}'", "URL cannot be read"),
        (f"""curl {URL} -d '{{"temperature": NaN, "messages": [{{"role": "user"}}]}}'""", "NaN"),
        (f"""curl {URL} -d '{{"messages": [{{"role": "user", "content": "\\ud800"}}]}}'""", "surrogate"),
        (f"curl {URL} -d @gone.json", "No such file"),
    ],
)
def test_what_cannot_be_replayed_is_refused(command: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(IncidentError, match=said) as caught:
        parse(command, tmp_path)
    assert caught.value.advice
