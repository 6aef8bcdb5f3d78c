"""What a vLLM server says of itself: its log and its /metrics in, the facts that decide bytes out. Pure.

The texts are those of vLLM 0.26 and 0.32; what a version does not log is missing from the facts, never guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_LINEAR = re.compile(r"(?:Selected|Using) (\w+Kernel) for ([\w-]+)")
_ATTENTION = re.compile(
    r"Using (?:AttentionBackendEnum\.)?(\w+)(?: attention| MLA prefill)? backend(?: out of| with|\.)"
)
_MARLIN = re.compile(
    r"Using (\w*Marlin\w*|\w*Cutlass\w*|\w*DeepGemm\w*|\w*FlashInfer\w*) (?:kernel|backend) for ([\w -]+)"
)
_SAMPLER = re.compile(r"Using (FlashInfer|PyTorch-native implementation)[^\n]* for top-p & top-k sampling")
_MOE = re.compile(r"Using '?([\w.]+)'?(?: [\w-]+)* MoE backend")
_ATTENTION_VERSION = re.compile(r"Using FlashAttention version (\d+)")
_GRAPH_MODE = re.compile(r"'cudagraph_mode': <CUDAGraphMode\.(\w+)")
_PREFIX_CACHING = re.compile(r"[, ]enable_prefix_caching=(True|False)")
_PREFIX_CACHING_OFF = "Disabling prefix caching for"
_NUMBERS: Mapping[str, re.Pattern[str]] = {
    "kv_cache_tokens": re.compile(r"KV cache size: ([\d,]+) tokens"),
    "kv_cache_gib": re.compile(r"(?:Available KV cache memory: |reserved )(-?[\d.]+) GiB"),
    "model_gib": re.compile(r"Model loading took ([\d.]+) GiB"),
    "activations_gib": re.compile(r"([\d.]+) GiB for peak activation"),
    "non_torch_gib": re.compile(r"([\d.]+) GiB for non-torch memory"),
    "cuda_graphs_gib": re.compile(r"Graph capturing finished in \d+ secs, took (-?[\d.]+) GiB"),
    "max_concurrency": re.compile(r"Maximum concurrency for [\d,]+ tokens per request: ([\d.]+)x"),
    "init_engine_s": re.compile(r"init engine \(profile, create kv cache, warmup model\) took ([\d.]+) s"),
    "max_model_len": re.compile(r"Using max model len (\d+)"),
    "max_num_batched_tokens": re.compile(r"max_num_batched_tokens=(\d+)"),
}
_COUNTERS = {
    "preemptions": "vllm:num_preemptions_total",
    "prefix_cache_queries": "vllm:prefix_cache_queries_total",
    "prefix_cache_hits": "vllm:prefix_cache_hits_total",
    "corrupted_requests": "vllm:corrupted_requests_total",
    "prompt_tokens": "vllm:prompt_tokens_total",
    "generation_tokens": "vllm:generation_tokens_total",
    "queue_time_s": "vllm:request_queue_time_seconds_sum",
    "requests_queued": "vllm:request_queue_time_seconds_count",
    "kv_cache_usage": "vllm:kv_cache_usage_perc",
}


def kernels(logged: str) -> dict[str, str]:
    """What runs each kind of layer: `linear`, with the scheme; `attention`; `graphs`; `model_runner`; `sampler`."""
    found: dict[str, str] = {}
    linear = [f"{kernel} for {scheme}" for kernel, scheme in _LINEAR.findall(logged) + _MARLIN.findall(logged)]
    if linear:
        found["linear"] = ", ".join(dict.fromkeys(linear))
    if attention := _ATTENTION.findall(logged):
        found["attention"] = ", ".join(dict.fromkeys(attention))
    if moe := _MOE.findall(logged):
        found["moe"] = ", ".join(dict.fromkeys(moe))
    if version := _ATTENTION_VERSION.search(logged):
        found["flash_attention"] = version[1]
    if "enforce_eager=" in logged:
        captured = "Graph capturing finished" in logged
        found["graphs"] = "eager" if "enforce_eager=True" in logged else "CUDA graphs" if captured else "compiled"
        if captured and (mode := _GRAPH_MODE.search(logged)):
            found["graph_mode"] = mode[1]
    if "Initializing a V1 LLM engine" in logged:
        found["model_runner"] = "v2" if "Using V2 Model Runner" in logged else "v1"
    if sampler := _SAMPLER.search(logged):
        found["sampler"] = sampler[1]
    return found


def numbers(logged: str) -> dict[str, float]:
    """What the server reports at its start: sizes in GiB or tokens, times in seconds."""
    found = {name: pattern.search(logged) for name, pattern in _NUMBERS.items()}
    return {name: float(match[1].replace(",", "")) for name, match in found.items() if match}


def prefix_caching(logged: str) -> bool | None:
    """Whether the server reads prompts' beginnings from its cache; None where it does not tell."""
    found = _PREFIX_CACHING.search(logged)
    return None if found is None else found[1] == "True" and _PREFIX_CACHING_OFF not in logged


def metrics(body: str) -> dict[str, float]:
    """The counters of a /metrics body that qgate reads, summed over their labels."""
    found: dict[str, float] = {}
    wanted = {metric: name for name, metric in _COUNTERS.items()}
    for line in body.splitlines():
        if line.startswith("vllm:"):
            metric, _, rest = line.partition("{")
            name = wanted.get(metric if rest else line.split(" ", 1)[0])
            if name is not None:
                found[name] = found.get(name, 0.0) + float(line.rsplit(" ", 1)[1])
    return found


def tokens_done(body: str) -> float:
    """Tokens read and written so far: grows while the server works."""
    found = metrics(body)
    return found.get("prompt_tokens", 0.0) + found.get("generation_tokens", 0.0)


def notes(found: Mapping[str, Any]) -> tuple[str, ...]:
    """What a reader must know of these counters."""
    said = []
    if count := int(found.get("preemptions", 0)):
        said.append(
            f"{count} preemptions: the KV cache was full, requests were thrown out and computed again, which changes "
            "batches and so bytes; lower engine.concurrency or raise kv_cache_memory_bytes"
        )
    if count := int(found.get("corrupted_requests", 0)):
        said.append(f"{count} requests had NaN logits")
    return tuple(said)
