"""Quantized layers and a tensor-parallel size in, what cannot be split out. Pure.

Sources: vLLM 0.26 to 0.32, `verify_group_size_divides_partition`, AWQ's `create_weights`, `validate_fp8_block_shape` and
`check_moe_marlin_supports_layer`. Whether heads and the vocabulary divide is not asked here: that holds for plain
weights too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.layers import Layer
from qgate.schemas.inspection import Finding

GROUP_SPLIT = Code(
    "group-split",
    ERROR,
    breaks="tensor parallelism cuts through a group of columns",
    fix="use fewer GPUs, or a smaller group size",
)
EXPERT_GROUP_SPLIT = Code(
    "expert-group-split",
    WARNING,
    breaks="tensor parallelism cuts through a group of an expert's columns: vLLM leaves Marlin for a slower kernel, or refuses",
    fix="use fewer GPUs, expert parallelism, or a smaller group size",
)
PACKING_SPLIT = Code(
    "packing-split",
    ERROR,
    breaks="tensor parallelism cuts through a 32-bit integer of packed weights",
    fix="use fewer GPUs",
)
BLOCK_SPLIT = Code(
    "block-split",
    WARNING,
    breaks="tensor parallelism cuts through a block of FP8 weights",
    fix="use fewer GPUs",
)


def check(layers: Iterable[Layer], tensor_parallel_size: int) -> tuple[Finding, ...]:
    """What breaks where each of `layers` is split over so many devices."""
    split = [layer for layer in layers if not layer.is_replicated] if tensor_parallel_size > 1 else []
    return (
        *_groups(split, tensor_parallel_size),
        *_packing(split, tensor_parallel_size),
        *_blocks(split, tensor_parallel_size),
    )


def cuts_group(layer: Layer, size: int) -> bool:
    """Whether a device's share of the inputs is no whole number of groups."""
    group = layer.scheme.group_size
    return layer.is_row_parallel and group is not None and group < layer.columns and (layer.columns / size) % group != 0


def _groups(layers: list[Layer], size: int) -> Iterator[Finding]:
    for code, of_experts in ((GROUP_SPLIT, False), (EXPERT_GROUP_SPLIT, True)):
        bad = [layer for layer in layers if layer.is_expert == of_experts and cuts_group(layer, size)]
        if bad:
            share = f"{bad[0].columns} columns over {size} devices are {bad[0].columns / size:g} on each"
            yield code.at(_names(bad), f"{share}, which {bad[0].scheme.group_size} does not divide")


def _packing(layers: list[Layer], size: int) -> Iterator[Finding]:
    packed = [layer for layer in layers if layer.scheme.is_packed and not cuts_group(layer, size)]
    bad = [layer for layer in packed if _cuts_integer(layer, size)]
    if bad:
        shape = f"{bad[0].rows}×{bad[0].columns} over {size} devices"
        yield PACKING_SPLIT.at(_names(bad), f"{shape}, {bad[0].scheme.pack_factor} weights in an integer")


def _cuts_integer(layer: Layer, size: int) -> bool:
    """Weights are packed along the inputs, in AWQ along the outputs; keys and values may be replicated instead."""
    if layer.scheme.format == "awq":
        return _splits_outputs(layer) and (layer.rows / size) % layer.scheme.pack_factor != 0
    return layer.is_row_parallel and (layer.columns / size) % layer.scheme.pack_factor != 0


def _splits_outputs(layer: Layer) -> bool:
    return not layer.is_row_parallel and not layer.module.endswith(("k_proj", "v_proj"))


def _blocks(layers: list[Layer], size: int) -> Iterator[Finding]:
    bad = [layer for layer in layers if layer.scheme.block is not None and _cuts_block(layer, layer.scheme.block, size)]
    if bad:
        shape = f"{bad[0].rows}×{bad[0].columns} over {size} devices"
        yield BLOCK_SPLIT.at(_names(bad), f"{shape}, in blocks of {bad[0].scheme.block}")


def _cuts_block(layer: Layer, block: tuple[int, int], size: int) -> bool:
    if layer.is_row_parallel:
        return (layer.columns / size) % block[1] != 0
    return _splits_outputs(layer) and (layer.rows / size) % block[0] != 0


def _names(layers: Iterable[Layer]) -> list[str]:
    return [layer.module for layer in layers]


CODES = (GROUP_SPLIT, EXPERT_GROUP_SPLIT, PACKING_SPLIT, BLOCK_SPLIT)
