"""Options of the vLLM engine, and the server's command and variables made of them. Pure.

Nothing that changes the numbers is left to a default that a checkpoint or the caller's shell could set: dtype, seed,
sampling defaults, length and logprobs are given, and the caller's VLLM_* variables are not passed on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, Self

from pydantic import Field, model_validator

from qgate.ports import ServeJob
from qgate.schemas.base import Frozen
from qgate.sizing.cache import text_config

ONE_SERVER, SEVERAL_SERVERS = "vllm.entrypoints.openai.api_server", "vllm.entrypoints.cli.main"
"""Modules: the first ignores --api-server-count."""
MAX_LOGPROBS = 20
BERTH_FREE = 0.9
"""Share of a berth that must be free once the server's process has its CUDA context."""
MOST_API_SERVERS, REQUESTS_EACH, CORES_EACH = 4, 64, 4
"""One reads requests and writes tokens too slowly for a small model's engine, from some 30,000 tokens a second on (measured
on one H200, 512 requests in flight: 0.8 of what the engine does without HTTP; with four, all of it)."""
SPARE_TOKENS = 8
"""Beyond the longest prompt and answer: scoring a full answer generates one token more."""
OWN_ARGS = frozenset(
    {
        "model", "host", "port", "uds", "api-key", "served-model-name", "dtype", "seed", "generation-config",
        "max-model-len", "max-logprobs", "max-num-seqs", "max-num-batched-tokens", "tensor-parallel-size",
        "pipeline-parallel-size", "gpu-memory-utilization", "kv-cache-memory-bytes", "kv-cache-dtype",
        "enforce-eager", "enable-prefix-caching", "no-enable-prefix-caching", "api-server-count",
    }
)  # fmt: skip
PASSED_ON = frozenset(
    {
        "VLLM_CACHE_ROOT", "VLLM_CONFIG_ROOT", "VLLM_ASSETS_CACHE", "VLLM_RPC_BASE_PATH", "VLLM_NO_USAGE_STATS",
        "VLLM_DO_NOT_TRACK",
    }
)  # fmt: skip
"""The caller's own VLLM_* variables that say where things lie, and change no number."""
SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)


class VllmOptions(Frozen):
    """How the vLLM server is started. Everything here is part of the content key of the answers."""

    tensor_parallel_size: int = Field(default=1, ge=1, description="GPUs that share each layer")
    pipeline_parallel_size: int = Field(default=1, ge=1, description="GPUs that share the layers")
    gpu_memory_utilization: float | None = Field(
        default=None, gt=0, le=1,
        description="Share of the GPU's memory that this server may take; default 0.9, or 0.05 beside "
        "`kv_cache_memory_bytes`, where it is only what must be free at the start; with `parallel: auto` the ledger's",
    )  # fmt: skip
    kv_cache_memory_bytes: int | None = Field(
        default=None,
        ge=1 << 20,
        description="Size of the KV cache; given, the server profiles nothing and neighbours do not disturb it; with "
        "`parallel: auto` what the load needs",
    )
    max_num_seqs: int | None = Field(default=None, ge=1, description="Sequences in one batch; default: vLLM's own")
    max_num_batched_tokens: int | None = Field(
        default=None, ge=1, description="Tokens in one step; default: vLLM's, or fewer where scoring needs the memory"
    )
    enforce_eager: bool = Field(
        default=False, description="No CUDA graphs: starts faster, decodes several times slower"
    )
    kv_cache_dtype: str = Field(default="auto", description="e.g. fp8; auto is the model's dtype")
    prefix_caching: bool = Field(default=True, description="As in production; each arm starts with a cold cache")
    model_runner: Literal["auto", "v1", "v2"] = Field(
        default="auto",
        description="Pins vLLM's model runner (seeded text differs between them); auto: vLLM's choice for the model",
    )
    count_nans: bool = Field(default=False, description="Count requests with NaN logits (costs speed)")
    score_memory_bytes: int | None = Field(
        default=None,
        ge=64 << 20,
        description="Memory beside the server's own that scoring may take; default: a tenth of the GPU",
    )
    cuda_visible_devices: str | None = Field(default=None, description="GPUs, e.g. `0` or `0,1`; default: all")
    port: int | None = Field(default=None, ge=1024, le=65_535, description="Port of the server; default: a free one")
    api_servers: int | None = Field(
        default=None, ge=1,
        description="Processes that read requests and write answers; default: one for each 64 requests in flight, at most 4 "
        "and at most one for four CPU cores, which servers side by side share. vLLM's CPU build has one",
    )  # fmt: skip
    start_timeout_s: float = Field(default=1800.0, gt=0, description="Longest wait for the server to become ready")
    args: tuple[str, ...] = Field(default=(), description="Further arguments of the server, passed on as they are")
    env: dict[str, str] = Field(
        default_factory=dict, description="Variables of the server, e.g. {VLLM_USE_FLASHINFER_SAMPLER: '0'}; no secrets"
    )

    @model_validator(mode="after")
    def _args_are_ours_to_pass(self) -> Self:
        for word in self.args:
            name = word.removeprefix("--").partition("=")[0].replace("_", "-")
            if word.startswith("--") and name in OWN_ARGS:
                raise ValueError(f"`args` may not hold {word}: qgate sets it (see the engine's own options)")
        for name in self.env:
            if SECRET.search(name):
                raise ValueError(f"`env` may not hold {name}: a recipe is stored with its run; export it instead")
        return self


