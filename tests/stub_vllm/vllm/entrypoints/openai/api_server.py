"""A stand-in for vLLM's server: takes its arguments, speaks its protocol, logs its lines, runs no model.

Put `tests/stub_vllm` and the repository root on PYTHONPATH. Faults come from variables: STUB_FAIL (a line to log before
ending), STUB_SLEEP_S (before it is ready), STUB_FIRST_FAILS (the first answer is a 500), STUB_DIE_AFTER
and STUB_HANG_AFTER (answers), STUB_LAST_WORDS (logged when it dies), STUB_FIELDS (that its chat requests have),
STUB_SAYS (more lines of its start).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

from tests.http_stub import HttpStub, Request

FIELDS = os.environ.get(
    "STUB_FIELDS",
    "model messages temperature top_p presence_penalty frequency_penalty max_tokens seed n stream logprobs top_k min_p "
    "repetition_penalty min_tokens ignore_eos skip_special_tokens return_token_ids cache_salt",
)
START_LOG = """\
(EngineCore pid=1) INFO 11-29 14:17:05 [core.py:133] Initializing a V1 LLM engine (v0.99.0) with config: enforce_eager=False
(Worker pid=2) INFO 11-29 14:18:54 [gpu_worker.py:378] Using V2 Model Runner
(Worker pid=2) INFO 11-29 14:18:54 [__init__.py:846] Selected MarlinLinearKernel for CompressedTensorsWNA16
(Worker pid=2) INFO 11-29 14:18:54 [cuda.py:475] Using FLASH_ATTN attention backend out of potential backends: ['FLASH_ATTN'].
(Worker pid=2) INFO 11-29 14:18:54 [model_runner.py:306] Model loading took 0.25 GiB and 0.720000 seconds
(Worker pid=2) INFO 11-29 14:18:54 [gpu_worker.py:561] Available KV cache memory: 12.50 GiB
(EngineCore pid=1) INFO 11-29 14:18:27 [kv_cache_utils.py:2177] GPU KV cache size: 46,592 tokens
(Worker pid=2) INFO 11-29 14:18:54 [model_runner.py:748] Graph capturing finished in 3 secs, took 0.40 GiB
"""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for name in ("model", "served-model-name", "host", "dtype", "generation-config", "kv-cache-dtype"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("port", "seed", "max-logprobs", "tensor-parallel-size", "pipeline-parallel-size"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for name in ("max-model-len", "kv-cache-memory-bytes", "max-num-seqs", "max-num-batched-tokens"):
        parser.add_argument(f"--{name}", type=int)
    parser.add_argument("--gpu-memory-utilization", type=float)
    for name in ("enable-prefix-caching", "no-enable-prefix-caching", "no-enable-log-requests", "enforce-eager"):
        parser.add_argument(f"--{name}", action="store_true")
    parser.add_argument("--disable-uvicorn-access-log", action="store_true")
    return parser.parse_args()


def ids_of(text: str) -> list[int]:
    return [ord(char) % 1000 for char in text]


class Model:
    def __init__(self, args: argparse.Namespace):
        self.args = args
        self.num_answers = 0

    async def answer(self, request: Request) -> tuple[int, Any]:
        if request.method == "GET":
            return self.tell(request.path)
        if request.path == "/tokenize":
            ids = ids_of(request.body["prompt"]) if "prompt" in request.body else self.prompt(request.body)
            return 200, {"tokens": ids, "count": len(ids), "max_model_len": self.args.max_model_len}
        self.num_answers += 1
        await self.fail()
        if request.body["model"] != self.args.served_model_name:
            return 404, {"error": {"message": f"The model `{request.body['model']}` does not exist."}}
        return 200, self.chat(request.body) if "chat" in request.path else self.score(request.body)

    async def fail(self) -> None:
        if self.num_answers == 1 and os.environ.get("STUB_FIRST_FAILS"):
            os._exit(1)
        if self.num_answers > int(os.environ.get("STUB_DIE_AFTER", "1000000")):
            print(os.environ.get("STUB_LAST_WORDS", ""), flush=True)
            os.kill(os.getpid(), signal.SIGKILL)
        if self.num_answers > int(os.environ.get("STUB_HANG_AFTER", "1000000")):
            await asyncio.sleep(1000)

    def tell(self, path: str) -> tuple[int, Any]:
        tokens = 10 * self.num_answers
        pages: dict[str, Any] = {
            "/health": "",
            "/version": {"version": "0.99.0"},
            "/openapi.json": {
                "components": {
                    "schemas": {"ChatCompletionRequest": {"properties": {name: {} for name in FIELDS.split()}}}
                }
            },
            "/v1/models": {"data": [{"id": self.args.served_model_name, "root": self.args.model}]},
            "/metrics": (
                f'vllm:generation_tokens_total{{engine="0"}} {tokens}\nvllm:num_preemptions_total{{engine="0"}} 2.0\n'
                'vllm:kv_cache_usage_perc{engine="0"} 0.5\nvllm:prefix_cache_hits_total{engine="0"} 7.0\n'
            ),
        }
        return (200, pages[path]) if path in pages else (404, "")

    @staticmethod
    def prompt(body: dict[str, Any]) -> list[int]:
        return ids_of("".join(f"{turn['role']}: {turn['content']}\n" for turn in body["messages"]))

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        text = f"seed {body['seed']} of {os.environ.get('STUB_NAME', 'stub')}"
        ids = ids_of(text)[: body["max_tokens"]]
        choice: dict[str, Any] = {"message": {"role": "assistant", "content": text[: body["max_tokens"]]}}
        choice |= {"finish_reason": "stop" if len(ids) == len(text) else "length", "token_ids": ids}
        if body["logprobs"]:
            choice["logprobs"] = {"content": [{"token": "x", "logprob": -id / 100} for id in ids]}
        usage = {"prompt_tokens": len(self.prompt(body)), "completion_tokens": len(ids)}
        return {"choices": [choice], "usage": usage, "prompt_token_ids": self.prompt(body)}

    @staticmethod
    def score(body: dict[str, Any]) -> dict[str, Any]:
        ids, top_k = body["prompt"], body["prompt_logprobs"]
        positions: list[Any] = [None]
        for id in ids[1:]:
            entries = {str(id): {"logprob": -id / 100, "rank": 40}}
            positions.append(
                entries | {str(2000 + rank): {"logprob": -rank / 10, "rank": rank} for rank in range(1, top_k + 1)}
            )
        return {"choices": [{"text": "", "prompt_logprobs": positions}]}


def main() -> None:
    args = arguments()
    print(f"stub vLLM: pid {os.getpid()}", flush=True)
    if fail := os.environ.get("STUB_FAIL"):
        print(fail, flush=True)
        sys.exit(1)
    if not (Path(args.model) / "config.json").is_file():
        sys.exit("OSError: does not appear to have a file named config.json")
    time.sleep(float(os.environ.get("STUB_SLEEP_S", "0")))
    print(START_LOG + os.environ.get("STUB_SAYS", ""), flush=True)
    listening = socket.socket()
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind((args.host, args.port))
    listening.listen(512)
    with HttpStub(Model(args).answer, listening=listening):
        signal.pause()


if __name__ == "__main__":
    main()
