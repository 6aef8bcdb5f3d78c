"""Kernels as vLLM's own `can_implement` chooses them, and what tensor parallelism splits. Cases from vLLM's source."""

from dataclasses import replace

import pytest

from qgate.inspection import parallel, serving
from qgate.inspection.facts import Facts
from qgate.inspection.kernels import Shape, choose
from qgate.inspection.layers import Layer
from qgate.inspection.scheme import Scheme

W4 = Scheme("compressed-tensors", "pack-quantized", 4, group_size=128)
GPTQ = Scheme("gptq", "gptq", 4, group_size=128)
AWQ = Scheme("awq", "awq", 4, group_size=128, is_symmetric=False)
INT8 = Scheme("compressed-tensors", "int-quantized", 8, input_bits=8)
FP8 = Scheme("compressed-tensors", "float-quantized", 8, is_float=True, input_bits=8)


def of(scheme: Scheme, **changes: object) -> Scheme:
    return replace(scheme, **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("scheme", "size", "device", "kernel"),
    [
        (W4, (4096, 4096), 90, "MacheteLinearKernel"),
        (W4, (4096, 4096), 80, "MarlinLinearKernel"),
        (W4, (4032, 4096), 90, "MarlinLinearKernel"),  # Machete needs outputs in 128s
        (of(W4, group_size=32), (4096, 4096), 90, "MarlinLinearKernel"),
        (of(W4, group_size=256), (4096, 4096), 80, "ExllamaLinearKernel"),
        (of(W4, group_size=256, is_symmetric=False), (4096, 4096), 80, "TritonW4A16LinearKernel"),
        (of(W4, group_size=16, is_symmetric=False), (4096, 4096), 80, None),
        (of(W4, bits=8, group_size=None), (4096, 4096), 80, "AllSparkLinearKernel"),
        (of(W4, bits=8, group_size=None), (4096, 4096), 75, "MarlinLinearKernel"),
        (W4, (4096, 4096), None, "CPUWNA16LinearKernel"),
        (W4, (4096, 4080), None, None),
        (GPTQ, (4096, 4096), 90, "MacheteLinearKernel"),
        (of(GPTQ, is_symmetric=False), (4096, 4096), 90, None),
        (of(GPTQ, bits=3), (4096, 4096), 90, None),
        (of(GPTQ, group_size=256), (4096, 4096), 90, None),
        (of(GPTQ, order="group"), (4096, 4096), 80, "MarlinLinearKernel"),
        (of(GPTQ, order="group", group_size=64), (4096, 4160), 80, "ExllamaLinearKernel"),  # Marlin pads no act-order
        (AWQ, (4096, 4096), 90, "MacheteLinearKernel"),
        (AWQ, (4096, 4096), 80, "MarlinLinearKernel"),
        (of(AWQ, group_size=16), (4096, 4096), 80, "AutoAWQLinearMethod"),
        (of(AWQ, is_symmetric=True), (4096, 4096), 80, "AutoAWQLinearMethod"),
        (of(AWQ, bits=8), (4096, 4096), 80, None),
        (INT8, (4096, 4096), 80, "CutlassInt8ScaledMMLinearKernel"),
        (FP8, (4096, 4096), 90, "CutlassFP8ScaledMMLinearKernel"),
        (FP8, (4096, 4096), 80, "MarlinFP8ScaledMMLinearKernel"),
    ],
)
def test_the_kernel_is_vllms(scheme: Scheme, size: tuple[int, int], device: int | None, kernel: str | None) -> None:
    rows, columns = size
    choice = choose(Shape(rows, columns, columns, scheme, is_half=True), device)
    assert choice is not None
    assert choice.kernel == kernel
    assert kernel is not None or choice.refused


def test_marlin_pads_what_fits_no_tile() -> None:
    assert choose(Shape(960, 576, 576, of(W4, group_size=64), is_half=True), 80).is_padded  # type: ignore[union-attr]
    assert not choose(Shape(960, 1536, 1536, of(W4, group_size=64), is_half=True), 80).is_padded  # type: ignore[union-attr]


def test_bfloat16_leaves_exllama_out() -> None:
    choice = choose(Shape(4096, 4096, 4096, of(W4, group_size=256), is_half=False), 80)
    assert choice is not None
    assert choice.kernel == "TritonW4A16LinearKernel"
    assert "float16" in choice.refused["ExllamaLinearKernel"]


def test_schemes_without_a_known_kernel_say_nothing() -> None:
    assert choose(Shape(64, 64, 64, of(W4, format="nvfp4-pack-quantized"), is_half=True), 90) is None


def layer(module: str, rows: int, columns: int, scheme: Scheme = W4) -> Layer:
    return Layer(f"model.layers.0.{module}", rows, columns, scheme)


@pytest.mark.parametrize(
    ("each", "size", "codes"),
    [
        (layer("mlp.down_proj", 896, 4864), 2, []),
        (layer("mlp.down_proj", 896, 4864), 4, ["group-split"]),
        (layer("mlp.up_proj", 4864, 896), 8, []),  # outputs are split, groups lie along the inputs
        (layer("mlp.down_proj", 896, 4864), 1, []),
        (layer("mlp.experts.3.down_proj", 896, 4864), 4, ["expert-group-split"]),
        (layer("self_attn.o_proj", 64, 64, of(W4, group_size=None)), 16, ["packing-split"]),
        (layer("mlp.gate_proj", 72, 64, of(AWQ, group_size=32)), 2, ["packing-split"]),
        (layer("self_attn.k_proj", 72, 64, of(AWQ, group_size=32)), 2, []),  # heads may be held whole
        (layer("mlp.down_proj", 7168, 18432, of(FP8, block=(128, 128))), 32, ["block-split"]),
        (layer("mlp.down_proj", 7168, 18432, of(FP8, block=(128, 128))), 16, []),
        (layer("self_attn.q_a_proj", 100, 64, of(AWQ, group_size=32)), 8, []),
    ],
)
def test_what_tensor_parallelism_cuts(each: Layer, size: int, codes: list[str]) -> None:
    assert [finding.code for finding in parallel.check([each], size)] == codes


def findings(*layers: Layer) -> list[str]:
    _, found = serving.check(Facts({}), layers, 1)
    return [finding.code for finding in found]


def test_a_group_that_does_not_divide_the_columns() -> None:
    assert findings(layer("mlp.down_proj", 896, 4800)) == ["group-size-columns"]


def test_layers_without_a_kernel_or_with_slow_ones_only() -> None:
    assert findings(layer("mlp.down_proj", 4096, 4096, of(W4, group_size=16, is_symmetric=False))) == ["no-kernel"]
    assert findings(layer("mlp.down_proj", 4096, 4096, of(W4, group_size=256))) == ["no-fast-kernel"]
    assert findings(layer("mlp.down_proj", 4096, 4096, of(GPTQ, order="group"))) == ["activation-order"]


def test_fused_layers_are_one() -> None:
    layers = [layer(f"self_attn.{name}_proj", rows, 896) for name, rows in (("q", 896), ("k", 128), ("v", 128))]
    table, _ = serving.check(Facts({}), layers, 2)
    assert {(use.rows, use.columns, use.num_layers) for use in table} == {(576, 896, 1)}
