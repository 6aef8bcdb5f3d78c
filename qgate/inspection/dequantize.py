"""A quantized layer's stored tensors in, its weights [out, in] as float32 out, some rows at a time. Pure.

Formulas, with q the stored integer: compressed-tensors (q - zero) * scale, where packed integers are stored plus
2^(bits-1) (compressed_tensors.compressors); AWQ GEMM (q - zero) * scale, eight integers in the order 0 4 1 5 2 6 3 7
(AutoAWQ, utils/packing_utils.py); GPTQ (q - zero) * scale of the column's group g_idx, v1 zeros stored less one, 3-bit
integers as one stream of bits (AutoGPTQ, qlinear_cuda.py; GPTQModel's gptq_v2).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from qgate.inspection.layers import Layer

Array = NDArray[np.generic]
Floats = NDArray[np.float32]
Parts = Mapping[str, Array]
"""Tensor name within the layer (`weight_packed`, `scales`) to its values, decoded but not copied."""
STEP = 32
"""Rows start and end at multiples of this, so that no packed integer is cut."""
AWQ_ORDER = [0, 4, 1, 5, 2, 6, 3, 7]
READ = frozenset({"pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "gptq", "awq", "fp8"})
WHOLE_BITS = frozenset({2, 4, 8})
"""Widths that compressed-tensors' versions pack alike; of 3, 5, 6 and 7 bits some leave gaps."""
NIBBLES = np.stack([np.arange(256) & 15, np.arange(256) >> 4], axis=-1).astype(np.float32)
"""Both integers of each byte."""


def is_read(layer: Layer) -> bool:
    """Whether this layer's weights can be dequantized here."""
    scheme = layer.scheme
    return scheme.format in READ and (scheme.format != "pack-quantized" or scheme.bits in WHOLE_BITS)


def rows_of(layer: Layer, parts: Parts, rows: slice, zero_step: int = 1) -> Floats:
    """The layer's output rows `rows`. `zero_step`: what GPTQ's zero points were stored less. Raises KeyError, ValueError."""
    match layer.scheme.format:
        case "pack-quantized":
            return _pack_quantized(layer, parts, rows)
        case "gptq":
            return _gptq(layer, parts, rows, zero_step)
        case "awq":
            return _awq(layer, parts, rows)
        case "int-quantized" | "float-quantized" | "naive-quantized" | "fp8":
            return _unpacked(layer, parts, rows)
    raise ValueError(f"weights in the format {layer.scheme.format} are not read")


def unpack(packed: Array, bits: int, less: int = 0) -> Floats:
    """Unsigned integers along the last axis of int32s, the lowest bits first, less `less`."""
    raw = np.ascontiguousarray(packed).view(np.uint8)
    if bits == 4:
        pairs: Floats = (NIBBLES - np.float32(less)).view(np.int64).ravel().take(raw).view(np.float32)
        return pairs
    if bits == 8:
        return raw.astype(np.float32) - np.float32(less)
    stream = np.unpackbits(raw, axis=-1, bitorder="little")
    whole = stream.shape[-1] // bits * bits
    weights = (1 << np.arange(bits)).astype(np.uint8)
    values: Floats = (stream[..., :whole].reshape(*raw.shape[:-1], -1, bits) * weights).sum(axis=-1, dtype=np.float32)
    return values - np.float32(less)


def _pack_quantized(layer: Layer, parts: Parts, rows: slice) -> Floats:
    bits, half = layer.scheme.bits, 2 ** (layer.scheme.bits - 1)
    zeros = parts.get("weight_zero_point")
    less = half if zeros is None else 0
    values = unpack(parts["weight_packed"][rows], bits, less)[:, : layer.columns]
    if zeros is None:
        return _scaled(layer, values, parts, rows)
    if zeros.dtype == np.int32:  # packed along the rows, plus half like the weights
        first, last = rows.start * bits // 32, -(-rows.stop * bits // 32)
        zero = unpack(zeros[first:last].T, bits).T[: rows.stop - rows.start]
    else:
        zero = zeros[rows].astype(np.float32) + half
    if (order := order_of(layer, parts)) is not None:
        return _scaled(layer, values - zero[:, order], parts, rows)
    return _scaled(layer, _grouped(layer, values) - zero[:, :, None], parts, rows)


