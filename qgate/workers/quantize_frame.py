"""What the workers of the quantizing packages share: request, result, progress, calibration texts. Part of each of them.

In: request.json, of which this module reads {model, calibration_file, sequence_length, progress_file}. Out: result.json
{packages, wall_s, peak_memory_bytes, calibration: {num_samples, num_tokens}, notes}, or {error, advice} and a non-zero
exit for a failure that is known. `progress_file` always holds one whole JSON object {step, done, total}.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("HF_HUB_OFFLINE", "1")  # everything that is read is local
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # threads that spin make this 6 times slower on busy cores

import torch
import worker_frame
from worker_frame import Refusal

CARRIED = frozenset({".json", ".jinja", ".model", ".txt", ".tiktoken"})
"""Suffixes of tokenizer, template and generation config files."""
M_TRIM_THRESHOLD, M_MMAP_MAX = -1, -4
"""glibc's names for mallopt, malloc.h."""


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
    """worker_frame's, seeded; `quantize` gives the fields {calibration, notes} of the result, or raises Refusal."""

    def work(request: dict[str, Any]) -> dict[str, Any]:
        keep_freed_memory()
        torch.manual_seed(request["seed"])
        return {**quantize(request), "peak_memory_bytes": peak_memory_bytes()}

    return worker_frame.main(argv, work, packages)


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


def blocks(texts: Sequence[Sequence[int]], longest: int) -> list[list[int]]:
    """The texts one after the other, cut into whole blocks of one length, which is at most `longest`; the rest is not used.

    Both AWQs need texts of one length: AutoAWQ joins and cuts them itself, but fails where all together are shorter than
    a block; GPTQModel looks for scales and clipping limits on its last text alone where lengths differ.
    """
    tokens = [token for ids in texts for token in ids]
    length = min(longest, len(tokens))
    return [tokens[start : start + length] for start in range(0, len(tokens) - length + 1, length)]


def used(texts: Sequence[Sequence[int]]) -> dict[str, int]:
    """The result's `calibration`."""
    return {"num_samples": len(texts), "num_tokens": sum(len(ids) for ids in texts)}


def place() -> str:
    """The accelerator's name, or CPU."""
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def peak_memory_bytes() -> int:
    """The larger of this process's resident peak and the accelerator's allocation peak."""
    return max(
        worker_frame.resident_peak_bytes(), torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0
    )
