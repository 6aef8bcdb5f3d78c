"""What of each engine could be at fault, and what takes it away: options and facts in, levers out. Pure.

Registered under the entry points `qgate.isolation` by the engine's name; an engine without such an entry has no levers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pydantic import BaseModel

from qgate.engines import vllm_launch
from qgate.levers import Launched, Lever
from qgate.schemas.answers import EngineFacts

COLD_CACHE = Lever(
    name="cold_prefix_cache",
    change="a prefix cache that is cold for every request",
    separates="faults of cache hits from all others",
    request={"cache_salt": "{try}"},
)
BFLOAT16 = Lever(
    name="bfloat16",
    change="bfloat16 arithmetic",
    separates="an overflow of float16 from all else",
    dtype="bfloat16",
    widens=True,
)
SPECULATIVE = frozenset({"--speculative-config", "-sc", "--spec-method", "--spec-model", "--spec-tokens"})


class VllmIsolating:
    """Levers of the engine `vllm`."""

    def levers(self, options: BaseModel, facts: EngineFacts) -> tuple[Lever, ...]:
        """What this server has switched on, or chose by itself."""
        values = options.model_dump()
        caching = [COLD_CACHE] if values["prefix_caching"] else []
        return (*caching, *_of_options(values), *_of_kernels(values, facts))

    def launched(self, words: Sequence[str]) -> Launched:
        """A `vllm serve` command or its arguments. Raises ValueError."""
        return vllm_launch.launched(words)


def _of_options(values: dict[str, Any]) -> Iterator[Lever]:
    if not values["enforce_eager"]:
        yield _lever("eager", "no CUDA graphs and no compilation", "graphs from kernels", enforce_eager=True)
    if values["kv_cache_dtype"] != "auto":
        yield _lever("kv_cache_dtype", "a KV cache in the model's dtype", "a quantized cache", kv_cache_dtype="auto")
    if values["prefix_caching"]:
        yield _lever("prefix_caching", "no prefix cache", "faults of cache hits", prefix_caching=False)
    if (args := _without(values["args"], SPECULATIVE)) != tuple(values["args"]):
        yield _lever("speculative", "no speculative decoding", "the draft from the model", args=args)
    if values["tensor_parallel_size"] > 1 or values["pipeline_parallel_size"] > 1:
        yield _lever(
            "parallel", "one GPU", "splitting over GPUs", tensor_parallel_size=1, pipeline_parallel_size=1
        )  # fmt: skip


def _of_kernels(values: dict[str, Any], facts: EngineFacts) -> Iterator[Lever]:
    if facts.dtype == "float16":
        yield BFLOAT16
    kernels = [part.split(" for ")[0] for part in facts.kernels.get("linear", "").split(", ") if part]
    if kernels:
        variables = {**values["env"], "VLLM_DISABLED_KERNELS": ",".join(dict.fromkeys(kernels))}
        yield _lever("linear_kernel", f"linear layers not by {', '.join(kernels)}", "that kernel", env=variables)
    attention = facts.kernels.get("attention", "")
    if attention and facts.details.get("num_gpus"):
        other = "TRITON_ATTN" if "FLASH_ATTN" in attention else "FLASH_ATTN"
        args = (*_without(values["args"], frozenset({"--attention-backend"})), "--attention-backend", other)
        yield _lever("attention_kernel", f"attention by {other} instead of {attention}", "that kernel", args=args)
    runner = facts.kernels.get("model_runner")
    if runner in {"v1", "v2"} and values["model_runner"] == "auto" and facts.details.get("num_gpus"):
        other = "v1" if runner == "v2" else "v2"
        yield _lever(
            "model_runner", f"model runner {other} instead of {runner}", "runner and sampler", model_runner=other
        )


def _without(words: Sequence[str], names: frozenset[str]) -> tuple[str, ...]:
    """`words` without these arguments and their values."""
    kept: list[str] = []
    drop_value = False
    for word in words:
        if drop_value and not word.startswith("-"):
            drop_value = False
            continue
        drop_value = word in names
        if not drop_value and word.partition("=")[0] not in names:
            kept.append(word)
    return tuple(kept)


def _lever(name: str, change: str, separates: str, **options: Any) -> Lever:
    return Lever(name=name, change=change, separates=separates, options=options)


class TransformersIsolating:
    """Levers of the engine `transformers`."""

    def levers(self, options: BaseModel, facts: EngineFacts) -> tuple[Lever, ...]:
        """More precise arithmetic, where there is any."""
        if facts.dtype == "float32":
            return ()
        lever = _lever("float32", "float32 arithmetic", "rounding and overflow from all else", dtype="float32")
        return (replace(lever, widens=facts.dtype == "float16"),)

    def launched(self, words: Sequence[str]) -> Launched:
        """There are none. Raises ValueError."""
        return _no_launch("transformers", words)


class OpenAiIsolating:
    """Levers of a server that somebody else runs: what can be changed by a request."""

    def levers(self, options: BaseModel, facts: EngineFacts) -> tuple[Lever, ...]:
        """Its prefix cache, where it is vLLM."""
        return (COLD_CACHE,) if facts.version.startswith("vLLM") else ()

    def launched(self, words: Sequence[str]) -> Launched:
        """It runs already. Raises ValueError."""
        return _no_launch("openai", words)


class FakeIsolating:
    """Levers of the fake engine."""

    def levers(self, options: BaseModel, facts: EngineFacts) -> tuple[Lever, ...]:
        """Its other kernel, and its other arithmetic."""
        plain = options.model_dump()["kernel"] == "plain"
        kernel = _lever("linear_kernel", "the kernel `plain` instead of `fast`", "that kernel", kernel="plain")
        return (*(() if plain else (kernel,)), *((BFLOAT16,) if facts.dtype == "float16" else ()))

    def launched(self, words: Sequence[str]) -> Launched:
        """There are none. Raises ValueError."""
        return _no_launch("fake", words)


def _no_launch(engine: str, words: Sequence[str]) -> Launched:
    if words:
        raise ValueError(f"the engine {engine} takes no launch arguments; write `options`")
    return Launched(options={})


VLLM, TRANSFORMERS, OPENAI, FAKE = VllmIsolating(), TransformersIsolating(), OpenAiIsolating(), FakeIsolating()