def _grouped(layer: Layer, values: Floats) -> Floats:
    """[rows, groups, columns of a group]."""
    return values.reshape(values.shape[0], -1, layer.scheme.group_size or layer.columns)


def _scaled(layer: Layer, values: Floats, parts: Parts, rows: slice) -> Floats:
    """Times a scale per group, or per column's group where `weight_g_idx` says which."""
    scale = parts["weight_scale"][rows].astype(np.float32)
    if (order := order_of(layer, parts)) is not None:
        return values.reshape(-1, layer.columns) * scale[:, order]
    grouped = values.reshape(values.shape[0], scale.shape[1], -1)
    return (grouped * scale[:, :, None]).reshape(-1, layer.columns)


def _unpacked(layer: Layer, parts: Parts, rows: slice) -> Floats:
    values = parts["weight"][rows].astype(np.float32)
    scale = parts["weight_scale" if "weight_scale" in parts else "weight_scale_inv"].astype(np.float32)
    if (zero := parts.get("weight_zero_point")) is not None:
        values -= (
            zero.astype(np.float32) if zero.size == 1 else zero[rows].astype(np.float32).reshape(values.shape[0], -1)
        )
    if layer.scheme.block is not None:
        high, wide = layer.scheme.block
        index = np.arange(rows.start, rows.stop) // high
        values *= np.repeat(scale[index], wide, axis=1)[:, : layer.columns]
        return values
    if scale.size == 1:
        return values * scale.reshape(())
    groups = scale.reshape(layer.rows, -1)[rows]
    grouped = values.reshape(values.shape[0], groups.shape[1], -1)
    return (grouped * groups[:, :, None]).reshape(-1, layer.columns)


def _gptq(layer: Layer, parts: Parts, rows: slice, zero_step: int) -> Floats:
    bits = layer.scheme.bits
    values = unpack(np.ascontiguousarray(parts["qweight"][:, rows].T), bits)[:, : layer.columns]
    words = slice(rows.start * bits // 32, -(-rows.stop * bits // 32))
    zeros = unpack(parts["qzeros"][:, words], bits)[:, : rows.stop - rows.start].T + np.float32(zero_step)
    scale = parts["scales"][:, rows].astype(np.float32).T
    order = order_of(layer, parts)
    if order is not None:
        return (values - zeros[:, order]) * scale[:, order]
    return ((_grouped(layer, values) - zeros[:, :, None]) * scale[:, :, None]).reshape(-1, layer.columns)


def order_of(layer: Layer, parts: Parts) -> NDArray[np.int64] | None:
    """Each column's group; None where the groups follow each other."""
    stored = parts.get("g_idx", parts.get("weight_g_idx"))
    if stored is None:
        return None
    order = stored.astype(np.int64)
    plain = np.arange(layer.columns) // (layer.scheme.group_size or layer.columns)
    return None if np.array_equal(order, plain) else order


def _awq(layer: Layer, parts: Parts, rows: slice) -> Floats:
    words = slice(rows.start // 8, -(-rows.stop // 8))
    size = layer.scheme.group_size or layer.columns
    values = _awq_order(parts["qweight"][:, words])
    scale = parts["scales"][:, rows].astype(np.float32)
    grouped = values[:, : rows.stop - rows.start].reshape(-1, size, rows.stop - rows.start)
    if "qzeros" in parts:
        grouped -= _awq_order(parts["qzeros"][:, words])[:, None, : rows.stop - rows.start]
    grouped *= scale[:, None, :]
    return np.ascontiguousarray(grouped.reshape(layer.columns, -1).T)


def _awq_order(packed: Array) -> Floats:
    """[…, out/8] int32 to [..., out] integers in the order of the outputs."""
    values = unpack(packed, 4)
    return values.reshape(*values.shape[:-1], -1, 8)[..., AWQ_ORDER].reshape(*values.shape[:-1], -1)
