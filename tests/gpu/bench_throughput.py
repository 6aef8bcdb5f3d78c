"""Throughput bench: qgate's generation beside `LLM.generate`, same prompts, same sampling, same machine, same minutes.

    python -m tests.gpu.bench_throughput CASE=CHECKPOINT ... --out FOLDER [--env vllm] [--num 1024] [--max-tokens 256]

All engines are loaded first, then each generates alone, by turns, `--repeats` times. qgate's side is what a run does: the
engine's session, and every answer stored in the answer log as it comes. Both sides ignore EOS, so that both make the
same number of tokens. Writes throughput.json after every measurement, and throughput.md at the end.

`--also four:api_servers=4` adds qgate's side once more under that name, with other options of the engine or another
`concurrency`; each is a server of its own.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from qgate.engines import vllm_log, wire
from qgate.engines.vllm import ENGINE, VllmOptions
from qgate.io import checkpoint, envs, evalsets, host
from qgate.io.answer_log import read_answers
from qgate.io.proc import Child
from qgate.ports import ServeJob, Session, Tool
from qgate.rooms.generate import generate
from qgate.schemas.answers import GenerateRequest, Sampling
from qgate.schemas.recipe import EvalsetUse
from tests.gpu import throughput_page
from tests.gpu.serving import Notes

OTHER_SIDE = Path(__file__).parent / "llm_generate.py"
SETS = ("instruction@1", "noisy-text@1")
LONGEST_PROMPT = 1400
NUM_WARM_UP, WARM_UP_TOKENS = 512, 16
POLL_S = 0.05


@dataclass(frozen=True)
class Setting:
    """What both sides share."""

    tool: Tool
    num: int
    max_tokens: int
    max_num_seqs: int
    concurrency: int
    kv_cache_bytes: int
    env: dict[str, str]
    eager: bool

    @property
    def max_model_len(self) -> int:
        """Tokens of the longest prompt and answer."""
        return LONGEST_PROMPT + self.max_tokens

    def requests(self) -> list[GenerateRequest]:
        """The first `num` items of the sets, greedy."""
        sampling = Sampling(
            temperature=0.0, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
            frequency_penalty=0.0, max_tokens=self.max_tokens, seed=0,
        )  # fmt: skip
        items = [item for name in SETS for item in evalsets.load(EvalsetUse(name=name), Path()).items]
        return [GenerateRequest(id=item.id, messages=item.messages, sampling=sampling) for item in items[: self.num]]


@contextmanager
def ignoring_eos() -> Iterator[None]:
    """The one thing that qgate does otherwise here than in a run: no answer ends before its last token."""
    plain = wire.chat_body

    def body(*args: Any, **names: Any) -> dict[str, Any]:
        return plain(*args, **names) | {"ignore_eos": True}

    wire.chat_body = body
    try:
        yield
    finally:
        wire.chat_body = plain


class Ours:
    """qgate's side of one case. `changes`: options of the engine, or `concurrency`, over the common ones."""

    def __init__(
        self, case: str, model: Path, setting: Setting, folder: Path, side: str, changes: dict[str, Any]
    ) -> None:
        self._case, self._model, self._setting, self._folder = case, model, setting, folder
        self.side, self._changes = side, dict(changes)
        self._session: Session | None = None

    def load(self, stack: ExitStack) -> None:
        """Start the server and send it a few requests."""
        setting, folder = self._setting, self._folder
        folder.mkdir(parents=True)
        common: dict[str, Any] = {
            "kv_cache_memory_bytes": setting.kv_cache_bytes, "max_num_seqs": setting.max_num_seqs, "env": setting.env,
            "max_num_batched_tokens": 8192, "enforce_eager": setting.eager,
        }  # fmt: skip
        concurrency = self._changes.pop("concurrency", setting.concurrency)
        job = ServeJob(
            checkpoint=self._model, name=self._case, dtype="float16", tool=setting.tool, concurrency=concurrency,
            options=VllmOptions.model_validate(common | self._changes), request_timeout_s=600.0, stall_timeout_s=120.0,
            repeatable=False, max_model_len=setting.max_model_len, log=folder / "serve.log", work=folder,
        )  # fmt: skip
        self._session = stack.enter_context(ENGINE.open(job))
        short = [
            one.model_copy(update={"sampling": one.sampling.model_copy(update={"max_tokens": WARM_UP_TOKENS})})
            for one in setting.requests()[:NUM_WARM_UP]
        ]
        for _ in self._session.generate(short):
            pass

    def measure(self, number: int) -> dict[str, Any]:
        """All requests once, every answer stored."""
        assert self._session is not None
        asked, folder = self._setting.requests(), self._folder / f"arm-{number}"
        folder.mkdir()
        began, cpu_began_s = time.perf_counter(), time.process_time()
        generate(self._session, asked, folder, Notes())
        wall_s, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began_s
        answers = read_answers(folder)
        return {
            "wall_s": wall_s,
            "client_cpu_s": cpu_s,
            "num_tokens": sum(answer.completion_tokens or 0 for answer in answers),
            "num_answers": sum(answer.status == "truncated" for answer in answers),
            "prompts": sorted(answer.prompt_token_ids_sha256 or "" for answer in answers),
        }

    def facts(self) -> dict[str, Any]:
        """What served it."""
        assert self._session is not None
        return self._session.facts.model_dump(mode="json", exclude={"qgate"})


