"""What a checkpoint's config.json and tensors say about its precision and its number of parameters. Touches nothing.

Serialisations known: none (plain), compressed-tensors, AWQ (GEMM), GPTQ and block-wise FP8.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from qgate.errors import CheckpointError
from qgate.io.tensors import DTYPE_BITS, Tensor

PLAIN = {"F16": "FP16", "BF16": "BF16", "F32": "FP32", "F64": "FP64"}
KNOWN = ("awq", "compressed-tensors", "fp8", "gptq")
SIDES = ("weights", "input_activations")
PACKED = (".weight_packed", ".qweight")
BESIDE_WEIGHTS = (
    ".weight_scale", ".weight_scale_inv", ".weight_zero_point", ".weight_shape", ".weight_g_idx",
    ".weight_global_scale",
    ".input_scale", ".activation_scale", ".input_zero_point", ".input_global_scale", ".output_scale", ".output_zero_point",
    ".k_scale", ".v_scale", ".q_scale", ".prob_scale", ".scales", ".qzeros", ".g_idx",
)  # fmt: skip
"""Names of scales, zero points and orders: they are bytes of the checkpoint, but no parameters of the model."""


def quantization(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The `quantization_config`, or None for a plain checkpoint. Raises CheckpointError for an unknown method."""
    said = config.get("quantization_config")
    if not said:
        return None
    method = said.get("quant_method") if isinstance(said, Mapping) else None
    if method not in KNOWN:
        raise CheckpointError(
            f"config.json says that it is quantized by {method!r}, which qgate does not know",
            advice=f"known are {', '.join(KNOWN)}; convert the checkpoint to one of them",
        )
    return said  # type: ignore[no-any-return]


def precision(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    """As vLLM writes it: W8A8, W4A16, FP8, or FP16, BF16, FP32 for a plain checkpoint."""
    said = quantization(config)
    if said is None:
        sizes: Counter[str] = Counter()
        for tensor in tensors.values():
            sizes[tensor.dtype] += tensor.size_bytes
        dtype = sizes.most_common(1)[0][0]
        return PLAIN.get(dtype, dtype)
    if said["quant_method"] == "fp8":
        return "FP8"
    if said["quant_method"] in {"awq", "gptq"}:
        return f"W{_bits(said)}A16"
    written = said.get("config_groups")
    every = list(written.values()) if isinstance(written, Mapping) else []
    groups = {_of_group(group) for group in every if isinstance(group, Mapping)}
    if not groups:
        raise CheckpointError(
            "quantization_config of config.json has no config_groups",
            advice="save the checkpoint anew with its quantizer",
        )
    return "+".join(sorted(groups))


def weight_bits(precision: str) -> int | None:
    """4 of W4A16, 8 of FP8, 16 of BF16; None where weights have no one width."""
    said = re.fullmatch(r"(?:W|BF|FP|NVFP|MXFP)(\d+)(?:A\d+)?", precision)
    return int(said[1]) if said else None


def num_parameters(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> int:
    """Logical parameters: packed weights count unpacked, scales and zero points not at all, tied embeddings once."""
    said = quantization(config)
    return sum(
        _unpacked(tensor, tensors, said) if name.endswith(PACKED) else tensor.num_elements
        for name, tensor in tensors.items()
        if not (said is not None and name.endswith(BESIDE_WEIGHTS)) and not _is_tied(name, config, tensors)
    )


def _of_group(group: Mapping[str, Any]) -> str:
    weights, inputs = (part if isinstance(part := group.get(key), Mapping) else {} for key in SIDES)
    bits, kind = weights.get("num_bits", 16), weights.get("type", "int")
    if kind == "float" and bits == 8:
        return "FP8"
    return f"W{bits}A{inputs.get('num_bits', 16)}"


def _bits(said: Mapping[str, Any]) -> int:
    bits = said.get("bits", said.get("w_bit"))
    if not isinstance(bits, int) or bits <= 0:
        raise CheckpointError(
            "quantization_config of config.json says no `bits`", advice="add it, as its quantizer does"
        )
    return bits


def _unpacked(tensor: Tensor, tensors: Mapping[str, Tensor], said: Mapping[str, Any] | None) -> int:
    """Elements that a packed tensor stands for: of its `weight_shape` where it has one, else by its width in bits."""
    shape = tensors.get(tensor.name.removesuffix("_packed") + "_shape")
    if shape is not None:
        rows, columns = shape.integers()
        return rows * columns
    if said is None:
        return tensor.num_elements
    if said["quant_method"] == "compressed-tensors":
        groups = said.get("config_groups", {}).values()
        bits = next(int(group["weights"]["num_bits"]) for group in groups if group.get("weights"))
    else:
        bits = _bits(said)
    return tensor.num_elements * DTYPE_BITS[tensor.dtype] // bits


def _is_tied(name: str, config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bool:
    """Whether `name` is the output embedding of a model that uses its input embedding for it."""
    if not config.get("tie_word_embeddings") or not name.endswith("lm_head.weight"):
        return False
    return any(
        other.endswith("embed_tokens.weight") and tensor.shape == tensors[name].shape
        for other, tensor in tensors.items()
    )
