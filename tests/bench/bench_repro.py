"""Faults of one in a hundred on the fake engine: how often `qgate repro` names the right cause, and in how many calls.

    python -m tests.bench.bench_repro

Each row is 20 requests that differ in their prompt alone, as `--rate 0.01 --calls 0` asks them. docs/repro.md has them.
"""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from pathlib import Path
from statistics import median
from typing import Any

from qgate.engines.fake import ENGINE
from tests.unit.test_repro import STORY, Bench

RATE, NUM_REQUESTS = 0.01, 20
WORLDS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "weights": (("candidate",), {}),
    "kernel_or_engine": ((), {"candidate": {"options": {"bad_kernel": RATE}}}),
    "nondeterminism_under_load": ((), {"candidate": {"options": {"race": RATE}}, "concurrency": 8}),
    "baseline_too": (("candidate", "baseline"), {}),
}
"""Cause to the sides whose weights garble, and the incident's other fields."""


def _asked(number: int, garbled: tuple[str, ...], fields: dict[str, Any]) -> tuple[str, int]:
    """The cause with its confidence, and the calls that it took."""
    ENGINE._sessions.clear()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["QGATE_HOME"] = str(Path(folder) / "home")
        bench = Bench(Path(folder))
        for side in garbled:
            bench.plant(side, "fake.json", {"garble": RATE})
        messages = [{"role": "user", "content": f"Case {number}. {STORY}"}]
        body = {"messages": messages, "temperature": 0.7, "max_tokens": 64}
        report = bench.run(bench.incident(request={"body": body}, **fields), rate=RATE)
    found = report.attribution
    calls = sum(each.tries + each.missing for each in report.experiments)
    return f"{found.cause} ({found.confidence})" if found.confidence else found.cause, calls


def main() -> None:
    """A Markdown table."""
    print("| planted | named | calls: median | most |\n| --- | --- | --- | --- |")
    for cause, (garbled, fields) in WORLDS.items():
        runs = [_asked(number, garbled, fields) for number in range(NUM_REQUESTS)]
        named = ", ".join(f"{name} {num}" for name, num in Counter(name for name, _ in runs).most_common())
        calls = [num for _, num in runs]
        print(f"| {cause} | {named} | {median(calls):.0f} | {max(calls)} |", flush=True)


if __name__ == "__main__":
    main()
