"""ci/comment.py against an API that answers as GitHub's does: one comment, written once and then replaced."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlparse

import pytest

from tests.served import served

SCRIPT = Path(__file__).parents[2] / "ci" / "comment.py"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
PERSON = {"login": "mallory", "type": "User"}


class Api(ThreadingHTTPServer):
    """Comments of pull request 7 of o/r. `login`: who the token's owner is; None for a job's own token, which may not ask."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.comments: list[dict[str, Any]] = []
        self.login: str | None = None
        self.read_only = False

    def add(self, body: str, user: dict[str, str]) -> None:
        self.comments.append({"id": 1000 + len(self.comments), "body": body, "user": user})


class Handler(BaseHTTPRequestHandler):
    server: Api

    def do_GET(self) -> None:
        address = urlparse(self.path)
        if address.path == "/user":
            return self.answer({"login": self.server.login}, 200 if self.server.login else 403)
        assert address.path == "/repos/o/r/issues/7/comments"
        query = parse_qs(address.query)
        size, page = int(query["per_page"][0]), int(query["page"][0])
        return self.answer(self.server.comments[(page - 1) * size : page * size])

    def do_POST(self) -> None:
        if self.server.read_only:
            return self.answer({"message": "Resource not accessible by integration"}, 403)
        assert self.path == "/repos/o/r/issues/7/comments"
        assert self.headers["Authorization"] == "Bearer secret"
        user = BOT if self.server.login is None else {"login": self.server.login, "type": "User"}
        self.server.add(self.body(), user)
        return self.answer({}, 201)

    def do_PATCH(self) -> None:
        number = int(self.path.removeprefix("/repos/o/r/issues/comments/"))
        (found,) = [comment for comment in self.server.comments if comment["id"] == number]
        found["body"] = self.body()
        self.answer({})

    def body(self) -> str:
        return str(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["body"])

    def answer(self, value: Any, status: int = 200) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def serving() -> Iterator[Api]:
    with served(server := Api()):
        yield server


@pytest.fixture
def api() -> Iterator[Api]:
    with serving() as server:
        yield server


def say(api: Api, folder: Path, words: str) -> int:
    """Run the script as the action does."""
    (folder / "comment.md").write_text(f"<!-- qgate small -->\n{words}\n", encoding="utf-8")
    environment = {
        **os.environ, "GITHUB_API_URL": f"http://127.0.0.1:{api.server_port}", "GITHUB_REPOSITORY": "o/r", "TOKEN": "secret",
    }  # fmt: skip
    command = [sys.executable, str(SCRIPT), str(folder / "comment.md"), "7"]
    return subprocess.run(command, env=environment, check=False, capture_output=True).returncode


@pytest.mark.parametrize("login", [None, "release-team"], ids=["the job's token", "a person's token"])
def test_it_is_written_once_and_then_replaced(api: Api, tmp_path: Path, login: str | None) -> None:
    api.login = login
    for number in range(100):  # a page of others' comments before it
        api.add(f"comment {number}", PERSON)
    assert say(api, tmp_path, "first") == 0
    assert say(api, tmp_path, "second") == 0
    assert [comment["body"] for comment in api.comments[100:]] == ["<!-- qgate small -->\nsecond\n"]


def test_a_comment_that_somebody_else_can_edit_is_left_alone(api: Api, tmp_path: Path) -> None:
    api.add("<!-- qgate small -->\nput your verdict here", PERSON)
    api.add("<!-- qgate another -->\nanother recipe's", BOT)
    assert say(api, tmp_path, "words") == 0
    assert len(api.comments) == 3
    assert api.comments[2]["body"] == "<!-- qgate small -->\nwords\n"


def test_a_token_that_may_only_read(api: Api, tmp_path: Path) -> None:
    api.read_only = True
    assert say(api, tmp_path, "words") != 0
    assert api.comments == []
