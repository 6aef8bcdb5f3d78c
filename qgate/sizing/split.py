"""A model and how many GPUs share it in, what cannot be split out: known before anything is started.

Rules of vLLM 0.26: attention heads and the padded vocabulary divide by the tensor-parallel size, key and value heads
divide by it or it by them (model_executor/models/llama.py, vocab_parallel_embedding.py), a GPU's part of a row-parallel
layer's columns is whole groups (kernels/linear/mixed_precision/marlin.py), every pipeline stage has a layer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from qgate.sizing.cache import is_mla, num_heads, num_kv_heads, num_layers, text_config
from qgate.sizing.model import Model

VOCABULARY_PADDING = 64
ROW_PARALLEL = re.compile(r"\.(?:o_proj|down_proj|out_proj|w2|c_proj|dense_4h_to_h|dense)\.weight$")
COLUMN_PARALLEL = re.compile(r"\.(?:gate_proj|up_proj|w1|w3|fc1|dense_h_to_4h)\.weight$")
MOST_GPUS = 16
"""Sizes up to this are tried for the advice."""


def faults(model: Model, tensor_parallel: int, pipeline_parallel: int = 1) -> tuple[str, ...]:
    """Why so many GPUs cannot share this model; empty where they can. Raises KeyError where config.json lacks a size."""
    text = text_config(model.config)
    found = [*_heads(text, tensor_parallel), *_vocabulary(text, tensor_parallel)] if tensor_parallel > 1 else []
    found += _columns(model, tensor_parallel) if tensor_parallel > 1 else []
    if pipeline_parallel > num_layers(text):
        found.append(f"pipeline_parallel_size {pipeline_parallel} is more than the {num_layers(text)} layers")
    return tuple(found)


def fitting(model: Model) -> tuple[int, ...]:
    """Tensor-parallel sizes that this model can be split by."""
    return tuple(size for size in range(1, MOST_GPUS + 1) if not faults(model, size))


def _heads(text: Mapping[str, Any], size: int) -> Iterator[str]:
    heads = num_heads(text)
    if heads % size:
        yield f"tensor_parallel_size {size} does not divide the {heads} attention heads"
    kv_heads = num_kv_heads(text)
    if not is_mla(text) and kv_heads % size and size % kv_heads:
        yield f"tensor_parallel_size {size} does not divide the {kv_heads} heads of keys and values, nor they it"


def _vocabulary(text: Mapping[str, Any], size: int) -> Iterator[str]:
    entries = int(text.get("vocab_size") or 0)
    padded = -(-entries // VOCABULARY_PADDING) * VOCABULARY_PADDING
    if padded % size:
        yield f"tensor_parallel_size {size} does not divide the vocabulary of {entries} (padded to {padded})"


def _columns(model: Model, size: int) -> Iterator[str]:
    """Of each kind of layer the first that does not fit."""
    seen: set[str] = set()
    for name, shape in model.shapes.items():
        kind = name.removesuffix(".weight").rpartition(".")[2]
        why = _why_not(name, shape, size, model.group_size) if len(shape) == 2 and kind not in seen else None
        if why is not None:
            seen.add(kind)
            yield why


def _why_not(name: str, shape: tuple[int, ...], size: int, group_size: int | None) -> str | None:
    rows, columns = shape
    module = name.removesuffix(".weight")
    if COLUMN_PARALLEL.search(name) and rows % size:
        return f"tensor_parallel_size {size} does not divide the {rows} rows of {module}"
    if not ROW_PARALLEL.search(name):
        return None
    if columns % size:
        return f"tensor_parallel_size {size} does not divide the {columns} columns of {module}"
    part = columns // size
    if group_size is not None and group_size < columns and part % group_size:
        return (
            f"tensor_parallel_size {size} cuts through groups of {group_size}: {columns}/{size} = {part} columns of "
            f"{module} on each GPU are no multiple of {group_size}"
        )
    return None