class Theirs:
    """`LLM.generate` of one case, in a child."""

    side = "LLM.generate"

    def __init__(self, case: str, model: Path, setting: Setting, folder: Path) -> None:
        self._case, self._model, self._setting, self._folder = case, model, setting, folder
        self._child: Child | None = None

    def load(self, stack: ExitStack) -> None:
        """Start the child and wait until it has generated a little. RuntimeError with its log's tail, if it ends."""
        setting, folder = self._setting, self._folder
        folder.mkdir(parents=True)
        messages = [json.dumps([one.model_dump() for one in request.messages]) for request in setting.requests()]
        (folder / "messages.jsonl").write_text("\n".join(messages), encoding="utf-8")
        engine = {
            "model": str(self._model), "dtype": "float16", "seed": 0, "generation_config": "vllm",
            "max_model_len": setting.max_model_len + 8, "max_num_seqs": setting.max_num_seqs,
            "max_num_batched_tokens": 8192, "kv_cache_memory_bytes": setting.kv_cache_bytes,
            "gpu_memory_utilization": 0.05, "enable_prefix_caching": True, "enforce_eager": setting.eager,
        }  # fmt: skip
        sampling = {"temperature": 0.0, "max_tokens": setting.max_tokens, "seed": 0, "ignore_eos": True}
        request = {"engine": engine, "messages": str(folder / "messages.jsonl"), "sampling": sampling}
        (folder / "request.json").write_text(json.dumps(request, indent=1))
        argv = [str(setting.tool.python), str(OTHER_SIDE), str(folder / "request.json"), str(folder)]
        variables = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "INFO", **setting.env}
        self._child = stack.enter_context(Child(argv, log=folder / "llm.log", env=variables))
        self._wait("ready", 900)

    def measure(self, number: int) -> dict[str, Any]:
        """All prompts once."""
        (self._folder / f"go.{number}").touch()
        found: dict[str, Any] = json.loads(self._wait(f"done.{number}", 600).read_text())
        return found

    def facts(self) -> dict[str, Any]:
        """What its log says."""
        logged = (self._folder / "llm.log").read_text(errors="replace")
        return {"kernels": vllm_log.kernels(logged), "details": vllm_log.numbers(logged)}

    def _wait(self, name: str, timeout_s: float) -> Path:
        assert self._child is not None
        deadline = time.monotonic() + timeout_s
        while not (self._folder / name).exists():
            if (code := self._child.poll()) is not None or time.monotonic() > deadline:
                tail = "\n".join((self._folder / "llm.log").read_text(errors="replace").splitlines()[-30:])
                raise RuntimeError(f"{self._case}: LLM.generate ended ({code}) or took too long\n{tail}")
            time.sleep(POLL_S)
        return self._folder / name


