"""A curl command in, the request that it sends out, without headers and secrets. Reads the files that it names by `@`."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from pydantic import ValidationError

from qgate.errors import IncidentError
from qgate.io.redact import redact
from qgate.io.shell_words import find_command
from qgate.io.validation import reason
from qgate.schemas.incident import CHAT, COMPLETION, Endpoint, Request

DATA = frozenset({"-d", "--data", "--data-raw", "--data-binary", "--data-ascii", "--json"})
SECRET_OPTIONS = frozenset(
    {"-u", "--user", "--oauth2-bearer", "-b", "--cookie", "--proxy-user", "-U", "-E", "--cert", "--key", "--pass",
     "--tlsuser", "--tlspassword", "--proxy-tlsuser", "--proxy-tlspassword", "--proxy-header", "--proxy-cert",
     "--proxy-key", "--proxy-pass", "--socks5-gssapi-service"}
)  # fmt: skip
SECRET_HEADERS = ("authorization", "cookie", "api-key", "apikey", "token", "secret", "proxy-authorization")
WITH_VALUE = frozenset(
    {"-H", "--header", "-X", "--request", "-A", "--user-agent", "-e", "--referer", "-o", "--output", "-m", "--max-time",
     "--connect-timeout", "--retry", "-w", "--write-out", "--cacert", "-x", "--proxy", "--resolve", "--url", "-c",
     "--cookie-jar", "-K", "--config", "-D", "--dump-header", "-T", "--upload-file", "--retry-delay", "-F", "--form",
     "--aws-sigv4", "--data-urlencode", "--connect-to", "--capath", "--retry-max-time", "--max-redirs", "--form-string",
     "--preproxy", "--socks5", "--socks5-hostname", "--proto", "--tls-max", "--curves", "--pinnedpubkey", "--url-query",
     "--unix-socket", "--limit-rate", "--ciphers", "-Y", "-y", "--interface", "--dns-servers", "--noproxy"}
)  # fmt: skip
FOR_CMD = re.compile(r"curl(?:\.exe)?\s[^'\"]*\^\"")
"""The first quote is escaped by a caret: browsers copy so for Windows' cmd, which takes every caret away."""
GOES_ON = re.compile(r"curl(?:\.exe)?\s[^\n]*?[ \t]([\^`])[ \t]*\r?\n")
"""The first line goes on behind a caret (cmd) or a backtick (PowerShell)."""
HOW = "copy the whole command, from `curl` to its last quote"


@dataclass(frozen=True)
class Parsed:
    """A request, where it went, and how many secrets were taken out."""

    request: Request
    base_url: str
    num_secrets: int


@dataclass
class _Seen:
    """What the words say."""

    url: str | None = None
    data: list[tuple[str, str]] = field(default_factory=list)
    """Option and value."""
    num_secrets: int = 0


def parse(text: str, folder: Path) -> Parsed:
    """The request of the first curl command in `text`; `@file` is relative to `folder`. Raises IncidentError."""
    try:
        command = find_command(_as_posix(text), "curl", "curl.exe")
    except ValueError as error:
        raise IncidentError(f"the curl command cannot be read: {error}", advice=HOW) from error
    if command is None:
        raise IncidentError("there is no curl command in what was given", advice=HOW)
    seen = _read(list(command.words[1:]))
    if seen.url is None:
        raise IncidentError("the curl command names no URL", advice=HOW)
    body, num_in_body = redact(_body(seen.data, command.standard_input, folder))
    base_url, path, num_in_url = _split(seen.url)
    return Parsed(request_of(body, path), base_url, seen.num_secrets + num_in_body + num_in_url)


def request_of(body: Any, path: str = "") -> Request:
    """A body as a request, its endpoint by the path or else by what the body holds. Raises IncidentError."""
    if not isinstance(body, dict):
        raise IncidentError("the request's body is no JSON object", advice="it must have `messages` or `prompt`")
    endpoint: Endpoint = COMPLETION if "messages" not in body else CHAT
    if not body.get("messages") and not body.get("prompt"):
        raise IncidentError(
            f"the request {path or 'given'} has neither `messages` nor `prompt`",
            advice="qgate repro takes requests to /v1/chat/completions and /v1/completions",
        )
    try:
        return Request(endpoint=endpoint, body=body)
    except ValidationError as error:
        raise IncidentError(
            f"the request cannot be replayed: {reason(error)}", advice="file it as it was sent"
        ) from error


