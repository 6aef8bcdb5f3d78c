"""What the workers of the quantizing packages share: request, result, progress, calibration texts. Part of each of them.

In: request.json, of which this module reads {model, calibration_file, sequence_length, progress_file}. Out: result.json
{packages, wall_s, peak_memory_bytes, calibration: {num_samples, num_tokens}, notes}, or {error, advice} and a non-zero
exit for a failure that is known. `progress_file` always holds one whole JSON object {step, done, total}.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything that is read is local
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin make this 6 times slower on busy cores

import torch

CARRIED = frozenset({".json", ".jinja", ".model", ".txt", ".tiktoken"})
"""Suffixes of tokenizer, template and generation config files."""
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""glibc's names for mallopt, malloc.h."""


class Refusal(Exception):
    """The request cannot be carried out. Carries the fix."""

    def __init__(self, message: str, advice: str) -> None:
        super().__init__(message)
        self.advice = advice


class Progress:
    """Writes progress_file whole at every step."""

    def __init__(self, path: Path, total: int) -> None:
        self.path, self.total, self.done = path, max(total, 1), 0
        self.say("loading")

    def say(self, step: str, advance: int = 0) -> None:
        """Record `step`, `advance` further layers done."""
        self.done = min(self.done + advance, self.total)
        beside = self.path.with_suffix(".tmp")
        beside.write_text(json.dumps({"step": step, "done": self.done, "total": self.total}), encoding="utf-8")
        beside.replace(self.path)


def main(argv: Sequence[str], quantize: Callable[[dict[str, Any]], dict[str, Any]], packages: Sequence[str]) -> int:
    """Do what the request file argv[1] asks and say in argv[2] how it went. Returns the exit code.

    `quantize` gives the fields {calibration, notes} of the result, or raises Refusal.
    """
    started = time.monotonic()
    request = json.loads(Path(argv[1]).read_text(encoding="utf-8"))
    keep_freed_memory()
    torch.manual_seed(request["seed"])
    try:
        result = quantize(request)
    except Refusal as refusal:
        Path(argv[2]).write_text(json.dumps({"error": str(refusal), "advice": refusal.advice}), encoding="utf-8")
        return 1
    result |= {
        "packages": {name: version(name) for name in packages},
        "wall_s": time.monotonic() - started,
        "peak_memory_bytes": peak_memory_bytes(),
    }
    Path(argv[2]).write_text(json.dumps(result), encoding="utf-8")
    return 0


def keep_freed_memory() -> None:
    """Have glibc use large blocks again: searches for scales spend most of their time on faulting in returned ones."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        libc.mallopt(M_MMAP_MAX, 0)
        libc.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def num_layers(model: Path) -> int:
    """Decoder layers, by config.json."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    return int(config.get("text_config", config)["num_hidden_layers"])


def read_texts(request: dict[str, Any], tokenizer: Any) -> list[list[int]]:
    """Calibration texts as token ids, 2 to `sequence_length` each; chat messages in the model's template."""
    path, found = Path(request["calibration_file"]), []
    for line in path.read_text(encoding="utf-8").strip().split("\n"):  # texts hold other ends of lines
        entry = json.loads(line)
        if "messages" in entry:
            if tokenizer.chat_template is None:
                raise Refusal(
                    "the calibration texts are chat messages, but the model has no chat template",
                    "use a calibration file with `text` in place of `messages`",
                )
            text = tokenizer.apply_chat_template(entry["messages"], tokenize=False)
            ids = tokenizer(text, add_special_tokens=False).input_ids
        else:
            ids = tokenizer(entry["text"]).input_ids
        if len(ids) >= 2:
            found.append(ids[: request["sequence_length"]])
    if not found:
        raise Refusal(f"{path} has no text of two tokens or more", "use another calibration file")
    return found


def used(texts: Sequence[Sequence[int]]) -> dict[str, int]:
    """The result's `calibration`."""
    return {"num_samples": len(texts), "num_tokens": sum(len(ids) for ids in texts)}


def place() -> str:
    """The accelerator's name, or CPU."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def peak_memory_bytes() -> int:
    """The larger of this process's resident peak and the accelerator's allocation peak."""
    resident = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return max(resident, torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0)
