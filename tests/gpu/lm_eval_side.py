"""lm-eval's side of the gate bench: requests in, task files and timed lm-eval runs out. Spawns through qgate.io."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from qgate.engines import vllm_log
from qgate.errors import EngineError
from qgate.io import distributions
from qgate.io.calls import Target, Watch
from qgate.io.client import Client
from qgate.io.proc import Child
from qgate.plan import GenerateStep

START_S = 600.0
STOP_WORD = "<|im_end|>"
"""The template's own end of a turn: lm-eval asks for stop words, and would otherwise stop at a blank line."""
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@dataclass(frozen=True)
class Tasks:
    """Task files and how much they ask."""

    folder: Path
    names: tuple[str, ...]
    num_requests: int


def write_tasks(steps: Sequence[GenerateStep], folder: Path) -> Tasks:
    """One task for each step and set of sampling fields, the prompts as they are in the requests."""
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[tuple[str, str], list[str]] = {}
    for step in steps:
        for request in step.requests:
            (message,) = request.messages
            fields = request.sampling.model_dump(include={"temperature", "top_p", "max_tokens"})
            kwargs = {**fields, "do_sample": fields["temperature"] > 0, "until": [STOP_WORD]}
            group = groups.setdefault((f"{step.evalset}-{step.profile}", json.dumps(kwargs)), [])
            group.append(json.dumps({"prompt": message.content, "target": ""}, ensure_ascii=False))
    names = []
    for number, ((label, kwargs), lines) in enumerate(groups.items()):
        names.append(f"bench_{number}_{label}".replace("-", "_"))
        (folder / f"{names[-1]}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        task = {
            "task": names[-1],
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(folder / f"{names[-1]}.jsonl")}},
            "test_split": "test",
            "output_type": "generate_until",
            "doc_to_text": "prompt",
            "doc_to_target": "target",
            "generation_kwargs": json.loads(kwargs),
            "metric_list": [{"metric": "bypass"}],
        }
        (folder / f"{names[-1]}.yaml").write_text(yaml.safe_dump(task, sort_keys=False), encoding="utf-8")
    return Tasks(folder, tuple(names), sum(len(lines) for lines in groups.values()))


def touch(python: str, work: Path) -> None:
    """Import lm-eval and list its tasks once, so that its files are in memory and compiled."""
    _finish([python, "-m", "lm_eval", "ls", "tasks"], work / "lm-eval-touch.log", 300)


@dataclass(frozen=True)
class LmEval:
    """How lm-eval and its servers are run."""

    python: str
    server_python: str
    tasks: Tasks
    concurrency: int
    work: Path

    def run(self, number: int, name: str, model: Path, facts: Mapping[str, Any]) -> dict[str, Any]:
        """Start a server with the arguments that qgate gave it, ask everything, stop it. Seconds of each."""
        port = 31_100 + number
        log = self.work / f"lm-eval-{number}-{name}-server.log"
        words = {"python": self.server_python, "<checkpoint>": str(model), "<port>": str(port)}
        began = time.monotonic()
        with Child([words.get(word, word) for word in facts["argv"]], log=log, env=facts["env_vars"]) as child:
            client = Client(Target(f"http://127.0.0.1:{port}", 1, 60.0, Watch(name, 60.0)))
            _until_healthy(client, child)
            ready = time.monotonic()
            num_answers = self._ask(number, name, port)
            asked = time.monotonic()
            tokens = vllm_log.metrics(client.get("/metrics")[1])["generation_tokens"]
        ended = time.monotonic()
        return {
            "name": name, "wall_s": ended - began, "start_s": ready - began, "ask_s": asked - ready,
            "stop_s": ended - asked, "num_answers": num_answers, "num_tokens": int(tokens),
        }  # fmt: skip

    def _ask(self, number: int, name: str, port: int) -> int:
        """One lm-eval run over all tasks. Returns the number of answers that it kept."""
        out = self.work / f"lm-eval-{number}-{name}"
        shutil.rmtree(out, ignore_errors=True)
        model_args = {
            "model": name, "base_url": f"http://127.0.0.1:{port}/v1/chat/completions", "tokenized_requests": "False",
            "num_concurrent": self.concurrency, "max_retries": 3, "timeout": 600, "seed": 0,
        }  # fmt: skip
        argv = [
            self.python, "-m", "lm_eval", "run", "--model", "local-chat-completions",
            "--model_args", ",".join(f"{key}={value}" for key, value in model_args.items()),
            "--tasks", ",".join(self.tasks.names), "--include_path", str(self.tasks.folder), "--apply_chat_template",
            "--output_path", str(out), "--log_samples",
        ]  # fmt: skip
        _finish(argv, self.work / f"lm-eval-{number}-{name}.log", 900)
        files = [file.read_text(encoding="utf-8") for file in out.rglob("samples_*.jsonl")]
        kept = [line for text in files for line in text.split("\n") if line]  # answers hold other ends of lines
        if len(kept) != self.tasks.num_requests:
            raise RuntimeError(f"lm-eval kept {len(kept)} answers of {self.tasks.num_requests}")
        return len(kept)

    def version(self) -> str:
        """Installed version of lm-eval."""
        found = distributions.installed(distributions.probe(Path(self.python)).path)
        return found.get("lm-eval", "unknown")


def _until_healthy(client: Client, child: Child) -> None:
    """As one waits in a script: until /health is 200. RuntimeError where the server ends or takes too long."""
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline and child.poll() is None:
        try:
            if client.get("/health", timeout_s=2.0)[0] == 200:
                return
        except EngineError:
            pass
        child.wait(0.25)
    raise RuntimeError(f"the server did not start; log: {child.log}\n{child.log.read_text(errors='replace')[-3000:]}")


def _finish(argv: Sequence[str], log: Path, timeout_s: float) -> None:
    """Run a command to its end. RuntimeError with its log's tail where it fails."""
    deadline = time.monotonic() + timeout_s
    clean = {name: "" for name in ("PYTHONPATH",) if name in os.environ}
    with Child(argv, log=log, env=OFFLINE, drop=clean) as child:
        while (code := child.wait(0.2)) is None:
            if time.monotonic() > deadline:
                raise RuntimeError(f"{argv[2]} took longer than {timeout_s:.0f} s; log: {log}")
    if code != 0:
        raise RuntimeError(f"{' '.join(argv[:4])} ended with {code}\n{log.read_text(errors='replace')[-3000:]}")
