"""Wall-time bench: a whole gate by `qgate run` beside the same generation as consecutive lm-eval + vLLM runs.

    python -m tests.gpu.bench_gate --baseline DIR --variant NAME=DIR ... --lm-eval PYTHON --out FOLDER --work FOLDER STEP ...

Steps: `warm` starts every server once, counted nowhere, so that both sides find compiled kernels and read files;
`qgate` is a run of baseline, A/A and the variants, judged, with its reports; `lm-eval` is what one would do without it:
for the baseline, the baseline again and each variant, start a server, ask the same prompts with the same sampling and the
same concurrency, stop it. lm-eval's servers get qgate's own arguments; its tasks compute no metric and score no token.
Times are of whole processes. Every step adds to gate.json; gate.md is written when both sides are there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from qgate.engines.vllm import ENGINE
from qgate.io import artefact, envs, host, recipe
from qgate.io.proc import Child
from qgate.rooms.prepare import prepare
from qgate.schemas.run import Run
from tests.gpu import gate_page, lm_eval_side
from tests.gpu.serving import Notes

ROOT = Path(__file__).parents[2]
ONE_TURN = ["count", "keywords", "order", "start-end", "case", "punctuation", "layout", "two-constraints",
            "three-constraints", "data", "table", "answer-only", "language"]  # fmt: skip
"""Kinds of the instruction set that are one user message: what an lm-eval task can ask as it stands."""
MARGIN = [{"metric": "score_loss", "margin": 0.05}, {"metric": "defect_increase", "margin": 0.03},
          {"metric": "kl_mean", "margin": 0.1}]  # fmt: skip


@dataclass(frozen=True)
class Gate:
    """What is compared."""

    baseline: Path
    variants: dict[str, Path]
    given: argparse.Namespace

    @property
    def work(self) -> Path:
        """Scratch folder of this bench."""
        folder: Path = self.given.work
        return folder

    def write_recipe(self, name: str, limit: int) -> Path:
        """The gate as a recipe, on `limit` items of each set."""
        given = self.given
        options = {
            "kv_cache_memory_bytes": int(given.kv_cache_gib * (1 << 30)), "max_num_seqs": given.max_num_seqs,
            "score_memory_bytes": 2 << 30, "enforce_eager": given.eager,
            "env": dict(pair.split("=", 1) for pair in given.variable),
        }  # fmt: skip
        content = {
            "qgate": 1,
            "name": name,
            "model": {"path": str(self.baseline)},
            "variants": {key: {"checkpoint": {"path": str(path)}} for key, path in self.variants.items()},
            "engine": {
                "name": "vllm", "env": given.env, "concurrency": given.concurrency, "parallel": 1 + len(self.variants),
                "options": options,
            },
            "evalsets": [
                {"name": "instruction@1", "where": {"kind": ONE_TURN}, "limit": limit},
                {"name": "noisy-text@1", "limit": limit},
            ],
            "sampling": {
                "greedy": {"temperature": 0, "max_tokens": given.max_tokens, "seeds": [0]},
                "warm": {"temperature": 0.8, "top_p": 0.95, "max_tokens": given.max_tokens, "seeds": [0]},
            },
            "noise_floor": {"replicates": 1},
            "token_evidence": {"max_items": given.score_items},
            "tiers": {
                "chat": {"default": next(iter(self.variants)), "allow": list(self.variants), "criteria": MARGIN}
            },
        }  # fmt: skip
        self.work.mkdir(parents=True, exist_ok=True)
        path = self.work / f"{name}.yaml"
        path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
        return path


def run_qgate(gate: Gate, name: str, limit: int) -> tuple[float, Run]:
    """A fresh `qgate run` in a process of its own: its wall time, start to exit, and what it wrote."""
    results = gate.work / f"results-{name}"
    shutil.rmtree(results, ignore_errors=True)  # nothing stored: everything is done in the time that is measured
    argv = [sys.executable, "-m", "qgate", "run", str(gate.write_recipe(name, limit)), "--results", str(results)]
    began = time.monotonic()
    with Child(argv, log=gate.work / f"{name}.log", env={"PYTHONPATH": _path()}, cwd=gate.work) as child:
        while (code := child.wait(1.0)) is None:
            pass
    wall_s = time.monotonic() - began
    written = sorted((results / "runs").glob("*/run.json"))
    if code not in {0, 1, 3} or not written:
        raise RuntimeError(f"qgate run ended with {code}\n{(gate.work / f'{name}.log').read_text()[-4000:]}")
    found = artefact.load(written[-1], Run)
    if found.failures:
        raise RuntimeError(f"variants failed: {found.failures}")
    return wall_s, found


def _path() -> str:
    return os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])


def warm(gate: Gate) -> dict[str, Any]:
    """Every server once with the very arguments that are measured, side by side, and lm-eval once without a model."""
    began = time.monotonic()
    prepared = prepare(recipe.load(gate.write_recipe("gate", gate.given.limit)), gate.work / "results-warm", Notes())
    models = {"baseline": gate.baseline, **gate.variants}
    prepared = replace(prepared, most_together=len(models))

    def facts(name: str) -> dict[str, Any]:
        job = prepared.job(name, models[name], gate.given.concurrency)
        job.work.mkdir(parents=True)
        with ENGINE.open(job) as session:
            return session.facts.model_dump(mode="json")

    with ThreadPoolExecutor(len(models)) as pool:
        servers = dict(zip(models, pool.map(facts, models), strict=True))
    (gate.work / "servers.json").write_text(json.dumps(servers, indent=1))
    lm_eval_side.touch(gate.given.lm_eval, gate.work)
    return {"wall_s": time.monotonic() - began, "start_s": {name: one["start_s"] for name, one in servers.items()}}


def ours(gate: Gate) -> dict[str, Any]:
    """The gate by qgate."""
    wall_s, found = run_qgate(gate, "gate", gate.given.limit)
    answers = [arm for arm in found.arms if arm.step == "generate"]
    return {
        "wall_s": wall_s,
        "timings_s": found.timings_s,
        "start_s": {name: facts.start_s for name, facts in found.engine_facts.items()},
        "num_answers": sum(arm.num_answers for arm in answers),
        "num_tokens": sum(arm.completion_tokens for arm in answers),
        "num_scored": sum(arm.num_answers for arm in found.arms if arm.step == "score"),
        "generation_s": {
            name: sum(arm.wall_s or 0.0 for arm in answers if arm.variant == name) for name in found.engine_facts
        },
        "kernels": {name: facts.kernels for name, facts in found.engine_facts.items()},
        "version": found.engine_facts["baseline"].version,
        "tokens_of": {
            name: [sum(arm.completion_tokens for arm in answers if (arm.variant, arm.replicate) == (name, replicate))
                   for replicate in ((0, 1) if name == "baseline" else (0,))]
            for name in found.engine_facts
        },
    }  # fmt: skip


def theirs(gate: Gate) -> dict[str, Any]:
    """The same by lm-eval: one run after the other."""
    loaded = recipe.load(gate.write_recipe("gate", gate.given.limit))
    plan = prepare(loaded, gate.work / "results-plan", Notes()).plan
    steps = [step for step in plan.generate if (step.variant, step.replicate) == ("baseline", 0)]
    tasks = lm_eval_side.write_tasks(steps, gate.work / "tasks")
    servers = json.loads((gate.work / "servers.json").read_text())
    side = lm_eval_side.LmEval(
        python=gate.given.lm_eval, server_python=str(envs.resolve(gate.given.env).python), tasks=tasks,
        concurrency=gate.given.concurrency, work=gate.work,
    )  # fmt: skip
    arms = [("baseline", gate.baseline), ("baseline", gate.baseline), *gate.variants.items()]
    began, runs = time.monotonic(), []
    for number, (name, model) in enumerate(arms):
        runs.append(side.run(number, name, model, servers[name]))
        print(f"lm-eval · {name}: {runs[-1]['wall_s']:.1f} s", flush=True)
    return {
        "wall_s": time.monotonic() - began,
        "runs": runs,
        "num_answers": sum(run["num_answers"] for run in runs),
        "num_tokens": sum(run["num_tokens"] for run in runs),
        "lm_eval_version": side.version(),
    }


STEPS = {"warm": warm, "qgate": ours, "lm-eval": theirs}


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.bench_gate")
    parser.add_argument("steps", nargs="+", choices=STEPS)
    parser.add_argument("--baseline", type=Path, required=True)
    parser.add_argument("--variant", action="append", required=True, metavar="NAME=DIR")
    parser.add_argument("--lm-eval", required=True, metavar="PYTHON", help="a python that imports lm_eval")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--env", default="vllm")
    parser.add_argument("--limit", type=int, default=220, help="items of each of the two sets")
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--concurrency", type=int, default=128)
    parser.add_argument("--max-num-seqs", type=int, default=128)
    parser.add_argument("--kv-cache-gib", type=float, default=8.0)
    parser.add_argument("--score-items", type=int, default=40, help="answers of each set and profile that qgate scores")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--variable", action="append", default=[], metavar="NAME=VALUE", help="of every server")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> None:
    """Do the steps in the order given."""
    given = arguments(argv)
    variants = {name: Path(path).absolute() for name, path in (pair.split("=", 1) for pair in given.variant)}
    given.work, given.out = given.work.absolute(), given.out.absolute()
    gate = Gate(given.baseline.absolute(), variants, given)
    settings = {
        name: getattr(given, name)
        for name in (
            "limit",
            "max_tokens",
            "concurrency",
            "max_num_seqs",
            "kv_cache_gib",
            "score_items",
            "eager",
            "variable",
        )
    }
    for name in given.steps:
        found = STEPS[name](gate)
        print(f"{name}: {found['wall_s']:.1f} s", flush=True)
        gate_page.add(
            given.out, name, found, {"settings": settings, "variants": list(variants), "host": host.describe()}
        )


if __name__ == "__main__":
    main(sys.argv[1:])
