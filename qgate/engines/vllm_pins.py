"""What a recipe pins and what the server made of it in, whatever it ignored out. Pure.

A server that ignores a field of a request, an argument or a variable gives other numbers than the recipe names, and no
answer shows it. vLLM tells of fields only at its debug level, so they are looked up in its own /openapi.json.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from qgate.engines.vllm_options import VllmOptions
from qgate.ports import ServeJob

CHAT_SCHEMA = "ChatCompletionRequest"
TORCH_DTYPES = {"float16": "torch.float16", "bfloat16": "torch.bfloat16"}
_CONFIG = re.compile(r"Initializing a V1 LLM engine \(\S+\) with config: (.*)")
_UNKNOWN_VARIABLE = re.compile(r"Unknown vLLM environment variable detected: (\w+)")
_STEP = re.compile(r"max_num_batched_tokens=(\d+)")


def unknown_fields(openapi: Mapping[str, Any], sent: Iterable[str]) -> tuple[str, ...]:
    """Fields of a chat request that this server's schema does not have; none where it has no such schema."""
    known = openapi.get("components", {}).get("schemas", {}).get(CHAT_SCHEMA, {}).get("properties")
    return tuple(sorted(set(sent) - set(known))) if known else ()


def ignored(
    job: ServeJob, options: VllmOptions, lengths: tuple[int | None, int | None], logged: str
) -> tuple[str, ...]:
    """Arguments and variables that the server did not take as given, by its log; what it does not log is not asked.

    `lengths`: --max-model-len and --max-num-batched-tokens as they were given, None where they were not.
    """
    return (*_differences(_pinned(job, options, lengths[0]), logged), *_others(options, lengths[1], logged))


def _pinned(job: ServeJob, options: VllmOptions, max_model_len: int | None) -> dict[str, str | None]:
    """Entries of the engine's config line, as they must be; None: not pinned, as where it is vLLM's own default."""
    return {
        "dtype": TORCH_DTYPES.get(job.dtype),
        "seed": "0",
        "max_seq_len": None if max_model_len is None else str(max_model_len),
        "tensor_parallel_size": str(options.tensor_parallel_size),
        "pipeline_parallel_size": str(options.pipeline_parallel_size),
        "enforce_eager": "True" if options.enforce_eager else None,
        "enable_prefix_caching": None if options.prefix_caching else "False",
        "kv_cache_dtype": None if options.kv_cache_dtype == "auto" else options.kv_cache_dtype,
    }


def _differences(pinned: Mapping[str, str | None], logged: str) -> Iterator[str]:
    line = _CONFIG.search(logged)
    for name, wanted in pinned.items():
        found = re.search(rf"(?<![\w.]){name}=([^,\s]+)", line[1]) if line else None
        if wanted is not None and found is not None and not _is(name, wanted, found[1]):
            yield f"{name} is {found[1]}, not {wanted}"


def _is(name: str, wanted: str, found: str) -> bool:
    """Whether it is what was wanted; vLLM may name the very format of `fp8`."""
    return found == wanted or (name == "kv_cache_dtype" and found.startswith(f"{wanted}_"))


def _others(options: VllmOptions, step_tokens: int | None, logged: str) -> Iterator[str]:
    unknown = sorted(set(_UNKNOWN_VARIABLE.findall(logged)))
    yield from (f"it does not know the variable {name}" for name in unknown)
    started = "Initializing a V1 LLM engine" in logged
    runner = "v2" if "Using V2 Model Runner" in logged else "v1"
    if started and options.model_runner not in {"auto", runner}:
        yield f"the model runner is {runner}, not {options.model_runner}"
    step = _STEP.search(logged)
    if step is not None and step_tokens is not None and int(step[1]) != step_tokens:
        yield f"max_num_batched_tokens is {step[1]}, not {step_tokens}"
