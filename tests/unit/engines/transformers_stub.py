"""A worker without a model: the mailbox's protocol, and the faults that the checkpoint's name asks for."""

import base64
import json
import os
import struct
import subprocess
import sys
import time
from pathlib import Path

SETUP_FILE = Path(sys.argv[1])
FOLDER = SETUP_FILE.parent
SETUP = json.loads(SETUP_FILE.read_text(encoding="utf-8"))
FAULT = Path(SETUP["checkpoint"]).name


def write_whole(path: Path, value: dict) -> None:
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


def answer(request: dict) -> dict:
    if "completion_ids" in request:
        ids = request["completion_ids"] or list(request["completion"].encode())
        floats = base64.b64encode(struct.pack(f"<{len(ids)}f", *([float("nan")] * len(ids)))).decode()
        tops = base64.b64encode(struct.pack(f"<{len(ids)}i", *ids)).decode()
        if FAULT == "unfit":
            return {"id": request["id"], "error": "prompt and answer have 9000 tokens, the model's context is 8192"}
        return {
            "id": request["id"], "prompt_token_ids_sha256": "ab" * 32, "token_ids": ids, "logprobs": floats,
            "top_ids": tops, "top_logprobs": floats,
        }  # fmt: skip
    return {
        "id": request["id"], "text": "你好", "token_ids": [5, 2], "completion_tokens": 2, "status": "ok",
        "finish_reason": "stop", "latency_s": 0.1, "prompt_token_ids_sha256": "ab" * 32,
    }  # fmt: skip


def serve(number: int) -> None:
    stem = FOLDER / f"{number:04d}"
    _, *requests = [json.loads(line) for line in stem.with_suffix(".request.jsonl").read_text().splitlines()]
    with stem.with_suffix(".answers.jsonl").open("ab") as stream:
        for index, request in enumerate(requests):
            line = json.dumps(answer(request), ensure_ascii=False).encode() + b"\n"
            if FAULT == "halves":  # a line that arrives in two parts, cut inside a character
                cut = line.index("你".encode()) + 1
                stream.write(line[:cut])
                stream.flush()
                time.sleep(0.1)
                line = line[cut:]
            if index == 1 and FAULT == "dies":
                print("RuntimeError: no memory left", flush=True)
                os.kill(os.getpid(), 9)
            if index == 1 and FAULT == "hangs":
                time.sleep(600)
            if index == 1 and FAULT == "slow":
                for _ in range(10):  # 3 s in all, which is more than the test's patience with a silent worker
                    time.sleep(0.3)
                    stem.with_suffix(".beat").touch()
            if index == 1 and FAULT == "breaks":
                write_whole(stem.with_suffix(".error"), {"error": "ValueError: no such thing"})
                return
            if index == 1 and FAULT == "forgets":
                continue
            if stem.with_suffix(".cancel").exists():
                write_whole(stem.with_suffix(".error"), {"error": "cancelled"})
                return
            stream.write(line)
            stream.flush()
            if FAULT == "patient":
                time.sleep(0.2)
    write_whole(stem.with_suffix(".done"), {})


if FAULT == "refuses":
    write_whole(FOLDER / "failed.json", {"error": "OSError: no config.json", "advice": "name a checkpoint"})
    sys.exit(1)
if FAULT == "crashes":
    sys.exit("Traceback: it went wrong here")
if FAULT == "never":
    time.sleep(600)
pids = [os.getpid()]
if FAULT in {"patient", "dies"}:
    pids.append(subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]).pid)
(FOLDER / "pids").write_text(" ".join(map(str, pids)))
write_whole(FOLDER / "ready.json", {"version": "0", "device": "stub", "notes": ["no model"]})
job = 1
while True:
    if (FOLDER / f"{job:04d}.request.jsonl").exists():
        serve(job)
        job += 1
    time.sleep(0.01)
