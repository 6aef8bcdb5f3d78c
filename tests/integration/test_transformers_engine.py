"""The transformers engine with its real worker, on a random Llama of a few thousand weights made here (seconds).

Uses the locked environment `llmcompressor`, or the python that QGATE_TEST_LLMCOMPRESSOR_PYTHON names.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from qgate.engines.transformers import ENGINE, WORKERS, Options
from qgate.errors import DiedError, StartError
from qgate.io import proc
from qgate.ports import ServeJob, Session, Tool
from qgate.schemas.answers import Answer, GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.evalset import Message
from tests import engine_contract
from tests.processes import is_alive, wait_for
from tests.tools import tool_or_skip

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
CONTEXT = 256
KINDS = ("fp16", "w8a8", "w4a16", "fp8")
PROMPT_TOKENS = {"user": len("<|user|>"), "assistant": len("<|assistant|>")}


@pytest.fixture(scope="module")
def tool() -> Tool:
    return tool_or_skip(os.environ.get("QGATE_TEST_LLMCOMPRESSOR_PYTHON", "llmcompressor"))


@pytest.fixture(scope="module")
def tiny(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    worker = HERE / "tiny_llama.py"
    proc.run_worker(tool.python, worker, {"output": str(folder)}, work=folder / "work", what="tiny")
    return folder


def opened(checkpoint: Path, tool: Tool, work: Path, **options: Any) -> AbstractContextManager[Session]:
    work.mkdir(parents=True, exist_ok=True)
    return ENGINE.open(
        ServeJob(
            checkpoint=checkpoint, name=checkpoint.name, dtype="float16", tool=tool, concurrency=16,
            options=Options(**{"threads": 1, "batch_size": None, **options}), request_timeout_s=120.0,
            stall_timeout_s=120.0, repeatable=False, max_model_len=None, log=work / "worker.log", work=work,
        )
    )  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def session(request: pytest.FixtureRequest, tiny: Path, tool: Tool, tmp_path_factory: Any) -> Iterator[Session]:
    with opened(tiny / request.param, tool, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture(scope="module")
def fp16(tiny: Path, tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    with opened(tiny / "fp16", tool, tmp_path_factory.mktemp("shared")) as found:
        yield found


def ask(name: str, text: str = "abc", *, logprobs: bool = False, **changes: Any) -> GenerateRequest:
    fields: dict[str, Any] = {
        "temperature": 0.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "repetition_penalty": 1.0,
        "presence_penalty": 0.0, "frequency_penalty": 0.0, "max_tokens": 24, "seed": 1,
    }  # fmt: skip
    return GenerateRequest(
        id=name, messages=(Message(role="user", content=text),), sampling=Sampling(**(fields | changes)),
        logprobs=logprobs,
    )  # fmt: skip


def by_id(session: Session, requests: list[GenerateRequest]) -> dict[str, Answer]:
    return engine_contract.answers(session, requests)


def texts(answers: dict[str, Answer]) -> dict[str, tuple[int, ...] | None]:
    return {name: answer.token_ids for name, answer in answers.items()}


def mixed() -> list[GenerateRequest]:
    """Prompts of 1 to 150 characters, some of them the same, greedy and sampled, of all lengths of answer."""
    lengths = (1, 150, 40, 40, 3, 90, 40, 17)
    return [
        ask(
            f"{index}",
            chr(97 + length % 26) * length,
            temperature=0.9 * (index % 3),
            seed=index,
            max_tokens=5 + 4 * index,
        )
        for index, length in enumerate(lengths * 3)
    ]


def test_the_contract(session: Session) -> None:
    engine_contract.one_answer_per_request(session)
    engine_contract.nothing_asked_nothing_answered(session)
    engine_contract.same_seed_same_text(session)
    engine_contract.facts_say_where_numbers_come_from(session, "transformers")
    engine_contract.scores_fit_what_was_forced(session)
    engine_contract.a_text_is_scored_as_its_tokens(session)


def test_leaving_ends_every_process(tiny: Path, tool: Tool, tmp_path: Path) -> None:
    engine_contract.leaving_ends_every_process(lambda: opened(tiny / "fp16", tool, tmp_path))


@pytest.mark.parametrize("kind", ["fp16", "w4a16"])
def test_a_text_does_not_depend_on_what_runs_beside_it(kind: str, tiny: Path, tool: Tool, tmp_path: Path) -> None:
    with opened(tiny / kind, tool, tmp_path / "one", batch_size=1) as alone:
        expected = texts(by_id(alone, mixed()))
    with opened(tiny / kind, tool, tmp_path / "many", batch_size=16) as together:
        assert texts(by_id(together, mixed())) == expected
        assert texts(by_id(together, mixed()[::-1])) == expected
    with opened(tiny / kind, tool, tmp_path / "scarce", cache_gib=0.0008, prompt_tokens=64) as scarce:
        assert texts(by_id(scarce, mixed())) == expected


def test_seeds_decide_samples_and_nothing_else_does(fp16: Session) -> None:
    seeds = [ask(f"{seed}", temperature=1.0, seed=seed) for seed in (*range(8), 2**63 - 1)]
    first, again = texts(by_id(fp16, seeds)), texts(by_id(fp16, seeds))
    assert first == again
    assert len(set(first.values())) == len(seeds)
    greedy = texts(by_id(fp16, [ask(f"{seed}", seed=seed) for seed in range(3)]))
    assert len(set(greedy.values())) == 1


@pytest.mark.parametrize("strict", [{"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}])
def test_the_narrowest_support_is_the_greedy_text(fp16: Session, strict: dict[str, Any]) -> None:
    found = texts(by_id(fp16, [ask("greedy"), ask("narrow", temperature=1.5, **strict)]))
    assert found["narrow"] == found["greedy"]


def test_penalties_reach_the_logits(fp16: Session) -> None:
    found = by_id(fp16, [ask("plain", max_tokens=60), ask("new", max_tokens=60, presence_penalty=1e6)])
    plain, new = found["plain"].token_ids or (), found["new"].token_ids or ()
    assert len(set(plain)) < len(plain)
    assert len(set(new)) == len(new)


def test_an_answer_ends_at_eos_or_at_its_limit(fp16: Session) -> None:
    found = by_id(fp16, [ask(f"{seed}", temperature=3.0, seed=seed, max_tokens=150) for seed in range(40)])
    assert {answer.status for answer in found.values()} == {"ok", "truncated"}
    for answer in found.values():
        ids = answer.token_ids or ()
        assert 256 not in ids[:-1]
        assert (answer.status, answer.finish_reason) == (("ok", "stop") if ids[-1] == 256 else ("truncated", "length"))
        assert "<eos>" not in (answer.text or "")
        assert answer.completion_tokens == len(ids) <= 150


def test_the_prompt_is_the_chat_template_and_its_hash_proves_it(tiny: Path, fp16: Session) -> None:
    vocabulary = json.loads((tiny / "fp16" / "tokenizer.json").read_text())["model"]["vocab"]
    ids = [vocabulary[character] for character in "<|user|>abc<|assistant|>"]
    (answer,) = by_id(fp16, [ask("a")]).values()
    assert answer.prompt_token_ids_sha256 == hashlib.sha256(struct.pack(f"<{len(ids)}i", *ids)).hexdigest()
    assert answer.prompt_tokens == len(ids)


def test_requests_that_do_not_fit_are_answers_not_crashes(fp16: Session) -> None:
    frame = sum(PROMPT_TOKENS.values())
    found = by_id(
        fp16,
        [
            ask("long", "x" * (CONTEXT - frame)),
            ask("nearly", "x" * (CONTEXT - frame - 3), max_tokens=50),
            ask("refused", "REFUSE"),
            ask("fine"),
        ],
    )
    assert (found["long"].status, found["long"].text) == ("error", None)
    assert found["long"].error == "the prompt has 256 tokens, the model's context is 256"
    assert found["long"].prompt_tokens == CONTEXT
    assert (found["nearly"].status, found["nearly"].completion_tokens) == ("truncated", 3)
    assert found["refused"].status == "error"
    assert "chat template" in (found["refused"].error or "")
    assert found["fine"].status in {"ok", "truncated"}


def test_logprobs_while_generating_are_those_of_scoring(session: Session) -> None:
    requests = [ask(f"{index}", "ab" * (index + 1), temperature=1.0, seed=index, logprobs=True) for index in range(6)]
    found = by_id(session, requests)
    scored = session.score(
        ScoreRequest(id=request.id, messages=request.messages, completion_ids=found[request.id].token_ids or ())
        for request in requests
    )
    # rounded activations turn float noise into whole steps: such a model agrees only on the whole
    rounds = "int8" in str(session.facts.kernels) or "rounded" in str(session.facts.kernels)
    for scores in scored:
        gaps = np.abs(np.array(found[scores.id].logprobs, dtype=np.float32) - scores.logprobs)
        assert np.median(gaps) < (0.5 if rounds else 1e-4)
        assert rounds or gaps.max() < 1e-3


def test_a_special_token_that_somebody_wrote_is_text(fp16: Session) -> None:
    (request,) = [ask("a")]
    asked = [ScoreRequest(id=text, messages=request.messages, completion=text) for text in ("<eos>", "eos", "a" * 300)]
    found = {scores.id: scores.token_ids.tolist() for scores in fp16.score(asked)}
    assert len(found["<eos>"]) == 5
    assert found["<eos>"][1:4] == found["eos"]
    assert found["a" * 300] == [], "longer than the model's context: told, and the others are scored"


def checked(job: str, tool: Tool, work: Path, **fields: Any) -> Any:
    request = {"job": job, "workers": str(WORKERS), **fields}
    worker = HERE / "transformers_check.py"
    return proc.run_worker(tool.python, worker, request, work=work, what=job)["result"]


@pytest.mark.parametrize("kind", ["fp16", "w4a16"])
def test_scores_are_those_of_transformers_own_forward(kind: str, tiny: Path, tool: Tool, tmp_path: Path) -> None:
    messages = (Message(role="user", content="How are you?"),)
    forced = tuple(range(60, 120))
    with opened(tiny / kind, tool, tmp_path / "serve", prompt_tokens=300) as session:
        asked = [
            ScoreRequest(id=f"{num}", messages=messages, completion_ids=forced[:num], top_k=3) for num in (60, 1, 33, 7)
        ]
        found = {int(scores.id): scores for scores in session.score(asked)}
    fields = {"checkpoint": str(tiny / kind), "messages": [{"role": "user", "content": "How are you?"}]}
    direct = checked("direct", tool, tmp_path / "direct", completion=list(forced), **fields)
    for num, scores in found.items():
        assert scores.logprobs == pytest.approx(direct[:num], abs=2e-4)
        listed = scores.top_ids == scores.token_ids[:, None]
        assert (scores.top_logprobs.max(axis=1) >= scores.logprobs - 1e-6).all()
        assert scores.top_logprobs[listed] == pytest.approx(scores.logprobs[listed.any(axis=1)])


def test_every_linear_layer_gives_what_compressed_tensors_gives(tiny: Path, tool: Tool, tmp_path: Path) -> None:
    found = checked("linears", tool, tmp_path, checkpoints={kind: str(tiny / kind) for kind in KINDS})
    assert found["fp16"].keys() == {"PackedLinear"} == found["w4a16"].keys()
    assert found["w8a8"].keys() == {"Int8Linear", "PackedLinear"}
    assert found["fp8"].keys() == {"RoundedLinear", "PackedLinear"}
    assert max(gap for kinds in found.values() for gap in kinds.values()) < 2e-6


def test_the_int8_product_is_exact(tool: Tool, tmp_path: Path) -> None:
    found = checked("integers", tool, tmp_path)
    if not found["int8_is_exact"]:
        pytest.skip("this CPU has no exact int8 product; the worker uses the dense one")
    assert found["product"] < 2**-22, "one float rounding each for the sum, the two scales and the bias"
    assert found["fake"] < 1e-12, "and the fake-quantized product, in float64, is the same number"


def test_sampling_follows_vllms_rules(tool: Tool, tmp_path: Path) -> None:
    for case in checked("supports", tool, tmp_path / "supports"):
        assert case["drawn"] == case["allowed"]
        assert case["worst_share"] < 0.03
    found = checked("penalties", tool, tmp_path / "penalties")
    # repetition 2.0 on ids 0, 1, 3 (prompt or text), then 0.5 per count and 0.25 per presence in the text 0, 0, 3
    assert found["mine"] == pytest.approx([2 / 2 - 1.25, -1 * 2, 0.5, 3 / 2 - 0.75, -2.0])


def test_what_is_not_a_model_is_told_at_the_start(tool: Tool, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(StartError, match="worker of empty"), opened(tmp_path / "empty", tool, tmp_path / "work"):
        pass


def test_a_killed_worker_is_reported_and_its_answers_are_kept(tiny: Path, tool: Tool, tmp_path: Path) -> None:
    others = set(psutil.Process().children())
    with opened(tiny / "fp16", tool, tmp_path, batch_size=1) as session:
        answers = session.generate([ask(f"{index}", max_tokens=200) for index in range(50)])
        assert next(answers).latency_s > 0
        (worker,) = set(psutil.Process().children()) - others
        worker.send_signal(signal.SIGKILL)
        with pytest.raises(DiedError, match="ended by SIGKILL"):
            list(answers)


PARENT = """
import sys
from pathlib import Path
from tests.integration.test_transformers_engine import Tool, ask, opened
checkpoint, python, work = map(Path, sys.argv[1:])
with opened(checkpoint, Tool(python, "x"), work, batch_size=1) as session:
    for answer in session.generate([ask(str(index), max_tokens=200) for index in range(10_000)]):
        print(answer.id, flush=True)
"""


def test_a_worker_whose_parent_was_killed_ends(tiny: Path, tool: Tool, tmp_path: Path) -> None:
    argv = [sys.executable, "-c", PARENT, str(tiny / "fp16"), str(tool.python), str(tmp_path / "work")]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=HERE.parents[1]) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline().strip()
        (worker,) = psutil.Process(parent.pid).children()
        parent.kill()
    wait_for(lambda: not is_alive(worker))