Side = Ours | Theirs


def load_all(sides: Sequence[Side], stack: ExitStack, at_once: int) -> float:
    """Load every engine; they do not wait for each other. Returns the seconds it took."""
    began = time.monotonic()
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda side: side.load(stack), sides))
    return time.monotonic() - began


def measure_all(cases: dict[str, list[Side]], repeats: int, page: throughput_page.Page) -> None:
    """By turns: the one that goes first in one repeat goes last in the next."""
    for number in range(repeats):
        for case, sides in cases.items():
            for side in sides if number % 2 == 0 else sides[::-1]:
                found = side.measure(number)
                page.add(case, side.side, found)
                rate = found["num_tokens"] / found["wall_s"]
                print(f"{case} · {side.side} · {number}: {rate:,.0f} tokens/s in {found['wall_s']:.1f} s", flush=True)


def other_options(words: str) -> tuple[str, dict[str, Any]]:
    """`four:api_servers=4,concurrency=1024` as a name and options."""
    name, _, pairs = words.partition(":")
    return name, {key: yaml.safe_load(value) for key, value in (pair.split("=", 1) for pair in pairs.split(","))}


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.bench_throughput")
    parser.add_argument("cases", nargs="+", metavar="CASE=CHECKPOINT")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="scratch folder for logs and answers; must not exist")
    parser.add_argument("--env", default="vllm")
    parser.add_argument("--num", type=int, default=1024)
    parser.add_argument("--max-tokens", type=int, default=256)
    parser.add_argument("--max-num-seqs", type=int, default=256)
    parser.add_argument("--concurrency", type=int, default=512, help="requests that qgate keeps in flight")
    parser.add_argument("--kv-cache-gib", type=float, default=6.0)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=8, help="engines that load at the same time")
    parser.add_argument("--also", type=other_options, action="append", default=[], metavar="NAME:OPTION=VALUE,...")
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--variable", action="append", default=[], metavar="NAME=VALUE", help="of both sides' engines")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> None:
    """Measure and write."""
    given = arguments(argv)
    setting = Setting(
        tool=envs.resolve(given.env), num=given.num, max_tokens=given.max_tokens, max_num_seqs=given.max_num_seqs,
        concurrency=given.concurrency, kv_cache_bytes=int(given.kv_cache_gib * (1 << 30)), eager=given.eager,
        env=dict(pair.split("=", 1) for pair in given.variable),
    )  # fmt: skip
    given.out.mkdir(parents=True, exist_ok=True)
    models = {name: Path(path).absolute() for name, path in (case.split("=", 1) for case in given.cases)}
    ours: dict[str, dict[str, Any]] = {"qgate": {}, **dict(given.also)}
    cases: dict[str, list[Side]] = {
        name: [
            *(Ours(name, path, setting, given.work / f"{name}-{side}", side, other) for side, other in ours.items()),
            Theirs(name, path, setting, given.work / f"{name}-llm"),
        ]
        for name, path in models.items()
    }
    asked = {name: value for name, value in vars(given).items() if name not in {"out", "work", "cases"}}
    page = throughput_page.Page(given.out, asked | {"cases": list(models), "host": host.describe()})
    with ignoring_eos(), ExitStack() as stack:
        sides = [side for several in cases.values() for side in several]
        page.head["load_s"] = load_all(sides, stack, given.at_once)
        print(f"{len(sides)} engines loaded in {page.head['load_s']:.0f} s", flush=True)
        for name, several in cases.items():
            found = checkpoint.read(models[name], "model")
            page.cases[name] = {
                "precision": found.precision, "num_parameters": found.num_parameters,
                "weight_bytes": found.weight_bytes, **{side.side: side.facts() for side in several},
            }  # fmt: skip
        measure_all(cases, given.repeats, page)
        for name, several in cases.items():
            page.cases[name] |= {side.side: side.facts() for side in several}
        page.write()
    print(page.markdown())


if __name__ == "__main__":
    main(sys.argv[1:])
