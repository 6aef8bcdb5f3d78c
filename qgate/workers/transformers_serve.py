"""Worker of the engine `transformers`: loads a checkpoint once, then serves jobs from a file mailbox.

Run as `python transformers_serve.py setup.json` in a tool's environment. setup.json in; in its folder out: ready.json
(or failed.json), then for each NNNN.request.jsonl, whose first line says what is asked, one line per finished request
appended to NNNN.answers.jsonl, NNNN.beat touched after every forward, and NNNN.done or NNNN.error at the end.
NNNN.cancel ends a job early. Ends with its parent.
"""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers_generate
import transformers_load
import transformers_score

POLL_S = 0.02


class Cancelled(Exception):
    """The parent does not want the rest of a job."""


def main(setup_file: Path) -> int:
    """Serve until the parent goes. Returns the exit code."""
    setup = json.loads(setup_file.read_text(encoding="utf-8"))
    folder = setup_file.parent
    torch.set_grad_enabled(False)
    torch.set_num_threads(setup["threads"])
    try:
        loaded = transformers_load.load(Path(setup["checkpoint"]), dtype=setup["dtype"], device=setup["device"])
    except Exception as error:
        write_whole(folder / "failed.json", {"error": f"{type(error).__name__}: {error}"})
        raise
    write_whole(folder / "ready.json", loaded.facts())
    number = 1
    while os.getppid() == setup["parent"]:
        job = folder / f"{number:04d}.request.jsonl"
        if not job.exists():
            time.sleep(POLL_S)
            continue
        serve(loaded, setup, job)
        number += 1
    return 0


def serve(loaded: transformers_load.Loaded, setup: dict[str, Any], job: Path) -> None:
    """Answer one job; whatever goes wrong in it is written beside it and does not end the worker."""
    stem = job.name.removesuffix(".request.jsonl")
    marker = {name: job.with_name(f"{stem}.{name}") for name in ("beat", "cancel", "done", "error")}

    def beat() -> None:
        marker["beat"].touch()
        if marker["cancel"].exists() or os.getppid() != setup["parent"]:
            raise Cancelled

    try:
        header, *requests = [json.loads(line) for line in job.read_text(encoding="utf-8").splitlines()]
        with job.with_name(f"{stem}.answers.jsonl").open("a", encoding="utf-8") as stream:
            for answer in answers(loaded, setup, header["kind"], requests, beat):
                stream.write(json.dumps(answer, ensure_ascii=False) + "\n")
                stream.flush()
    except Cancelled:
        write_whole(marker["error"], {"error": "cancelled"})
    except Exception as error:
        traceback.print_exc()
        write_whole(marker["error"], {"error": f"{type(error).__name__}: {error}"})
    else:
        write_whole(marker["done"], {"num_requests": len(requests)})


def answers(
    loaded: transformers_load.Loaded,
    setup: dict[str, Any],
    kind: str,
    requests: list[dict[str, Any]],
    beat: Callable[[], None],
) -> Iterator[dict[str, Any]]:
    """The lines that a job of this kind is answered with."""
    if kind == "score":
        return transformers_score.score(loaded, requests, setup["prompt_tokens"], beat)
    limits = transformers_generate.Limits(
        num_slots=setup["batch_size"],
        prompt_tokens=setup["prompt_tokens"],
        cache_bytes=setup["cache_bytes"],
        timeout_s=setup["request_timeout_s"],
    )
    return transformers_generate.generate(loaded, requests, limits, beat)


def write_whole(path: Path, value: dict[str, Any]) -> None:
    """JSON, beside and moved into place: whoever sees the file sees all of it."""
    temporary = path.with_name(f".{path.name}")
    temporary.write_text(json.dumps(value), encoding="utf-8")
    temporary.replace(path)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