def _as_posix(text: str) -> str:
    """A command that was written for Windows' shells as sh has it; any other as it is."""
    for_cmd = FOR_CMD.search(text) is not None
    if found := GOES_ON.search(text):
        text = re.sub(rf"[ \t]{re.escape(found[1])}[ \t]*\r?\n", " ", text)
    return re.sub(r"\^(.)", r"\1", text, flags=re.DOTALL) if for_cmd else text


def _read(words: list[str]) -> _Seen:
    seen = _Seen()
    while words:
        word = words.pop(0)
        if not word.startswith("-") or word == "-":
            if seen.url is None or (_is_address(word) and not _is_address(seen.url)):
                seen.url = word
            continue
        for option, value in _options(word, words):
            _note(seen, option, value)
    return seen


def _is_address(word: str) -> bool:
    """Whether it is surely an address, and not the value of an option that is not known here."""
    return "://" in word or word.rstrip("/").endswith((CHAT, COMPLETION))


def _options(word: str, rest: list[str]) -> list[tuple[str, str]]:
    """The options that one word holds, with their values: `--data x`, `--data=x`, `-dx`, `-sSX POST`."""
    if word.startswith("--"):
        name, has_value, value = word.partition("=")
        if _takes_value(name):
            return [(name, value if has_value else _next(rest))]
        return [(name, "")]
    found: list[tuple[str, str]] = []
    for index, letter in enumerate(word[1:], start=1):
        name = f"-{letter}"
        if _takes_value(name):
            return [*found, (name, word[index + 1 :] or _next(rest))]
        found.append((name, ""))
    return found


def _takes_value(name: str) -> bool:
    return name in DATA or name in WITH_VALUE or name in SECRET_OPTIONS


def _next(rest: list[str]) -> str:
    return rest.pop(0) if rest else ""


def _note(seen: _Seen, option: str, value: str) -> None:
    if option in DATA:
        seen.data.append((option, value))
    elif option == "--url":
        seen.url = value
    elif option in SECRET_OPTIONS or (option in {"-H", "--header"} and _is_secret(value)):
        seen.num_secrets += 1


def _is_secret(header: str) -> bool:
    name = header.partition(":")[0].lower()
    return any(word in name for word in SECRET_HEADERS)


def _body(data: list[tuple[str, str]], standard_input: str | None, folder: Path) -> Any:
    text = "&".join(_data(option, value, standard_input, folder) for option, value in data)
    if not text.strip():
        raise IncidentError("the curl command sends no body", advice="qgate repro needs the body behind -d or --data")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise IncidentError(f"the body of the curl command is not JSON: {error}", advice=HOW) from error


def _data(option: str, value: str, standard_input: str | None, folder: Path) -> str:
    if not value.startswith("@") or option == "--data-raw":
        return value
    if value == "@-":
        if standard_input is None:
            raise IncidentError("the curl command reads its body from a pipe", advice="paste the body: -d '{...}'")
        return standard_input
    try:
        return (folder / value[1:]).read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        advice = "paste the body itself: -d '{...}', or put the file beside the file with the command"
        raise IncidentError(f"cannot read {value[1:]}, which the curl command sends: {why}", advice=advice) from error


def _split(url: str) -> tuple[str, str, int]:
    """Base address without user, password and query; path; how many secrets those were."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
    except ValueError as error:
        raise IncidentError(f"the curl command's URL cannot be read: {error}", advice=HOW) from error
    host = parts.netloc.rpartition("@")[2]
    for path in (CHAT, COMPLETION, CHAT.removeprefix("/v1"), COMPLETION.removeprefix("/v1")):
        if parts.path.rstrip("/").endswith(path):
            base = parts.path.rstrip("/").removesuffix(path)
            break
    else:
        base = ""
    num_secrets = int("@" in parts.netloc) + int(bool(parts.query))
    return urlunsplit((parts.scheme, host, base.removesuffix("/v1"), "", "")), parts.path, num_secrets
