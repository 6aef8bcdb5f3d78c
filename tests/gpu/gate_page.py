"""The gate bench's steps in, gate.json and gate.md out. Touches the disk."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TARGET = 0.5


def add(folder: Path, step: str, found: dict[str, Any], about: dict[str, Any]) -> None:
    """Add one step's measurements. A file that was made with other settings is not added to: ValueError."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "gate.json"
    page: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {**about, "steps": {}}
    for name in ("settings", "variants"):
        if page[name] != about[name]:
            raise ValueError(f"{path} was made with other {name}: {page[name]}")
    page["steps"][step] = {"ended": datetime.now(UTC).isoformat(timespec="seconds"), **found}
    if {"qgate", "lm-eval"} <= set(page["steps"]):
        page["ratio"] = page["steps"]["qgate"]["wall_s"] / page["steps"]["lm-eval"]["wall_s"]
        (folder / "gate.md").write_text(markdown(page), encoding="utf-8")
        print(markdown(page))
    path.write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")


def markdown(page: dict[str, Any]) -> str:
    """Where the time went on both sides."""
    ours, theirs = page["steps"]["qgate"], page["steps"]["lm-eval"]
    gpu = ", ".join(one["name"] for one in page["host"]["gpus"]) or page["host"]["cpu"]
    runs = theirs["runs"]
    parts = {name: sum(run[name] for run in runs) for name in ("start_s", "ask_s", "stop_s")}
    starts = ours["start_s"].values()
    stages = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in ours["timings_s"].items() if name != "total")
    verdict = "at most half" if page["ratio"] <= TARGET else "more than half"
    return (
        f"A gate of baseline, A/A and {len(page['variants'])} variants ({', '.join(page['variants'])}) on {gpu}: "
        f"{page['settings']['limit']} items of each of two sets, greedy and at temperature 0.8, at most "
        f"{page['settings']['max_tokens']} tokens, {page['settings']['concurrency']} requests in flight.\n\n"
        "| | Wall time | Answers | Tokens | Where it went |\n| --- | --- | --- | --- | --- |\n"
        f"| `qgate run`, judged | {ours['wall_s']:.0f} s | {ours['num_answers']:,} | {ours['num_tokens']:,} | "
        f"servers side by side, up after {min(starts):.0f}–{max(starts):.0f} s; {stages}; "
        f"{ours['num_scored']:,} answers scored |\n"
        f"| {len(runs)} lm-eval runs with a vLLM server each | {theirs['wall_s']:.0f} s | {theirs['num_answers']:,} | "
        f"{theirs['num_tokens']:,} | servers starting {parts['start_s']:.0f} s, lm-eval asking {parts['ask_s']:.0f} s, "
        f"servers stopping {parts['stop_s']:.0f} s; nothing scored |\n\n"
        f"Ratio {page['ratio']:.2f}: {verdict}.\n"
    )
