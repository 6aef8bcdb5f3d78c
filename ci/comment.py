"""A Markdown file in, one comment on a pull request that says it out: a later run replaces the comment of an earlier one.

    TOKEN=… python3 ci/comment.py comment.md 7

The file's first line, a hidden marker, tells which comment is meant. GITHUB_API_URL and GITHUB_REPOSITORY say where. It
runs on whatever a runner has: Python's standard library, no `gh`.
"""

import json
import os
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

PAGE = 100


def main() -> None:
    """Raises OSError where the file or the API cannot be reached, or the API says no."""
    body = Path(sys.argv[1]).read_text(encoding="utf-8")
    repository = f"repos/{os.environ['GITHUB_REPOSITORY']}/issues"
    of_request = f"{repository}/{sys.argv[2]}/comments"
    marker = body.partition("\n")[0]
    login = _login()
    earlier = [
        each["id"] for each in _comments(of_request) if each["body"].startswith(marker) and _is_mine(each, login)
    ]
    if earlier:
        _call("PATCH", f"{repository}/comments/{earlier[0]}", {"body": body})
    else:
        _call("POST", of_request, {"body": body})


def _comments(path: str) -> Iterator[Any]:
    for page in count(1):
        found = _call("GET", f"{path}?per_page={PAGE}&page={page}")
        yield from found
        if len(found) < PAGE:
            return


def _login() -> str | None:
    """Who the token is; None for a job's own token or another app's, which may not ask."""
    try:
        return str(_call("GET", "user")["login"])
    except HTTPError:
        return None


def _is_mine(comment: Any, login: str | None) -> bool:
    """Not a person's, who may have written the marker into a comment in order to edit the verdict later."""
    author = comment["user"] or {}
    return author.get("login") == login if login else author.get("type") == "Bot"


def _call(method: str, path: str, value: dict[str, str] | None = None) -> Any:
    url = f"{os.environ.get('GITHUB_API_URL', 'https://api.github.com')}/{path}"
    headers = {"Authorization": f"Bearer {os.environ['TOKEN']}", "Accept": "application/vnd.github+json"}
    data = None if value is None else json.dumps(value).encode()
    with urlopen(Request(url, data, headers, method=method), timeout=30) as answer:
        return json.load(answer)


if __name__ == "__main__":
    try:
        main()
    except OSError as error:
        sys.exit(f"comment: {error}")
