"""What an answer costs qgate itself: `python -m tests.bench.bench_client` asks a server that answers at once.

The server is a process of its own that sends the same body, 256 token ids and 600 of the prompt as vLLM writes them, to
every request after a second. What is measured is everything on qgate's side: bodies, HTTP, parsing, the answer log.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import socket
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from qgate.engines.dialogue import Dialogue
from qgate.io.calls import Target, Watch
from qgate.io.client import Client
from qgate.rooms.generate import generate
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, Sampling, ScoreRequest, TokenScores
from qgate.schemas.evalset import Message

ANSWER_TOKENS, PROMPT_TOKENS, LATENCY_S = 256, 600, 1.0
PROMPT = "The dog slept behind the barn all afternoon and would not be moved. " * 40


def reply() -> bytes:
    """One whole HTTP response."""
    message = {"role": "assistant", "content": "word " * ANSWER_TOKENS, "tool_calls": [], "reasoning": None}
    choice = {
        "index": 0, "message": message, "logprobs": None, "finish_reason": "length", "stop_reason": None,
        "token_ids": [(7919 * i) % 128_000 for i in range(ANSWER_TOKENS)],
    }  # fmt: skip
    usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": ANSWER_TOKENS}
    ids = [(104_729 * i) % 128_000 for i in range(PROMPT_TOKENS)]
    body = json.dumps({"id": "x", "choices": [choice], "usage": usage, "prompt_token_ids": ids}).encode()
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body) + body


class _Server(asyncio.Protocol):
    """Answers each whole request on a connection, later."""

    whole = reply()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport, self._read = transport, b""

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, found, rest = self._read.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n", 1)[0])
        if found and len(rest) >= length:
            self._read = b""
            asyncio.get_running_loop().call_later(LATENCY_S, self._transport.write, self.whole)


def serve(told: Connection) -> None:
    """The server's process: tells its port and runs until it is ended."""

    async def main() -> None:
        listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
        told.send(listening.getsockname()[1])
        await (await asyncio.get_running_loop().create_server(_Server, sock=listening)).serve_forever()

    asyncio.run(main())


@contextmanager
def server() -> Iterator[int]:
    """Its port."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()


class _Session:
    """What `generate` asks."""

    facts = EngineFacts(engine="bench", version="0", device="none")

    def __init__(self, dialogue: Dialogue) -> None:
        self._dialogue = dialogue

    def generate(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        return self._dialogue.answers(requests)

    def score(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        raise NotImplementedError


class _Nobody:
    def advance(self, num: int = 1) -> None:
        pass

    def detail(self, text: str) -> None:
        pass


def requests(count: int) -> list[GenerateRequest]:
    sampling = Sampling(
        temperature=0.8, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
        frequency_penalty=0.0, max_tokens=ANSWER_TOKENS, seed=1,
    )  # fmt: skip
    messages = (Message(role="user", content=PROMPT),)
    return [GenerateRequest(id=f"set/{i}/warm/1", messages=messages, sampling=sampling) for i in range(count)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--answers", type=int, default=2048)
    parser.add_argument("--concurrency", type=int, default=256)
    given = parser.parse_args()
    asked = requests(given.answers)
    with server() as port, tempfile.TemporaryDirectory() as folder:
        target = Target(f"http://127.0.0.1:{port}", given.concurrency, 600.0, Watch("the bench's server", 300.0))
        began, spent = time.perf_counter(), time.process_time()
        generate(_Session(Dialogue(Client(target), "the bench's server", "m")), asked, Path(folder), _Nobody())
        wall_s, cpu_s = time.perf_counter() - began, time.process_time() - spent
    print(
        f"{given.answers} answers of {ANSWER_TOKENS} tokens at {given.concurrency}: {1e3 * cpu_s / given.answers:.2f} ms of "
        f"CPU each, {given.answers / cpu_s:.0f} answers/s a core; {given.answers / wall_s:.0f}/s of wall time here"
    )


if __name__ == "__main__":
    main()
