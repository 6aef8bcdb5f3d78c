"""What the reader found wrong with the weight files in, findings out. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.scheme import promise, quantization_of
from qgate.schemas.inspection import Finding

SHARD_MISSING = Code(
    "shard-missing",
    ERROR,
    breaks="part of the weights is not there",
    fix="copy or download the checkpoint again: not all of it has arrived",
)
SHARD_TRUNCATED = Code(
    "shard-truncated",
    ERROR,
    breaks="the last tensors of the file are cut off",
    fix="copy or download the checkpoint again: not all of it has arrived",
)
SHARD_UNREADABLE = Code(
    "shard-unreadable",
    ERROR,
    breaks="the file's tensors cannot be found",
    fix="copy or download the checkpoint again: not all of it has arrived",
)
INDEX_UNREADABLE = Code(
    "index-unreadable",
    ERROR,
    breaks="nothing says which file holds which tensor",
    fix="copy or download the checkpoint again: not all of it has arrived",
)
INDEX_MISMATCH = Code(
    "index-mismatch",
    WARNING,
    breaks="loaders that follow the index do not find these tensors",
    fix="write the index anew from the shards",
)
INDEX_MISSING = Code(
    "index-missing",
    WARNING,
    breaks="transformers loads none of several weight files without an index",
    fix="save the model again, with its index",
)
TENSOR_TWICE = Code(
    "tensor-twice",
    ERROR,
    breaks="which of both is loaded depends on the order of the files",
    fix="remove the file that does not belong to the model",
)
WEIGHTS_TWICE = Code(
    "weights-twice",
    WARNING,
    breaks="engines load different weights: transformers model.safetensors, vLLM consolidated ones, else the index's",
    fix="remove the weights that do not belong to the model, or the index that names them",
)
WEIGHTS_PICKLED = Code(
    "weights-pickled",
    ERROR,
    breaks="pickles can run code when they are loaded; qgate reads safetensors only",
    fix="convert them once, if you trust them: AutoModelForCausalLM.from_pretrained(X).save_pretrained(Y)",
)
WEIGHTS_MISSING = Code(
    "weights-missing",
    ERROR,
    breaks="there is nothing to load",
    fix="name the directory that holds the *.safetensors",
)

CODES = (
    SHARD_MISSING,
    SHARD_TRUNCATED,
    SHARD_UNREADABLE,
    INDEX_UNREADABLE,
    INDEX_MISMATCH,
    INDEX_MISSING,
    TENSOR_TWICE,
    WEIGHTS_TWICE,
    WEIGHTS_PICKLED,
    WEIGHTS_MISSING,
)
CONSOLIDATED = re.compile(r"consolidated.*\.safetensors")
"""Mistral's own form of a model, which vLLM prefers to the other one, with params.json if there is one for its config;
transformers never looks at it. Vendors publish both forms of one model."""
BY_NAME = {code.name: code for code in CODES}


def check(facts: Facts) -> Iterator[Finding]:
    """One finding per kind of fault, with every file that has it."""
    for name, code in BY_NAME.items():
        faults = [fault for fault in facts.shard_faults if fault.code == name]
        if faults:
            yield code.at([fault.place for fault in faults], faults[0].detail)
    consolidated = sorted(name for name in facts.files if CONSOLIDATED.fullmatch(name))
    mine, theirs = _quantization(facts.config), _quantization({"quantization_config": _of_mistral(facts)})
    if consolidated and None not in {mine, theirs} and mine != theirs:
        detail = f"vLLM takes them for the model: {theirs} by params.json, {mine} by the config.json that was looked at"
        yield WEIGHTS_TWICE.at(consolidated, detail)


def _quantization(config: Mapping[str, Any]) -> str | None:
    """In words; None where its method is not known here."""
    if quantization_of(config) is None:
        return "unquantized"
    widths = (
        {scheme.bits for _, scheme in promised.rules if scheme} if (promised := promise(config)) is not None else None
    )
    return " and ".join(f"{bits} bits" for bits in sorted(widths)) if widths else None


def _of_mistral(facts: Facts) -> Mapping[str, Any]:
    """What params.json says in Mistral's words, as vLLM puts it (transformers_utils.configs.mistral)."""
    said = facts.mistral.get("quantization")
    if not isinstance(said, Mapping):
        return {}
    if said.get("qformat_weight") == "fp8_e4m3":
        return {"quant_method": "fp8"}
    return {**said, "quant_method": str(said.get("quant_method")).lower().replace("_", "-")}
