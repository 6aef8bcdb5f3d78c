"""A vLLM command line as somebody ran it in, the engine's own options out. Pure.

`vllm serve MODEL --enforce-eager -tp 2` or `python -m vllm.entrypoints.openai.api_server --model MODEL ...`, with or
without variables in front. What qgate sets itself becomes an option; all else is passed on as it was.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from qgate.engines.vllm_options import SECRET
from qgate.levers import Launched

OPTIONS: dict[str, tuple[str, Any]] = {
    "tensor-parallel-size": ("tensor_parallel_size", int),
    "tp": ("tensor_parallel_size", int),
    "pipeline-parallel-size": ("pipeline_parallel_size", int),
    "pp": ("pipeline_parallel_size", int),
    "gpu-memory-utilization": ("gpu_memory_utilization", float),
    "kv-cache-memory-bytes": ("kv_cache_memory_bytes", int),
    "kv-cache-dtype": ("kv_cache_dtype", str),
    "max-num-seqs": ("max_num_seqs", int),
    "max-num-batched-tokens": ("max_num_batched_tokens", int),
    "api-server-count": ("api_servers", int),
    "asc": ("api_servers", int),
}
SWITCHES: dict[str, tuple[str, bool]] = {
    "enforce-eager": ("enforce_eager", True),
    "no-enforce-eager": ("enforce_eager", False),
    "enable-prefix-caching": ("prefix_caching", True),
    "no-enable-prefix-caching": ("prefix_caching", False),
}
LEFT_OUT = frozenset(
    {"host", "port", "uds", "api-key", "served-model-name", "seed", "root-path", "ssl-keyfile", "ssl-certfile",
     "max-logprobs", "hf-token", "download-dir", "uvicorn-log-level"}
)  # fmt: skip
"""With a value; says where the server listens or what it is called, or is qgate's own, or a secret."""
HEAD = frozenset(
    {"vllm", "serve", "-m", "vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server",
     "vllm.entrypoints.cli.main"}
)  # fmt: skip
_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SIZES = {"k": 1000, "m": 1000**2, "g": 1000**3, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def launched(words: Sequence[str]) -> Launched:
    """What the words come to. Raises ValueError where a value is missing or is no number."""
    said: dict[str, Any] = {}
    options: dict[str, Any] = {}
    further: list[str] = []
    variables: dict[str, str] = {}
    left_out: list[str] = []
    rest = list(words)
    while rest and ((match := _VARIABLE.fullmatch(rest[0])) or _is_head(rest[0])):
        if match and not SECRET.search(match[1]):
            variables[match[1]] = match[2]
        elif match:
            left_out.append(match[1])
        rest.pop(0)
    if rest and not rest[0].startswith("-"):
        said["model"] = rest.pop(0)
    while rest:
        word = rest.pop(0)
        name, has_value, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        if not word.startswith("-"):
            further.append(word)
        elif name in SWITCHES:
            options[SWITCHES[name][0]] = SWITCHES[name][1]
        elif name in OPTIONS or name in LEFT_OUT or name in {"model", "dtype", "max-model-len", "generation-config"}:
            value = value if has_value else _value(word, rest)
            _take(name, value, said, options, left_out)
        else:
            further.append(word)
    options |= {"args": tuple(further)} if further else {}
    options |= {"env": variables} if variables else {}
    return Launched(
        options=options,
        dtype=said.get("dtype"),
        max_model_len=said.get("max-model-len"),
        own_sampling_defaults=said.get("generation-config", "auto") != "vllm",
        model=said.get("model"),
        left_out=tuple(left_out),
    )


def _is_head(word: str) -> bool:
    return word in HEAD or re.fullmatch(r"(.*/)?python[\d.]*|(.*/)?vllm|env|exec|nohup", word) is not None


def _value(word: str, rest: list[str]) -> str:
    if not rest:
        raise ValueError(f"the launch argument {word} has no value")
    return rest.pop(0)


def _take(name: str, value: str, said: dict[str, Any], options: dict[str, Any], left_out: list[str]) -> None:
    if name in LEFT_OUT:
        left_out.append(f"--{name}")
    elif name in OPTIONS:
        option, kind = OPTIONS[name]
        options[option] = _number(name, value, kind)
    else:
        said[name] = _number(name, value, int) if name == "max-model-len" else value


def _number(name: str, value: str, kind: Any) -> Any:
    if kind is int and value[-1:] in _SIZES:
        return int(float(value[:-1]) * _SIZES[value[-1]])
    try:
        return kind(value)
    except ValueError:
        raise ValueError(f"the launch argument --{name} has the value {value!r}, which is no number") from None
