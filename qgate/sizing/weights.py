"""A checkpoint's stored tensors in, the bytes of its weights on one GPU out.

Quantized tensors take what they take in the file. Floating-point tensors are loaded in the served dtype, whatever they
are stored in. Tensor parallelism splits matrices and repeats vectors and what vLLM calls replicated layers; pipeline
parallelism gives each GPU whole layers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Protocol

from qgate.sizing.cache import num_layers, text_config

SERVED_BYTES = 2
"""Of a number in float16 and bfloat16, the dtypes that a recipe may name."""
PLAIN = frozenset({"F64", "F32", "F16", "BF16"})
AS_STORED = re.compile(r"_scale_inv$|input_scale$|input_global_scale$|weight_global_scale$")
"""Scales that vLLM keeps in float32."""
REPLICATED = re.compile(r"\.(?:kv_a_proj_with_mqa|q_a_proj|mlp\.gate|router|block_sparse_moe\.gate)\.")
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
EMBEDDING = re.compile(r"(?:embed_tokens|wte|word_embeddings)\.weight$")
HEAD = re.compile(r"(?:^|\.)lm_head\.")


class Stored(Protocol):
    """A tensor as a safetensors header describes it."""

    @property
    def dtype(self) -> str:
        """As safetensors names it: F16, I32, F8_E4M3."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As it is stored."""

    @property
    def size_bytes(self) -> int:
        """As it is stored."""


def weight_bytes(
    config: Mapping[str, Any], tensors: Mapping[str, Stored], *, tensor_parallel: int = 1, pipeline_parallel: int = 1
) -> int:
    """Bytes of the weights on the GPU that holds most of them."""
    text = text_config(config)
    tied = bool(text.get("tie_word_embeddings"))
    inner = embedding = head = 0
    for name, tensor in tensors.items():
        size = _served(name, tensor, tensor_parallel)
        if LAYER.search(name):
            inner += size
        elif EMBEDDING.search(name):
            embedding += size
        elif not (tied and HEAD.search(name)):
            head += size
    if pipeline_parallel == 1:
        return inner + embedding + head
    layers = num_layers(text)
    most = math.ceil(inner * math.ceil(layers / pipeline_parallel) / layers)
    return most + max(embedding, head + (embedding if tied else 0))


def _served(name: str, tensor: Stored, tensor_parallel: int) -> int:
    size = tensor.size_bytes
    if tensor.dtype in PLAIN and not AS_STORED.search(name):
        size = math.prod(tensor.shape) * SERVED_BYTES
    split = len(tensor.shape) > 1 and not REPLICATED.search(name)
    return math.ceil(size / tensor_parallel) if split else size
