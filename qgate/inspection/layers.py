"""Facts in, the linear layers out: which modules there are, how large, quantized or plain. Pure.

A module counts as linear where it has a two-dimensional `.weight` and is no embedding, norm or convolution, or where it
has packed weights. Shapes are [out, in] throughout.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qgate.inspection.facts import Facts, Header
from qgate.inspection.scheme import EMBEDDING, Promise, Scheme

PACKED = (".weight_packed", ".qweight")
QUANTIZED_DTYPES = frozenset({"I8", "U8", "F8_E4M3", "F8_E5M2", "I32"})
NOT_LINEAR = re.compile(r"(^|\.)(\w*norm\w*|ln_\w+|conv\w*|patch_embed\w*|A_log|rotary_emb)(\.|$)", re.IGNORECASE)
HEAD = re.compile(r"(^|\.)(lm_head|embed_out|output)$")
ROUTER = re.compile(r"(^|\.)(gate|router|shared_expert_gate|wg)(\.(layer|classifier|wg|proj))?$")
EXPERT = re.compile(r"\.experts\.(\d+)\.")
IN_LAYER = re.compile(r"^(.*?\.?(?:layers|h|blocks|block)\.)(\d+)\.(.+)$")
FUSED = (
    ("q_proj", "k_proj", "v_proj"),
    ("gate_proj", "up_proj"),
    ("w1", "w3"),
)
"""Siblings that vLLM loads into one layer (packed_modules_mapping): they must be quantized alike."""
ROW_PARALLEL = re.compile(r"(^|\.)(o_proj|down_proj|out_proj|wo|w2|c_proj|fc2|dense_4h_to_h|dense|out)$")
REPLICATED = re.compile(r"(^|\.)(q_a_proj|kv_a_proj_with_mqa|fused_qkv_a_proj|gate|router|shared_expert_gate|wg)$")


@dataclass(frozen=True)
class Layer:
    """One linear layer that the config promises to be quantized, or that is stored so."""

    module: str
    rows: int
    """Outputs."""
    columns: int
    """Inputs."""
    scheme: Scheme

    @property
    def is_expert(self) -> bool:
        """Whether it belongs to one expert of a mixture."""
        return EXPERT.search(self.module) is not None

    @property
    def is_row_parallel(self) -> bool:
        """Whether tensor parallelism splits its inputs; else its outputs."""
        return ROW_PARALLEL.search(self.module) is not None

    @property
    def is_replicated(self) -> bool:
        """Whether every device holds it whole."""
        return REPLICATED.search(self.module) is not None


def stored_modules(headers: Mapping[str, Header]) -> dict[str, bool]:
    """Linear modules to whether their weights are stored quantized."""
    found: dict[str, bool] = {}
    for name, header in headers.items():
        if name.endswith(PACKED):
            found[name.rpartition(".")[0]] = True
        elif name.endswith(".weight") and len(header.shape) == 2:
            module = name.removesuffix(".weight")
            if not EMBEDDING.search(module) and not NOT_LINEAR.search(module):
                found[module] = header.dtype in QUANTIZED_DTYPES
    return found


def quantized_layers(facts: Facts, promise: Promise | None, baseline: Facts | None = None) -> tuple[Layer, ...]:
    """Layers that are stored quantized and that the config promises, with their sizes."""
    if promise is None:
        return ()
    return tuple(_layers(facts, promise, baseline))


def _layers(facts: Facts, promise: Promise, baseline: Facts | None) -> Iterator[Layer]:
    for module, is_quantized in stored_modules(facts.headers).items():
        scheme = promise.scheme_of(module) if is_quantized else None
        size = size_of(module, facts, scheme, baseline) if scheme is not None else None
        if scheme is not None and size is not None:
            yield Layer(module, *size, scheme)


def size_of(module: str, facts: Facts, scheme: Scheme, baseline: Facts | None) -> tuple[int, int] | None:
    """[out, in]: the baseline's, else what is stored; None where nothing says it."""
    plain = baseline.headers.get(f"{module}.weight") if baseline is not None else None
    if plain is not None and len(plain.shape) == 2:
        return plain.shape[0], plain.shape[1]
    headers = facts.headers
    if (header := headers.get(f"{module}.weight")) is not None and len(header.shape) == 2:
        return header.shape[0], header.shape[1]
    if (header := headers.get(f"{module}.weight_packed")) is not None and len(header.shape) == 2:
        return _packed_size(module, facts, scheme, header)
    if (header := headers.get(f"{module}.qweight")) is not None and len(header.shape) == 2:
        first, second = header.shape
        if scheme.format == "awq":
            return second * scheme.pack_factor, first
        return second, first * 32 // scheme.bits
    return None


def _packed_size(module: str, facts: Facts, scheme: Scheme, packed: Header) -> tuple[int, int]:
    """What `weight_shape` says, unless the scales speak for the packed weights' own width."""
    factor = scheme.pack_factor if packed.dtype == "I32" else 8 // scheme.bits
    rows, columns = packed.shape[0], packed.shape[1] * factor
    written = facts.integers.get(f"{module}.weight_shape", ())
    scale = facts.headers.get(f"{module}.weight_scale")
    if len(written) != 2 or min(written) < 1:
        return rows, columns
    groups = -(-written[1] // scheme.group_size) if scheme.group_size else 1
    fits = 0 <= columns - written[1] < factor and rows == written[0]
    return (
        (written[0], written[1])
        if fits or (scale is not None and scale.shape == (written[0], groups))
        else (rows, columns)
    )


def fused_siblings(module: str, modules: Mapping[str, bool]) -> tuple[str, ...]:
    """The modules that vLLM fuses with `module`, itself among them; only `module` where there are none."""
    parent, _, name = module.rpartition(".")
    for group in FUSED:
        if name in group:
            siblings = tuple(f"{parent}.{each}" for each in group if f"{parent}.{each}" in modules)
            return siblings if len(siblings) > 1 else (module,)
    return (module,)
