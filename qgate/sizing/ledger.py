"""A checkpoint, how it is served and its load in, the bytes that its server takes of each GPU out.

    total = weights + KV cache + activations of the largest step + scoring + CUDA graphs + context

Weights and KV cache are exact; the rest are upper estimates, whose constants say where they come from. What vLLM reports
at its start is held against them (`differences`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from qgate.sizing.cache import cache_shape, first, num_layers, text_config
from qgate.sizing.model import Model
from qgate.sizing.placement import Need
from qgate.sizing.weights import SERVED_BYTES, weight_bytes

GIB = 1 << 30
SAMPLER_BYTES = 20
"""Per sequence and vocabulary entry: logits in the served dtype, in float32, one copy while sampling, one float32 for
log-probabilities, and the counts of the penalties (vllm/v1/worker/gpu/sample)."""
GRAPH_LAYER_BYTES = 200_000
"""Per captured graph and layer: 86 graphs of 30 layers took 0.36 to 0.43 GiB (vLLM 0.26, H200, with no neighbour)."""
CONTEXT_BYTES = GIB
"""CUDA context, cuBLAS and attention workspaces, and what the allocator rounds up."""
GROUP_BYTES = GIB
"""More of it where several GPUs work together: NCCL and all-reduce buffers."""
SPARE_TOKENS = 256
"""Tokens of KV cache beside the load's: the block that vLLM keeps for itself, and a last block that some attention
backends make larger (64 or 128 tokens)."""
STEPS_AT_ONCE = 2
"""Steps in flight with asynchronous scheduling, vLLM's default."""
LARGEST_GRAPH = 512
"""Tokens in the largest graph (vllm/config/vllm.py, _set_cudagraph_sizes)."""


@dataclass(frozen=True)
class Serving:
    """How a checkpoint is served."""

    tensor_parallel: int = 1
    pipeline_parallel: int = 1
    kv_dtype: str = "auto"
    step_tokens: int = 8192
    """Tokens in one step at most (--max-num-batched-tokens)."""
    max_num_seqs: int = 256
    graphs: bool = True
    score_bytes: int = 0
    """Memory that scoring may take beside the rest."""
    kv_bytes: int | None = None
    """Size of the KV cache, where the recipe sets it."""
    only: tuple[int, ...] = ()
    """The GPUs that it must be on; empty: any."""

    @property
    def num_devices(self) -> int:
        """GPUs that one server takes."""
        return self.tensor_parallel * self.pipeline_parallel


@dataclass(frozen=True)
class Ledger:
    """Bytes on each of `num_devices` GPUs (the fullest of them)."""

    num_devices: int
    weights: int
    kv_cache: int
    least_kv_cache: int
    """What one request of the longest context needs: with less, vLLM does not start."""
    activations: int
    scoring: int
    graphs: int
    context: int
    only: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def fixed(self) -> int:
        """All but the KV cache."""
        return self.weights + self.activations + self.scoring + self.graphs + self.context

    @property
    def total(self) -> int:
        """With the KV cache that the load wants."""
        return self.fixed + self.kv_cache

    def need(self, name: str) -> Need:
        """Room for the server of `name`."""
        return Need(name, self.num_devices, self.fixed, self.kv_cache, self.least_kv_cache, self.only)

    def in_gib(self) -> dict[str, float]:
        """Every entry and the total in GiB, for records."""
        entries = {name: value for name, value in asdict(self).items() if name not in {"num_devices", "only", "notes"}}
        return {name: round(value / GIB, 3) for name, value in {**entries, "total": self.total}.items()}


def ledger(model: Model, serving: Serving, lengths: Sequence[int], context: int) -> Ledger:
    """The ledger of one server.

    `lengths`: tokens of the requests that are in flight together, prompt and answer; `context`: the longest that the
    server must take. Raises KeyError where config.json lacks a size.
    """
    text = text_config(model.config)
    shape = cache_shape(model.config, kv_dtype=serving.kv_dtype, tensor_parallel=serving.tensor_parallel)
    layers_here = math.ceil(num_layers(text) / serving.pipeline_parallel)
    share = layers_here / num_layers(text)
    spare = shape.sequence_bytes(SPARE_TOKENS)
    least = math.ceil((spare + shape.sequence_bytes(context, STEPS_AT_ONCE * serving.step_tokens)) * share)
    running = sorted(lengths, reverse=True)[: serving.max_num_seqs]
    load = math.ceil((spare + sum(map(shape.sequence_bytes, running))) * share)
    wanted = max(least, load) if serving.kv_bytes is None else serving.kv_bytes
    return Ledger(
        num_devices=serving.num_devices,
        weights=weight_bytes(
            model.config, model.tensors,
            tensor_parallel=serving.tensor_parallel, pipeline_parallel=serving.pipeline_parallel,
        ),
        kv_cache=wanted,
        least_kv_cache=least if serving.kv_bytes is None else wanted,
        activations=_activations(text, serving),
        scoring=serving.score_bytes,
        graphs=num_graphs(serving) * layers_here * GRAPH_LAYER_BYTES if serving.graphs else 0,
        context=CONTEXT_BYTES + (GROUP_BYTES if serving.num_devices > 1 else 0),
        only=serving.only,
        notes=tuple(f"what {kind} layers keep of a sequence is not counted" for kind in shape.unknown),
    )  # fmt: skip


def _activations(text: Mapping[str, Any], serving: Serving) -> int:
    """Of a step: residual and hidden state, gate and up projections and their product; and of its sampling, logits.

    The largest moment of a layer is its MLP: 2·hidden + 3·intermediate numbers a token, the latter split by TP. Experts
    take it once for each expert that a token goes to. Logits are gathered whole on the GPU that samples.
    """
    hidden = int(first(text, "hidden_size", "n_embd"))
    experts = int(text.get("num_experts_per_tok") or 1)
    per_expert = text.get("moe_intermediate_size") if experts > 1 else None
    inner = max(int(text.get("intermediate_size") or 4 * hidden), experts * int(per_expert or 0))
    mlp = serving.step_tokens * (2 * hidden + 3 * math.ceil(inner / serving.tensor_parallel)) * SERVED_BYTES
    sampled = min(serving.max_num_seqs, serving.step_tokens) * int(text.get("vocab_size") or 0) * SAMPLER_BYTES
    return int(mlp + sampled)


def num_graphs(serving: Serving) -> int:
    """CUDA graphs that vLLM captures: piecewise ones of every size, and whole ones up to the number of sequences."""
    largest = min(2 * serving.max_num_seqs, LARGEST_GRAPH, serving.step_tokens)
    sizes = [size for size in (1, 2, 4, *range(8, 256, 8), *range(256, LARGEST_GRAPH + 1, 16)) if size <= largest]
    whole = [size for size in sizes if size <= serving.max_num_seqs]
    return len(sizes) + len(whole)