def command(job: ServeJob, options: VllmOptions, port: int, lengths: tuple[int | None, int | None]) -> list[str]:
    """The server's command. `lengths`: --max-model-len and --max-num-batched-tokens, None for vLLM's own."""
    max_model_len, step_tokens = lengths
    words: list[object] = [
        job.tool.python, "-m", *_entry(job, options), "--served-model-name", job.name,
        "--host", "127.0.0.1", "--port", port, "--dtype", job.dtype, "--seed", 0, "--generation-config", "vllm",
        "--max-logprobs", MAX_LOGPROBS,
        "--tensor-parallel-size", options.tensor_parallel_size,
        "--pipeline-parallel-size", options.pipeline_parallel_size,
        "--gpu-memory-utilization", _memory_share(job, options), "--kv-cache-dtype", options.kv_cache_dtype,
        "--enable-prefix-caching" if options.prefix_caching else "--no-enable-prefix-caching",
        "--no-enable-log-requests", "--disable-uvicorn-access-log",
    ]  # fmt: skip
    optional: dict[str, object] = {
        "--kv-cache-memory-bytes": options.kv_cache_memory_bytes or (job.berth.kv_bytes if job.berth else None),
        "--max-num-seqs": options.max_num_seqs,
        "--max-model-len": max_model_len,
        "--max-num-batched-tokens": step_tokens,
    }
    words += [word for name, value in optional.items() if value is not None for word in (name, value)]
    words += ["--enforce-eager"] if options.enforce_eager else []
    return [str(word) for word in (*words, *options.args)]


def with_api_servers(options: VllmOptions, concurrency: int, *, num_cores: int, cpu: bool) -> VllmOptions:
    """`options` with the number of API servers settled, for so many requests in flight and this server's cores."""
    wanted = 1 if cpu else max(1, min(MOST_API_SERVERS, concurrency // REQUESTS_EACH, num_cores // CORES_EACH))
    return options if options.api_servers else options.model_copy(update={"api_servers": wanted})


def _entry(job: ServeJob, options: VllmOptions) -> tuple[object, ...]:
    """The module to run, and the checkpoint in its words."""
    if options.api_servers in {None, 1}:
        return ONE_SERVER, "--model", job.checkpoint
    return SEVERAL_SERVERS, "serve", job.checkpoint, "--api-server-count", options.api_servers


def _memory_share(job: ServeJob, options: VllmOptions) -> float:
    """vLLM refuses to start unless this share is free, also where it takes the KV cache's size from us.

    In a berth that is most of the berth (the process has its context by then): where somebody else has taken of it
    meanwhile, the server says so at once.
    """
    if job.berth is not None:
        return max(0.001, math.floor(job.berth.share * BERTH_FREE * 1000) / 1000)
    if options.gpu_memory_utilization is not None:
        return options.gpu_memory_utilization
    return 0.9 if options.kv_cache_memory_bytes is None else 0.05


def variables(job: ServeJob, options: VllmOptions, *, cpu: bool) -> dict[str, str]:
    """The variables that qgate sets for the server; the recipe's own come last."""
    found = {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "INFO"}
    if job.repeatable:
        found["VLLM_BATCH_INVARIANT"] = "1"
    if options.model_runner != "auto":
        found["VLLM_USE_V2_MODEL_RUNNER"] = "1" if options.model_runner == "v2" else "0"
    if options.count_nans:
        found["VLLM_COMPUTE_NANS_IN_LOGITS"] = "1"
    if options.cuda_visible_devices is not None:
        found["CUDA_VISIBLE_DEVICES"] = options.cuda_visible_devices
    if job.berth is not None:  # numbered as nvidia-smi does, which told what is free
        found |= {"CUDA_VISIBLE_DEVICES": visible(job, options) or "", "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
    if cpu and options.kv_cache_memory_bytes is not None:
        found["VLLM_CPU_KVCACHE_SPACE"] = str(max(1, options.kv_cache_memory_bytes >> 30))
    return found | options.env


def visible(job: ServeJob, options: VllmOptions) -> str | None:
    """CUDA_VISIBLE_DEVICES of the server; None: the caller's own."""
    return options.cuda_visible_devices if job.berth is None else ",".join(map(str, job.berth.devices))


def not_passed_on(caller: Iterable[str], options: VllmOptions) -> tuple[str, ...]:
    """Variables of the caller that would change the server behind the recipe's back."""
    return tuple(
        sorted(
            name for name in caller if name.startswith("VLLM_") and name not in PASSED_ON and name not in options.env
        )
    )


def max_model_len(wanted: int | None, model_limit: int | None) -> int | None:
    """--max-model-len: what the run needs and a little more, never more than the model can; None: vLLM derives it."""
    if wanted is None:
        return None
    return wanted + SPARE_TOKENS if model_limit is None else min(wanted + SPARE_TOKENS, model_limit)


def model_limits(config: dict[str, object]) -> tuple[int | None, int | None]:
    """Longest context and vocabulary size, from config.json (of the text model, where it is nested)."""
    text = text_config(config)
    context, vocab = text.get("max_position_embeddings"), text.get("vocab_size")
    return (context if isinstance(context, int) else None, vocab if isinstance(vocab, int) else None)


def length_decides(config: dict[str, object]) -> bool:
    """Whether the longest context changes the numbers: LongRoPE takes its factors by it (as in Phi-3).

    vllm/model_executor/layers/rotary_embedding/phi3_long_rope_scaled_rope.py.
    """
    text = text_config(config)
    scalings = [text.get(name) for name in ("rope_scaling", "rope_parameters")]
    kinds = {str(found.get("rope_type", found.get("type"))) for found in scalings if isinstance(found, dict)}
    return not kinds.isdisjoint({"longrope", "su"})


def wanted_length(job: ServeJob, config: dict[str, object]) -> int | None:
    """The context that the run needs; None where the model's own must stand, because it changes the numbers."""
    return None if length_decides(config) else job.max_model_len


def checkpoint_config(checkpoint: Path) -> Path:
    """Where a checkpoint's config.json lies."""
    return checkpoint / "config.json"
