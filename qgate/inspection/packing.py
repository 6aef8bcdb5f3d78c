"""A layer's size and scheme in, the tensors that its format stores out: names, shapes and types. Pure.

Sources: compressed_tensors.compressors (pack_quantized, naive_quantized), AutoAWQ's WQLinear_GEMM, AutoGPTQ's
QuantLinear, vLLM's create_weights of each. Shapes of [out, in] weights:

    pack-quantized  weight_packed I32 [out, in/p]   weight_scale [out, groups]    weight_zero_point I32 [out/p, groups]
    int-quantized   weight I8 [out, in]             weight_scale [out, 1] or one
    float-quantized weight F8_E4M3 [out, in]        weight_scale [out, 1], one or blocks
    gptq            qweight I32 [in/p, out]         scales [groups, out]          qzeros I32 [groups, out/p]   g_idx [in]
    awq             qweight I32 [in, out/p]         scales [groups, out]          qzeros I32 [groups, out/p]
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from qgate.inspection.facts import FLOATS
from qgate.inspection.layers import Layer

Shape = tuple[int, ...]
I32 = frozenset({"I32"})
INTEGERS = frozenset({"I32", "I64"})
SCALES = FLOATS
EIGHT_BIT_FLOATS = frozenset({"F8_E4M3", "F8_E5M2"})


@dataclass(frozen=True)
class Expected:
    """One tensor that a layer must have, or may have."""

    name: str
    shapes: tuple[Shape, ...]
    """Any of these; the first is the usual one."""
    dtypes: frozenset[str]
    is_required: bool = True
    is_packed: bool = False
    other_name: str | None = None
    """What transformers calls it where that differs; Mistral publishes FP8 so, and vLLM takes both."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names that it may have."""
        return (self.name,) if self.other_name is None else (self.name, self.other_name)

    def stored(self, module: str, tensors: Container[str]) -> str | None:
        """Its full name among `tensors`."""
        return next((full for name in self.names if (full := f"{module}.{name}") in tensors), None)


def expected(layer: Layer) -> tuple[Expected, ...]:
    """The layer's tensors; nothing for formats that are not known here."""
    match layer.scheme.format:
        case "pack-quantized":
            return tuple(_pack_quantized(layer))
        case "gptq":
            return tuple(_gptq(layer))
        case "awq":
            return tuple(_awq(layer))
        case "int-quantized" | "float-quantized" | "naive-quantized":
            return tuple(_unpacked(layer))
        case "fp8":
            return tuple(_fp8(layer))
    return ()


def num_groups(layer: Layer) -> int:
    """Groups of columns in a row: one where all of it shares a scale."""
    return up(layer.columns, layer.scheme.group_size) if layer.scheme.group_size else 1


def up(number: int, step: int) -> int:
    """`number` / `step`, rounded up."""
    return -(-number // step)


def _pack_quantized(layer: Layer) -> Iterator[Expected]:
    factor, groups, rows = layer.scheme.pack_factor, num_groups(layer), layer.rows
    widths = (up(layer.columns, factor), up(layer.columns * layer.scheme.bits, 32))
    yield Expected("weight_packed", tuple((rows, width) for width in widths), I32, is_packed=True)
    yield Expected("weight_scale", ((rows, groups),), SCALES)
    yield Expected("weight_shape", ((2,),), INTEGERS)
    if not layer.scheme.is_symmetric:
        packed, plain = (up(rows, factor), groups), (rows, groups)
        yield Expected("weight_zero_point", (packed, plain), I32 | {"I8"}, is_packed=True)
    if layer.scheme.order == "group":
        yield Expected("weight_g_idx", ((layer.columns,),), INTEGERS)
    yield from _inputs(layer)


def _unpacked(layer: Layer) -> Iterator[Expected]:
    dtypes = EIGHT_BIT_FLOATS if layer.scheme.is_float else frozenset({"I8"})
    yield Expected("weight", ((layer.rows, layer.columns),), dtypes)
    yield Expected("weight_scale", _scale_shapes(layer), SCALES)
    if not layer.scheme.is_symmetric:
        yield Expected("weight_zero_point", _scale_shapes(layer), INTEGERS | {"I8"})
    yield from _inputs(layer)


def _scale_shapes(layer: Layer) -> tuple[Shape, ...]:
    if layer.scheme.block is not None:
        return ((up(layer.rows, layer.scheme.block[0]), up(layer.columns, layer.scheme.block[1])),)
    if layer.scheme.is_per_tensor:
        return ((1,), (), (1, 1))
    if layer.scheme.group_size is not None:
        return ((layer.rows, num_groups(layer)),)
    return ((layer.rows, 1), (layer.rows,))


def _inputs(layer: Layer) -> Iterator[Expected]:
    if layer.scheme.has_static_input:
        yield Expected("input_scale", ((1,), (), (1, 1)), SCALES, other_name="activation_scale")
    if layer.scheme.has_input_zero_point:
        yield Expected("input_zero_point", ((1,), (), (1, 1)), INTEGERS | {"I8"})


def _fp8(layer: Layer) -> Iterator[Expected]:
    yield Expected("weight", ((layer.rows, layer.columns),), EIGHT_BIT_FLOATS)
    if layer.scheme.block is not None:
        yield Expected("weight_scale_inv", _scale_shapes(layer), SCALES | {"F8_E8M0"})
        return
    shapes = ((1,), (), (1, 1), (layer.rows, 1), (layer.rows,))
    yield Expected("weight_scale", shapes, SCALES, other_name="weight_scale_inv")
    yield from _inputs(layer)


def _gptq(layer: Layer) -> Iterator[Expected]:
    bits, groups = layer.scheme.bits, num_groups(layer)
    yield Expected("qweight", ((up(layer.columns * bits, 32), layer.rows),), I32, is_packed=True)
    yield Expected("scales", ((groups, layer.rows),), SCALES)
    yield Expected("qzeros", ((groups, up(layer.rows * bits, 32)),), I32, is_packed=True)
    yield Expected("g_idx", ((layer.columns,),), INTEGERS, is_required=layer.scheme.order == "group")


def _awq(layer: Layer) -> Iterator[Expected]:
    factor, groups = layer.scheme.pack_factor, num_groups(layer)
    yield Expected("qweight", ((layer.columns, up(layer.rows, factor)),), I32, is_packed=True)
    yield Expected("scales", ((groups, layer.rows),), SCALES)
    yield Expected("qzeros", ((groups, up(layer.rows, factor)),), I32, not layer.scheme.is_symmetric, is_packed=True)
