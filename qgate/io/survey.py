"""A checkpoint directory in, its Facts out: headers, settings, and the values of scales. Reads the disk.

Weights are not touched: of a 70B model about a gigabyte is read, the scales, and of a plain one the norms.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from qgate.inspection import numbers
from qgate.inspection.facts import FLOATS, Facts, GroupIndex, Header, TokenizerFacts, Values
from qgate.inspection.scales import SCALE
from qgate.inspection.scheme import EMBEDDING, Promise, promise
from qgate.io import checkpoint, shards
from qgate.io.tensor_data import TensorData

SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")
TOKENIZER_FILES = re.compile(
    r"^(tokenizer.*|vocab\.json|merges\.txt|special_tokens_map\.json|spiece\.model|tekken\.json|.*\.tiktoken|.*\.bpe\.model)$"
)
WEIGHTS, PAGE = (".weight", ".weight_packed", ".qweight"), 4096
SCALE_TYPES = FLOATS | {"F8_E4M3", "F8_E8M0"}


@dataclass(frozen=True)
class Survey:
    """What was read of a checkpoint, and its tensors to read on from."""

    facts: Facts
    data: TensorData


def survey(folder: Path) -> Survey:
    """Everything that is known of `folder` short of its weights. Raises CheckpointError where it is no checkpoint."""
    config = checkpoint.any_config(folder)
    tensors, faults = shards.survey(folder)
    data = TensorData(tensors)
    whole = {} if any(fault.code.startswith("shard") for fault in faults) else tensors
    unreadable: dict[str, str] = {}
    facts = Facts(
        config=config,
        headers={
            name: Header(each.dtype, each.shape, each.file.name, each.size_bytes) for name, each in tensors.items()
        },
        files=frozenset(path.name for path in folder.iterdir() if path.is_file()),
        shard_faults=faults,
        tokenizer=_tokenizer(folder),
        generation=_json(folder / "generation_config.json", unreadable),
        mistral=_json(folder / "params.json", {}),
        unreadable=unreadable,
        values={name: _values(data, name) for name, each in whole.items() if _is_counted(name, each.dtype, each.shape)},
        zero_points=_zero_points(data, whole, promise(config)),
        group_indices={
            name: _group_index(data, name)
            for name, each in whole.items()
            if name.endswith(".g_idx") and each.dtype in {"I32", "I64"}
        },
        blank=frozenset(name for name, each in whole.items() if _is_blank(data, name, each.shape)),
        integers={
            name: each.integers()
            for name, each in whole.items()
            if name.endswith(".weight_shape") and each.dtype == "I64" and each.num_elements <= 4
        },
    )
    return Survey(facts, data)


def _is_counted(name: str, dtype: str, shape: tuple[int, ...]) -> bool:
    """Scales, and the vectors among the plain weights: norms and biases."""
    is_vector = len(shape) == 1 and name.endswith((".weight", ".bias"))
    return dtype in SCALE_TYPES and (SCALE.search(name) is not None or is_vector)


def _is_blank(data: TensorData, name: str, shape: tuple[int, ...]) -> bool:
    """A page is read of each matrix that has more than one; rows of zeros are no rarity in embeddings."""
    if len(shape) < 2 or not name.endswith(WEIGHTS) or EMBEDDING.search(name.rpartition(".")[0]):
        return False
    raw = data.raw(name)
    start = (raw.size - PAGE) // 2
    return start > 0 and not raw[start : start + PAGE].any()


def _values(data: TensorData, name: str) -> Values:
    return numbers.count(data.raw(name), data.tensors[name].dtype)


def _zero_points(data: TensorData, tensors: Mapping[str, Any], promised: Promise | None) -> dict[str, dict[int, int]]:
    """GPTQ's; and compressed-tensors', whose packed ones are stored with half their range added."""
    found = {}
    for name, tensor in tensors.items():
        module, _, kind = name.rpartition(".")
        if kind == "weight_zero_point" and tensor.dtype == "I8":
            counts = numbers.count_packed(data.raw(name), 8)
            found[name] = {value - 256 if value > 127 else value: num for value, num in counts.items()}
        elif kind in {"qzeros", "weight_zero_point"} and tensor.dtype == "I32":
            scheme = promised.scheme_of(module) if promised is not None else None
            bits = scheme.bits if scheme is not None else 4
            if bits in {4, 8}:
                less = 2 ** (bits - 1) if kind == "weight_zero_point" else 0
                counts = numbers.count_packed(data.raw(name), bits)
                found[name] = {value - less: num for value, num in counts.items()}
    return found


def _group_index(data: TensorData, name: str) -> GroupIndex:
    values = data.decoded(name).reshape(-1).astype(np.int64)
    if not values.size:
        return GroupIndex(0, 0, is_in_order=True, largest=0)
    is_in_order, largest = bool((np.diff(values) >= 0).all()), int(np.unique(values, return_counts=True)[1].max())
    columns = values.astype(np.int32).tobytes()
    return GroupIndex(int(values.min()), int(values.max()), is_in_order=is_in_order, largest=largest, columns=columns)


def _tokenizer(folder: Path) -> TokenizerFacts:
    unreadable: dict[str, str] = {}
    tokenizer = _json(folder / "tokenizer.json", unreadable)
    settings: dict[str, Any] = {}
    for name in reversed(SETTINGS):
        settings |= _json(folder / name, unreadable)
    return TokenizerFacts(
        files=frozenset(path.name for path in folder.iterdir() if TOKENIZER_FILES.match(path.name)),
        tokenizer=tokenizer,
        settings=settings,
        templates=_templates(folder, settings),
        unreadable=unreadable,
    )


def _templates(folder: Path, settings: Mapping[str, Any]) -> dict[str, str]:
    """By name; a file of its own goes before tokenizer_config.json, as in transformers."""
    said = settings.get("chat_template")
    found: dict[str, str] = {}
    if isinstance(said, str):
        found["default"] = said
    elif isinstance(said, list):
        found = {str(each.get("name")): str(each.get("template")) for each in said if isinstance(each, Mapping)}
    inner = _json(folder / "chat_template.json", {}).get("chat_template")
    if isinstance(inner, str):
        found["default"] = inner
    file = folder / "chat_template.jinja"
    if file.is_file():
        found["default"] = file.read_text(encoding="utf-8", errors="replace")
    return found


def _json(file: Path, unreadable: dict[str, str]) -> dict[str, Any]:
    """The object in `file`; empty where it is missing or, which is noted, broken."""
    if not file.exists():
        return {}
    try:
        value = orjson.loads(file.read_bytes()) if file.is_file() else None  # nobody may ever write to a pipe
    except (OSError, ValueError) as error:
        unreadable[file.name] = str(error)
        return {}
    if not isinstance(value, dict):
        unreadable[file.name] = "it holds no object" if file.is_file() else "it is no file"
        return {}
    return value
