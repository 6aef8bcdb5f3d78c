"""What `qgate repro` asks of the real tools: requests as sent, raw prompts, dequantized weights. On a random Llama."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import pytest

from qgate.errors import WorldError
from qgate.io import checkpoint, proc
from qgate.judge.request_body import as_request
from qgate.ports import Tool
from qgate.rooms.swaps import WORKER
from qgate.schemas.answers import Answer
from tests.integration.test_transformers_engine import by_id, opened, tiny, tool

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
__all__ = ["tiny", "tool"]
GREEDY = {"temperature": 0.0, "max_tokens": 12}


def answered(folder: Path, tool: Tool, work: Path, bodies: dict[str, dict[str, Any]]) -> dict[str, Answer]:
    with opened(folder, tool, work) as session:
        return by_id(session, [as_request(name, {**body, **GREEDY}, 0) for name, body in bodies.items()])


def test_a_body_is_read_as_it_was_sent(tiny: Path, tool: Tool, tmp_path: Path) -> None:
    turn = {"role": "user", "content": "abc"}
    parts = [{"type": "text", "text": "abc"}]
    found = answered(
        tiny / "fp16", tool, tmp_path,
        {
            "plain": {"messages": [turn]},
            "parts": {"messages": [{"role": "user", "content": parts}]},
            "closed": {"messages": [turn], "add_generation_prompt": False},
            "raw": {"prompt": "<|user|>abc<|assistant|>"},
            "ids": {"prompt": [5, 6, 7]},
        },
    )  # fmt: skip
    hashes = {name: answer.prompt_token_ids_sha256 for name, answer in found.items()}
    assert hashes["plain"] == hashes["parts"] == hashes["raw"]
    assert hashes["closed"] != hashes["plain"]
    assert hashes["ids"] == hashlib.sha256(struct.pack("<3i", 5, 6, 7)).hexdigest()
    assert found["plain"].token_ids == found["parts"].token_ids == found["raw"].token_ids


@pytest.mark.parametrize("kind", ["w4a16", "w8a8", "fp8"])
def test_dequantized_weights_say_what_the_quantized_ones_say(kind: str, tiny: Path, tool: Tool, tmp_path: Path) -> None:
    (output := tmp_path / "plain").mkdir()
    request = {"checkpoint": str(tiny / kind), "output": str(output), "dtype": "float32"}
    said = proc.run_worker(tool.python, WORKER, request, work=tmp_path / "work", what="dequantizing")
    assert said["num_layers"] > 0
    plain = checkpoint.read(output, "candidate")
    assert plain.precision == "FP32"
    assert "quantization_config" not in checkpoint.read_config(output)
    bodies = {text: {"messages": [{"role": "user", "content": text}]} for text in ("abc", "hello", "xyz", "12")}
    ours = answered(output, tool, tmp_path / "ours", bodies)
    theirs = answered(tiny / kind, tool, tmp_path / "theirs", bodies)
    if kind == "w4a16":  # no activation is rounded, so only float noise is left
        assert {name: answer.token_ids for name, answer in ours.items()} == {
            name: answer.token_ids for name, answer in theirs.items()
        }
    assert all(answer.status in {"ok", "truncated"} for answer in ours.values())
    assert said["notes"] == ([] if kind == "w4a16" else ["activations are no longer rounded"])


def test_what_is_not_quantized_that_way_is_told(tiny: Path, tool: Tool, tmp_path: Path) -> None:
    (output := tmp_path / "plain").mkdir()
    request = {"checkpoint": str(tiny / "fp16"), "output": str(output), "dtype": "float16"}
    with pytest.raises(WorldError, match="only compressed-tensors can be dequantized"):
        proc.run_worker(tool.python, WORKER, request, work=tmp_path / "work", what="dequantizing")
