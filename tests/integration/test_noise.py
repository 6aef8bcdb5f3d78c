"""The noise quantizer's worker in the locked environment `llmcompressor`: what it adds, to what, and how much."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from qgate.commands.progress import QuietWatcher
from qgate.errors import QuantizeError
from qgate.io import checkpoint, tensors
from qgate.ports import Tool, load_quantizer
from qgate.rooms.precheck import VariantJob, precheck
from qgate.rooms.quantize import quantize
from tests.tools import tool_or_skip
from tests.unit.tiny_checkpoint import PLAIN, Entries, write_checkpoint, write_safetensors, write_sharded

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
Q_PROJ, DOWN = "model.layers.0.self_attn.q_proj.weight", "model.layers.0.mlp.down_proj.weight"


@pytest.fixture(scope="module")
def tool() -> Tool:
    return tool_or_skip("llmcompressor")


def filled(entries: Entries) -> dict[str, bytes]:
    """Random weights whose rows differ in size, the same for a tensor of a name."""
    made = {}
    for name, (_, shape) in entries.items():
        generator = np.random.default_rng(len(name))
        sizes = 10.0 ** generator.uniform(-2, 0, shape[:1] + (1,) * (len(shape) - 1))
        made[name] = (sizes * generator.standard_normal(shape)).astype(np.float16).tobytes()
    return made


def damaged(folder: Path, tool: Tool, out: Path, **options: object) -> dict[str, NDArray[np.float64]]:
    """Every tensor of the checkpoint in `folder` after the quantizer has been at it."""
    quantizer = load_quantizer("noise")
    base = checkpoint.read(folder, "baseline")
    job = VariantJob("noise", quantizer, quantizer.options(**options), None, base, "float16", tool)
    precheck(job, out.parent)
    out.mkdir()
    made = quantize(job, out, out.with_suffix(".work"), QuietWatcher())
    assert made.precision == "FP16"
    assert made.files["tokenizer.json"] == base.files["tokenizer.json"]
    return weights(out)


def weights(folder: Path) -> dict[str, NDArray[np.float64]]:
    found = {}
    for name, tensor in tensors.read(folder).items():
        with tensor.file.open("rb") as stream:
            stream.seek(tensor.start)
            raw = np.frombuffer(stream.read(tensor.size_bytes), dtype=np.float16)
        found[name] = raw.reshape(tensor.shape).astype(np.float64)
    return found


def test_noise_is_as_large_as_asked_in_every_row_of_linear_weights_and_nowhere_else(tmp_path: Path, tool: Tool) -> None:
    folder = write_checkpoint(tmp_path / "model")
    write_safetensors(folder / "model.safetensors", PLAIN, filled(PLAIN))
    before = weights(folder)
    some, more, left = (
        damaged(folder, tool, tmp_path / name, **options)
        for name, options in (
            ("some", {"level": 0.1}), ("more", {"level": 0.2}), ("left", {"level": 0.1, "ignore": ("re:.*q_proj",)})
        )
    )  # fmt: skip
    for name in before:
        if name not in {Q_PROJ, DOWN}:
            assert np.array_equal(some[name], before[name])
    for name in (Q_PROJ, DOWN):
        added = some[name] - before[name]
        share = added.std(axis=1) / before[name].std(axis=1)
        assert share.mean() == pytest.approx(0.1, rel=0.03)
        assert share.std() < 0.02
        np.testing.assert_allclose(more[name] - before[name], 2 * added, atol=3e-3 * abs(before[name]).max())
    assert np.array_equal(left[Q_PROJ], before[Q_PROJ])
    assert np.array_equal(left[DOWN], some[DOWN])


def test_shards_get_the_noise_that_one_file_gets_and_another_seed_gives_other_noise(tmp_path: Path, tool: Tool) -> None:
    data = filled(PLAIN)
    whole = write_checkpoint(tmp_path / "whole")
    write_safetensors(whole / "model.safetensors", PLAIN, data)
    parts = {"a.safetensors": dict(list(PLAIN.items())[:2]), "b.safetensors": dict(list(PLAIN.items())[2:])}
    sharded = write_sharded(tmp_path / "sharded", parts)
    (sharded / "tokenizer.json").write_text("{}")
    for file, entries in parts.items():
        write_safetensors(sharded / file, entries, {name: data[name] for name in entries})
    one = damaged(whole, tool, tmp_path / "one", level=0.1)
    two = damaged(sharded, tool, tmp_path / "two", level=0.1)
    other = damaged(whole, tool, tmp_path / "other", level=0.1, seed=1)
    assert all(np.array_equal(one[name], two[name]) for name in one)
    assert not np.array_equal(one[Q_PROJ], other[Q_PROJ])


def test_noise_that_overflows_is_refused(tmp_path: Path, tool: Tool) -> None:
    folder = write_checkpoint(tmp_path / "model")
    large = {name: (np.full(shape, 30_000) * (-1) ** np.indices(shape).sum(axis=0)).astype(np.float16).tobytes()
             for name, (_, shape) in PLAIN.items()}  # fmt: skip
    write_safetensors(folder / "model.safetensors", PLAIN, large)
    with pytest.raises(QuantizeError, match=r"overflows torch\.float16 with so much noise"):
        damaged(folder, tool, tmp_path / "out", level=3.0)
