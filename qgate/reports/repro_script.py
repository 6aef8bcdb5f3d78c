"""An incident's report in, a shell script with curl and a Python script that fail on their own out. Pure.

Both ask a running server of the candidate the minimal request (the filed one, where none was found) as often as it takes
to see the failure with 95 %, and exit with 1 when it shows, 0 when it does not, 2 when the server does not answer. They
need no qgate. Keys come from the environment and are nowhere written.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from inspect import getsource
from typing import Any

from qgate.judge.effects import Count, tries_to_see
from qgate.judge.factors import AS_FILED
from qgate.reports import repro_check
from qgate.reports.visible import one_line
from qgate.schemas.minimised import Body
from qgate.schemas.repro import Experiment, Repro, Try

MOST_TRIES = 600
NUM_KNOWN = 3

PYTHON = '''\
#!/usr/bin/env python3
"""{title}

{said}
    QGATE_URL=http://127.0.0.1:8000 python3 repro.py
Exits with 1 when the failure shows, 0 when it does not, 2 when the server does not answer. QGATE_MODEL names the model
where the server has several; QGATE_API_KEY is sent as a bearer token where it is set. Needs Python 3.8 and no package.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import sys
import urllib.error
import urllib.request

PATH = {path}
BODY = json.loads({body})
HOW = json.loads({how})
SEED, TRIES, IN_FLIGHT = {seed}, {tries}, {in_flight}
URL = os.environ.get("QGATE_URL", {url}).rstrip("/")
URL = URL[:-3] if URL.endswith("/v1") else URL

{check}

def call(path, body=None):
    headers = {{"content-type": "application/json"}}
    if os.environ.get("QGATE_API_KEY"):
        headers["authorization"] = "Bearer " + os.environ["QGATE_API_KEY"]
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(URL + path, data=data, headers=headers)
    with urllib.request.urlopen(request, timeout=600) as response:
        return json.load(response)


def ask(number):
    choice = call(PATH, dict(BODY, model=MODEL, seed=SEED + number, stream=False))["choices"][0]
    text = choice.get("text") or (choice.get("message") or {{}}).get("content") or ""
    return text, shows_failure(text, choice.get("finish_reason"), HOW)


if __name__ == "__main__":
    try:
        MODEL = os.environ.get("QGATE_MODEL") or call("/v1/models")["data"][0]["id"]
        with concurrent.futures.ThreadPoolExecutor(IN_FLIGHT) as pool:
            failed = [(text, why) for text, why in pool.map(ask, range(TRIES)) if why]
    except (OSError, KeyError, IndexError, ValueError) as error:
        print("no answer from " + URL + ": " + str(error), file=sys.stderr)
        sys.exit(2)
    for text, why in failed[:1]:
        print(", ".join(why) + ":\\n" + ascii(text[:500]))
    print(str(len(failed)) + " of " + str(TRIES) + " answers fail")
    sys.exit(1 if failed else 0)
