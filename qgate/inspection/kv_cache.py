"""A KV cache that the config says is quantized: a scheme that engines take, and calibrated scales. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.layers import stored_modules
from qgate.inspection.scheme import Promise
from qgate.schemas.inspection import Finding

KV_SCALE_MISSING = Code(
    "kv-scale-missing",
    WARNING,
    breaks="vLLM takes 1.0 for these layers' FP8 KV cache",
    fix="calibrate the KV cache, or serve with --kv-cache-dtype auto",
)
KV_SCALE_UNCALIBRATED = Code(
    "kv-scale-uncalibrated",
    WARNING,
    breaks="scales of keys or values of exactly 1.0 everywhere are the placeholder, not a calibration",
    fix="calibrate the KV cache, or serve with --kv-cache-dtype auto",
)
KV_CACHE_SCHEME = Code(
    "kv-cache-scheme",
    WARNING,
    breaks="vLLM takes KV caches of 8-bit floats with a scale per tensor or head only",
    fix="quantize the KV cache to float8, or leave kv_cache_scheme out",
)

CODES = (KV_SCALE_MISSING, KV_SCALE_UNCALIBRATED, KV_CACHE_SCHEME)


def check(facts: Facts, promised: Promise | None) -> Iterator[Finding]:
    """Findings on the scales of keys and values, where the config has a `kv_cache_scheme`."""
    scheme = promised.kv_cache if promised is not None else None
    if scheme is None:
        return
    said = {key: scheme.get(key) for key in ("type", "num_bits", "strategy", "symmetric")}
    if (
        said["type"] != "float"
        or said["num_bits"] != 8
        or str(said["strategy"]) not in {"tensor", "attn_head"}
        or not said["symmetric"]
    ):
        yield KV_CACHE_SCHEME.at(
            "config.json: kv_cache_scheme", ", ".join(f"{key} {value}" for key, value in said.items())
        )
        return
    names = {
        module: _names(module) for module in stored_modules(facts.headers) if module.endswith((".k_proj", ".v_proj"))
    }
    missing = [options[0] for options in names.values() if not any(name in facts.headers for name in options)]
    if missing:
        yield KV_SCALE_MISSING.at(missing, f"{len(missing)} of {len(names)} are not stored")
        return
    placeholders: list[str] = []
    for kind in ("k_proj", "v_proj"):
        options = [each for module, each in names.items() if module.endswith(kind)]
        values = [facts.values[name] for each in options for name in each if name in facts.values]
        if values and all(each.minimum == each.maximum == 1.0 for each in values):
            placeholders += [each[0] for each in options]
    if placeholders:
        yield KV_SCALE_UNCALIBRATED.at(placeholders, "all are exactly 1.0")


def _names(module: str) -> tuple[str, ...]:
    """Where loaders look for the scale of `…k_proj` or `…v_proj` (vLLM's maybe_remap_kv_scale_name)."""
    attention, _, projection = module.rpartition(".")
    kind = projection[0]
    return (
        f"{attention}.{kind}_scale",
        f"{attention}.attn.{kind}_scale",
        f"{module}.{kind}_scale",
        f"{module}.output_scale",
        f"{attention}.kv_scale",
        f"{attention}.qkv_proj.{kind}_scale",
    )
