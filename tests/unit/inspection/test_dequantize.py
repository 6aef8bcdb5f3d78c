"""Weights come out as the tools' own code unpacks them, bit for bit; numbers as numpy reads them."""

import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from qgate.inspection import numbers
from qgate.inspection.dequantize import rows_of, unpack
from qgate.inspection.layers import quantized_layers
from qgate.inspection.packing import expected
from qgate.inspection.scheme import promise, quantization_of
from qgate.io.survey import survey
from tests.unit.inspection.planting import FIXTURES

RECORDED = sorted(path.parent for path in FIXTURES.glob("*/dequantized.json"))


@pytest.mark.parametrize("folder", RECORDED, ids=lambda folder: folder.name)
def test_every_format_gives_the_tools_own_weights(folder: Path) -> None:
    wanted = json.loads((folder / "dequantized.json").read_text())
    read = survey(folder)
    said = quantization_of(read.facts.config) or {}
    step = 0 if said.get("checkpoint_format") == "gptq_v2" else 1
    layers = quantized_layers(read.facts, promise(read.facts.config))
    assert {layer.module for layer in layers} == set(wanted)
    for layer in layers:
        names = {each.name: f"{layer.module}.{each.name}" for each in expected(layer)}
        parts = {short: read.data.decoded(name) for short, name in names.items() if name in read.data.tensors}
        half = layer.rows // 64 * 32
        rows = [
            rows_of(layer, parts, slice(*ends), step) for ends in ((0, half), (half, layer.rows)) if ends[0] < ends[1]
        ]
        made = np.concatenate(rows).astype(np.float16)
        assert list(made.shape) == wanted[layer.module]["shape"]
        assert hashlib.sha256(made.tobytes()).hexdigest() == wanted[layer.module]["sha256"], layer.module


def test_the_formats_that_the_gate_promises_are_all_recorded() -> None:
    names = {folder.name for folder in RECORDED}
    assert {"awq-gemm", "gptq-v1", "gptq-v1-desc-act", "gptqmodel-gptq-v2"} <= names
    assert {"pack-quantized", "int-quantized", "float-quantized"} <= names


@given(arrays.arrays(np.uint16, st.integers(1, 64)))
def test_halves_are_numpys(raw: np.ndarray) -> None:
    made = numbers.floats(raw.view(np.uint8), "F16", (raw.size,))
    np.testing.assert_array_equal(made, raw.view(np.float16).astype(np.float32))


@given(arrays.arrays(np.float32, st.integers(1, 16), elements=st.floats(width=32)))
def test_bfloat16_is_the_upper_half_of_float32(values: np.ndarray) -> None:
    upper = (values.view(np.uint32) >> 16).astype(np.uint16)
    made = numbers.floats(upper.view(np.uint8), "BF16", (values.size,))
    np.testing.assert_array_equal(made, (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32))


@pytest.mark.parametrize(
    ("dtype", "largest", "smallest"), [("F8_E4M3", 448.0, 2.0**-9), ("F8_E5M2", 57344.0, 2.0**-16)]
)
def test_eight_bit_floats_have_the_ranges_of_the_standard(dtype: str, largest: float, smallest: float) -> None:
    values = numbers.floats(np.arange(256, dtype=np.uint8), dtype, (256,))
    finite = values[np.isfinite(values)]
    assert finite.max() == largest == -finite.min()
    assert finite[finite > 0].min() == smallest
    assert values[0x3C if dtype == "F8_E5M2" else 0x38] == 1.0


@given(st.sampled_from([2, 3, 4, 8]), st.integers(1, 4), st.data())
def test_unpacking_undoes_packing(bits: int, words: int, data: st.DataObject) -> None:
    count = words * 32 // bits
    values = data.draw(st.lists(st.integers(0, 2**bits - 1), min_size=count, max_size=count))
    stream = sum(value << (bits * place) for place, value in enumerate(values))
    packed = np.frombuffer(stream.to_bytes(4 * words, "little"), np.int32)
    np.testing.assert_array_equal(unpack(packed, bits), np.array(values, np.float32))
    np.testing.assert_array_equal(unpack(packed, bits, less=3), np.array(values, np.float32) - 3)


def test_values_are_counted() -> None:
    values = np.array([0.0, -1.0, 2.0, np.nan, np.inf, 1e-7], np.float16)
    found = numbers.count(values.view(np.uint8), "F16")
    assert (found.num, found.num_nonfinite, found.num_zero, found.num_negative) == (6, 2, 1, 1)
    assert found.num_denormal == 1
    assert (found.minimum, found.maximum) == (-1.0, 2.0)
    assert numbers.count_packed(np.array([0x21, 0x21], np.uint8), 4) == {1: 2, 2: 2}


def test_unknown_types_are_refused() -> None:
    with pytest.raises(ValueError, match="F4"):
        numbers.floats(np.zeros(2, np.uint8), "F4", (4,))