'''
SHELL = """\
#!/bin/sh
# {title}
# {said}
#     QGATE_URL=http://127.0.0.1:8000 sh repro.sh
# Exits with 1 when the failure shows, 0 when it does not, 2 when the server does not answer. Needs curl and python3.
url=${{QGATE_URL:-{url}}}
url=${{url%/}}; url=${{url%/v1}}
auth() {{ [ -z "$QGATE_API_KEY" ] || printf 'header = "authorization: Bearer %s"\\n' "$QGATE_API_KEY"; }}
ask() {{ auth | curl -sSf --max-time 600 -K - -H 'content-type: application/json' "$@"; }}
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
first_model='import json,sys; print(json.load(sys.stdin)["data"][0]["id"])'
model=${{QGATE_MODEL:-$(ask "$url/v1/models" | python3 -c "$first_model" 2>/dev/null)}}
[ -n "$model" ] || {{ echo "no answer from $url" >&2; exit 2; }}
cat > "$work/check.py" <<'QGATE_CHECK'
from __future__ import annotations
{check}
import glob, json, sys
HOW = json.loads({how})
failed, total = 0, 0
for path in sorted(glob.glob(sys.argv[1] + "/answer-*")):
    try:
        choice = json.load(open(path, encoding="utf-8"))["choices"][0]
    except (ValueError, KeyError, IndexError):
        continue
    total += 1
    text = choice.get("text") or (choice.get("message") or {{}}).get("content") or ""
    why = shows_failure(text, choice.get("finish_reason"), HOW)
    if why and not failed:
        print(", ".join(why) + ":\\n" + ascii(text[:500]))
    failed += bool(why)
print("%d of %d answers fail" % (failed, total))
sys.exit(2 if not total else 1 if failed else 0)
QGATE_CHECK
cat > "$work/body.json" <<'QGATE_BODY'
{body}
QGATE_BODY
with_fields='
import json, sys
body = json.load(open(sys.argv[1], encoding="utf-8"))
print(json.dumps(dict(body, model=sys.argv[2], seed=int(sys.argv[3]), stream=False)))'
number=0
while [ $number -lt {tries} ]; do
  seed=$(({seed} + number))
  python3 -c "$with_fields" "$work/body.json" "$model" $seed > "$work/body-$number.json"
  ask "$url{path}" -d @"$work/body-$number.json" > "$work/answer-$number" &
  number=$((number + 1))
  [ $((number % {in_flight})) -ne 0 ] || wait
done
wait
python3 "$work/check.py" "$work"
"""


@dataclass(frozen=True)
class Script:
    """Both scripts, and how their check was checked."""

    shell: str
    python: str
    checked: str


def make(report: Repro) -> Script:
    """The scripts of a report."""
    body, seen = request_of(report), _seen(report)
    how = _how(report, seen)
    source = getsource(repro_check).partition("import annotations\n\n")[2].rstrip()
    plain = {name: value for name, value in body.items() if name not in {"model", "seed", "stream", "n", "cache_salt"}}
    filed = body.get("seed")
    fields: dict[str, Any] = {
        "title": _one_line(report.title or "An incident"),
        "said": _serve(report),
        "seed": filed if isinstance(filed, int) else 0,
        "tries": _tries(report),
        "in_flight": report.incident.concurrency,
        "check": source,
    }
    text, wanted = json.dumps(plain, indent=1), json.dumps(how)
    url = report.incident.candidate.url or "http://127.0.0.1:8000"
    python = PYTHON.format(
        **fields, path=repr(report.incident.request.endpoint), body=repr(text), how=repr(wanted), url=repr(url)
    )
    shell = SHELL.format(
        **fields, path=report.incident.request.endpoint, body=text, how=repr(wanted), url=shlex.quote(url)
    )
    return Script(shell, python, _checked(seen, how))


def request_of(report: Repro) -> Body:
    """The minimal request, where fresh tries confirmed it and it tells the arms apart as the filed one does."""
    found, filed = report.minimised, report.find(AS_FILED, "baseline")
    if found is None or not found.verified:
        return report.request
    is_another = (
        any(each.effect == "kept" and each.arm == "baseline" for each in report.minimal)
        and filed is not None
        and filed.effect != "kept"
    )
    return report.request if is_another else found.body


def _tries(report: Repro) -> int:
    """As many as see the failure with 95 %, by the lower bound of its rate, and whole loads."""
    filed = report.experiments[0]
    minimal = report.minimised
    failures, tries = filed.failures, filed.tries
    if minimal is not None and minimal.rate.tries and request_of(report) is minimal.body:
        failures, tries = max(1, minimal.rate.failures), minimal.rate.tries
    rate = max(Count(failures, tries).low, 0.005)
    if not failures:
        needed = tries
    else:
        needed = 1 if failures == tries and report.incident.concurrency == 1 else min(MOST_TRIES, tries_to_see(rate))
    load = report.incident.concurrency
    return -(-needed // load) * load


def _seen(report: Repro) -> list[Try]:
    """Recorded answers that the check is held against."""
    found: list[Experiment] = [*report.experiments, *report.minimal]
    return [each.example for each in found if each.example is not None and each.example.came]


def _how(report: Repro, seen: list[Try]) -> dict[str, Any]:
    """What decides in the scripts: what decides in qgate, and likeness to failed answers where a check would miss them."""
    named = report.incident.recognise
    how: dict[str, Any] = {}
    failed = [each for each in seen if each.failed and each.text]
    if defects := sorted({name for each in failed for name in each.defects}):
        how["defects"] = defects
    if named.regex:
        how["regex"] = named.regex
    if named.finish_reason:
        how["finish_reason"] = named.finish_reason
    missed = [each for each in failed if not repro_check.shows_failure(each.text or "", each.finish_reason, how)]
    known = list(dict.fromkeys(each.text or "" for each in missed))[:NUM_KNOWN]
    return how | ({"known": known, "likeness": named.likeness or 0.8} if known else {})


def _checked(seen: list[Try], how: dict[str, Any]) -> str:
    right = sum(
        bool(repro_check.shows_failure(each.text or "", each.finish_reason, how)) == each.failed for each in seen
    )
    return f"Their own check agrees with qgate's on {right} of {len(seen)} recorded answers." if seen else ""


def _serve(report: Repro) -> str:
    facts = report.facts.get("candidate")
    if facts is None or report.incident.candidate.url is not None:
        return "Asks the server of the candidate:"
    return _one_line(f"Serve the candidate (it was served by {facts.engine} {facts.version}), then:")


def _one_line(text: str) -> str:
    """Safe in a comment and in a docstring."""
    return one_line(text).replace("\\", "/").replace('"""', "'''")
