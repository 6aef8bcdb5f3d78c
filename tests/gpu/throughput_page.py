"""The throughput bench's measurements in, throughput.json and throughput.md out. Touches the disk."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

TARGET = 0.95
THEIRS = "LLM.generate"


@dataclass
class Page:
    """What was measured so far. Every measurement is written as it comes."""

    folder: Path
    given: dict[str, Any]
    head: dict[str, Any] = field(default_factory=lambda: {"began": datetime.now(UTC).isoformat(timespec="seconds")})
    cases: dict[str, dict[str, Any]] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, case: str, side: str, found: dict[str, Any]) -> None:
        """One measurement. AssertionError where an answer or a token is missing, or the prompts differ."""
        wanted = self.given["num"]
        assert found["num_answers"] == wanted, f"{case}, {side}: {found['num_answers']} of {wanted} answers"
        assert found["num_tokens"] == wanted * self.given["max_tokens"], f"{case}, {side}: {found['num_tokens']} tokens"
        prompts = found.pop("prompts")
        first = self.head.setdefault("prompts", {}).setdefault(case, prompts)
        assert prompts == first, f"{case}, {side}: other prompts than before"
        self.runs.append({"case": case, "side": side, "tokens_per_s": found["num_tokens"] / found["wall_s"], **found})
        self.write()

    def rates(self, case: str, side: str) -> list[float]:
        """Tokens per second of each repeat, in order."""
        return [run["tokens_per_s"] for run in self.runs if run["case"] == case and run["side"] == side]

    def ratios(self, case: str) -> dict[str, list[float]]:
        """The rate of each of qgate's sides over the other's, repeat by repeat, as far as both are there."""
        sides = dict.fromkeys(run["side"] for run in self.runs if run["case"] == case and run["side"] != THEIRS)
        found = {
            side: [
                ours / theirs for ours, theirs in zip(self.rates(case, side), self.rates(case, THEIRS), strict=False)
            ]
            for side in sides
        }
        return {side: ratios for side, ratios in found.items() if ratios}

    def write(self) -> None:
        """Both files, as far as it is known."""
        head = {name: value for name, value in self.head.items() if name != "prompts"}
        ratios = {case: self.ratios(case) for case in self.cases}
        content = {"given": self.given, **head, "cases": self.cases, "runs": self.runs, "ratios": ratios}
        (self.folder / "throughput.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        (self.folder / "throughput.md").write_text(self.markdown(), encoding="utf-8")

    def markdown(self) -> str:
        """The table."""
        given = self.given
        gpus = ", ".join(gpu["name"] for gpu in given["host"]["gpus"]) or given["host"]["cpu"]
        rows = [self._row(case, *found) for case in self.cases for found in self.ratios(case).items()]
        lines = [
            f"{given['num']:,} prompts × {given['max_tokens']} tokens, greedy, EOS ignored, at most {given['max_num_seqs']} "
            f"sequences in a batch; {gpus}. Tokens per second of each repeat; the ratio is qgate over LLM.generate.",
            "",
            f"| Checkpoint | Precision | Kernel | LLM.generate | Side | Its tokens/s | Ratio: least, median | ≥ {TARGET} |",
            "| --- | --- | --- | --- | --- | --- | --- | --- |",
        ]
        return "\n".join([*lines, *rows]) + "\n"

    def _row(self, name: str, ours: str, ratios: list[float]) -> str:
        case = self.cases[name]
        kernel = case[ours]["kernels"].get("linear", "the plain one").split(" for ")[0]
        rates = [", ".join(f"{rate:,.0f}" for rate in self.rates(name, side)) for side in (THEIRS, ours)]
        verdict = "yes" if min(ratios) >= TARGET else "median only" if median(ratios) >= TARGET else "no"
        size = f"{name} ({case['num_parameters'] / 1e9:.2f} B)"
        ratio = f"{min(ratios):.3f}, {median(ratios):.3f}"
        return f"| {size} | {case['precision']} | {kernel} | {rates[0]} | {ours} | {rates[1]} | {ratio} | {verdict} |"
