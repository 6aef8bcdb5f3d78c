"""An AWQ or GPTQ checkpoint in, its dense weights out. Part of the worker transformers_serve; reads the disk.

transformers itself wants gptqmodel for these formats, and with it kernels of its own; here only the arithmetic counts:
weight[o, i] = (q[o, i] - zero[o, group(i)]) * scale[o, group(i)], computed in the dtype that is asked for. Every stored
scale is float16 and q - zero an integer below 2^9, so the product is exact in float32.

Formats, n = 32 / bits values a word, the lowest bits first:

- AWQ, version `gemm` (4 bits): qweight int32 [in, out/8], qzeros int32 [in/group, out/8], scales [in/group, out]. Along
  `out`, value p of a word is that of column AWQ_ORDER[p] of its eight. (autoawq, awq/modules/linear/gemm.py)
- GPTQ (2, 3, 4 or 8 bits): qweight int32 [in*bits/32, out], qzeros int32 [groups, out*bits/32], scales [groups, out],
  g_idx int32 [in]: the group of each row, in any order with desc_act; where it is missing, rows in order. Three bits run
  over word borders. (auto-gptq, nn_modules/qlinear; gptqmodel, nn_modules/qlinear/__init__.py)
- GPTQ's checkpoint_format `gptq` (v1) stores zero points less one, `gptq_v2` as they are. A zero point of 0 has no place
  in v1: its readers differ there (vLLM takes 16 of 4 bits). This is gptqmodel's reading, which transformers uses: one is
  added to the packed word, carries included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
GPTQ_WIDTHS = (2, 3, 4, 8)
ONES = {2: 0x55555555, 4: 0x11111111, 8: 0x01010101}
"""A one in every value of a word."""
WORD = 32
PARTS = frozenset({"qweight", "qzeros", "scales", "g_idx"})

Dequantize = Callable[[Mapping[str, Tensor], torch.dtype], Tensor]


def method(config: Mapping[str, Any]) -> str | None:
    """`awq` or `gptq` where config.json says that this module reads the weights, else None."""
    said = (config.get("quantization_config") or {}).get("quant_method")
    return said if said in {"awq", "gptq"} else None


def dense_state(
    folder: Path, quantization: Mapping[str, Any], dtype: torch.dtype
) -> tuple[dict[str, Tensor], set[str]]:
    """Every tensor of the checkpoint by name, packed ones as a dense `NAME.weight` in `dtype`; and those modules' names.

    Raises ValueError for a layout that is not read here, or tensors that do not fit each other.
    """
    dequantize = reader(quantization)
    state: dict[str, Tensor] = {}
    packed: dict[str, dict[str, Tensor]] = {}
    for name, tensor in stored(folder):
        module, _, part = name.rpartition(".")
        if part in PARTS:
            packed.setdefault(module, {})[part] = tensor
        else:
            state[name] = tensor
    for module, parts in packed.items():
        try:
            state[f"{module}.weight"] = dequantize(parts, dtype)
        except (KeyError, IndexError, RuntimeError, ValueError) as error:
            raise ValueError(f"{module} cannot be unpacked: {type(error).__name__}: {error}") from error
        parts.clear()
    return state, set(packed)


def stored(folder: Path) -> Iterator[tuple[str, Tensor]]:
    """Name and tensor of everything in the checkpoint's safetensors files."""
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 (not a dict)
                yield name, tensors.get_tensor(name)


def reader(quantization: Mapping[str, Any]) -> Dequantize:
    """What turns one module's parts into its weight [out, in]. Raises ValueError for a layout that is not read here."""
    kind = str(quantization.get("checkpoint_format") or quantization.get("format") or "").lower()
    if quantization["quant_method"] == "awq":
        version, bits = str(quantization.get("version", "gemm")).lower(), quantization.get("bits", 4)
        if (version, bits) != ("gemm", 4):
            raise ValueError(f"AWQ of version {version} with {bits} bits; the transformers engine reads gemm with 4")
        return dequantize_awq
    if kind not in {"", "gptq", "gptq_v2"} or quantization.get("is_marlin_format"):
        raise ValueError(f"GPTQ in the layout {kind or 'marlin'}; the transformers engine reads gptq and gptq_v2")
    return lambda parts, dtype: dequantize_gptq(parts, dtype, offset=0 if kind == "gptq_v2" else 1)


def dequantize_awq(parts: Mapping[str, Tensor], dtype: torch.dtype) -> Tensor:
    """qweight, qzeros and scales of AWQ GEMM -> the weight [out, in]."""
    scales = parts["scales"].t().to(dtype)
    values = in_order(unpack(parts["qweight"].t(), 4))
    zeros = in_order(unpack(parts["qzeros"].t(), 4))
    group = values.shape[1] // scales.shape[1]
    groups = torch.arange(values.shape[1]) // group
    return ((values - zeros[:, groups]).to(dtype) * scales[:, groups]).contiguous()


def in_order(values: Tensor) -> Tensor:
    """Rows as AWQ packs them, eight a word, -> rows in their order."""
    places = torch.tensor(AWQ_ORDER).argsort()
    return values.reshape(-1, len(AWQ_ORDER), values.shape[1])[:, places].reshape(values.shape)


def dequantize_gptq(parts: Mapping[str, Tensor], dtype: torch.dtype, *, offset: int) -> Tensor:
    """qweight, qzeros, scales and g_idx of GPTQ -> the weight [out, in]. `offset`: what zero points are stored less."""
    qweight, scales = parts["qweight"], parts["scales"].t().to(dtype)
    bits = WORD * parts["qzeros"].shape[1] // scales.shape[0]
    if bits not in GPTQ_WIDTHS:
        raise ValueError(f"{bits} bits, not one of {GPTQ_WIDTHS}")
    values = unpack(qweight, bits).t()
    groups = parts.get("g_idx")
    if groups is None:
        groups = torch.arange(values.shape[1]) // (values.shape[1] // scales.shape[1])
    zeros = zero_points(parts["qzeros"].t(), bits, offset)
    return ((values - zeros[:, groups.long()]).to(dtype) * scales[:, groups.long()]).contiguous()


def zero_points(packed: Tensor, bits: int, offset: int) -> Tensor:
    """int32 [out*bits/32, groups] -> [out, groups], with what the format left out added."""
    if bits in ONES:
        return unpack(packed + offset * ONES[bits], bits)
    return (unpack(packed, bits) + offset) % 2**bits


def unpack(packed: Tensor, bits: int) -> Tensor:
    """int32 words [rows, columns] -> int32 values [rows*32/bits, columns], the lowest bits first, over word borders."""
    count = WORD * packed.shape[0] // bits
    mask = 2**bits - 1
    if WORD % bits == 0:
        shifts = torch.arange(0, WORD, bits, dtype=torch.int32)[None, :, None]
        return (packed[:, None, :] >> shifts & mask).reshape(count, packed.shape[1])
    starts = torch.arange(count) * bits
    words = torch.cat([packed, packed[-1:]]).long() & 0xFFFFFFFF
    low = words[starts // WORD] >> (starts % WORD)[:, None]
    high = words[starts // WORD + 1] << (WORD - starts % WORD)[:, None]
    return ((low | high) & mask).int()
