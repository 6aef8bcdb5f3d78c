"""How large a vLLM server will be, from its job, its checkpoint and a GPU; and how that compares with its own report.

Pure, but for reading the checkpoint's headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace

from qgate.engines import vllm_memory, vllm_options
from qgate.engines.vllm_options import VllmOptions
from qgate.errors import CheckpointError, StartError
from qgate.io import checkpoint, tensors
from qgate.ports import ServeJob
from qgate.sizing.cache import cache_shape, text_config
from qgate.sizing.ledger import Ledger, Serving, ledger
from qgate.sizing.model import Model, stored
from qgate.sizing.placement import Device
from qgate.sizing.reported import differences
from qgate.sizing.shapes import misshapen

MAY_BE_A_SHAPE = ("shape", "AssertionError", "RuntimeError")
"""In a cause that a tensor of the wrong shape can have."""


def as_gpu(device: Device | None) -> dict[str, str] | None:
    """A device in the words of nvidia-smi, which the memory bounds read."""
    if device is None:
        return None
    return {"name": device.name, "memory.total": f"{device.total_bytes >> 20} MiB"}


def only(options: VllmOptions) -> tuple[int, ...]:
    """The GPUs that the recipe pins. Raises CheckpointError where it does not name them by number."""
    words = [word.strip() for word in (options.cuda_visible_devices or "").split(",") if word.strip()]
    if not all(word.isdigit() for word in words):
        raise CheckpointError(
            f"cuda_visible_devices {options.cuda_visible_devices}: servers are placed on GPUs by number only",
            advice="name them as nvidia-smi numbers them, or give engine.parallel a number",
        )
    return tuple(map(int, words))


def serving(job: ServeJob, options: VllmOptions, model: Model, gpu: Mapping[str, str] | None) -> Serving:
    """How the server will be started, as far as its size goes. Graphs and kernels are those of a GPU."""
    vocab_size = int(text_config(model.config).get("vocab_size") or 0)
    budget = vllm_memory.budget_bytes(options.score_memory_bytes, gpu)
    chosen = options.max_num_batched_tokens or vllm_memory.step_tokens(vocab_size, budget, gpu)
    step = chosen or vllm_memory.default_step_tokens(gpu)
    most = vllm_memory.score_cost_bytes(step, vocab_size, step)
    return Serving(
        tensor_parallel=options.tensor_parallel_size,
        pipeline_parallel=options.pipeline_parallel_size,
        kv_dtype=options.kv_cache_dtype,
        step_tokens=step,
        max_num_seqs=options.max_num_seqs or vllm_memory.default_num_seqs(gpu),
        graphs=not options.enforce_eager,
        score_bytes=min(budget, most) if job.needs_scores else 0,
        kv_bytes=options.kv_cache_memory_bytes,
        only=only(options),
    )


def size(job: ServeJob, options: VllmOptions, model: Model, gpu: Mapping[str, str] | None) -> Ledger:
    """The ledger of a server on such a GPU; with a share of it that the recipe sets, the KV cache is what is left.

    Raises CheckpointError where config.json lacks a size.
    """
    config = dict(model.config)
    limit, _ = vllm_options.model_limits(config)
    context = vllm_options.max_model_len(vllm_options.wanted_length(job, config), limit) or limit or 0
    try:
        made = ledger(model, serving(job, options, model, gpu), job.lengths, context)
    except KeyError as error:
        raise CheckpointError(
            f"the memory of {job.name} cannot be told: {error.args[0]}",
            advice="give engine.parallel and kv_cache_memory_bytes, which need no ledger",
        ) from error
    total = vllm_memory.gpu_memory_bytes(gpu)
    if options.gpu_memory_utilization is None or options.kv_cache_memory_bytes is not None or total is None:
        return made
    rest = max(made.least_kv_cache, int(options.gpu_memory_utilization * total) - made.fixed)
    return replace(made, kv_cache=rest)


def stored_model(job: ServeJob) -> Model:
    """The job's checkpoint as it lies on the disk. Raises CheckpointError."""
    return stored(checkpoint.read_config(job.checkpoint), tensors.read(job.checkpoint))


def record(job: ServeJob, options: VllmOptions, gpu: Mapping[str, str] | None) -> Ledger | None:
    """The ledger of the job's checkpoint, for the facts; None where its headers or sizes cannot be read."""
    with suppress(CheckpointError):
        return size(job, options, stored_model(job), gpu)
    return None


def explained(error: StartError, job: ServeJob) -> StartError:
    """`error`, with the file that cannot be read, or the first tensor whose shape is not what config.json makes it.

    vLLM names neither; a shape is looked for only where it may be the cause.
    """
    first, _, rest = error.message.partition("\n")
    try:
        found = misshapen(checkpoint.read_config(job.checkpoint), tensors.read(job.checkpoint))
    except CheckpointError as broken:
        found = broken.message
    else:
        found = found if any(word in first for word in MAY_BE_A_SHAPE) else None
    if found is None:
        return error
    return StartError(f"{first}; {found}\n{rest}", advice=f"check the checkpoint's files; {error.advice}")


def notes(made: Ledger, job: ServeJob, options: VllmOptions, reported: Mapping[str, float]) -> tuple[str, ...]:
    """What the server reported otherwise than the ledger has it, where it is more than it may be."""
    config = checkpoint.read_config(job.checkpoint)
    shape = cache_shape(config, kv_dtype=options.kv_cache_dtype, tensor_parallel=options.tensor_parallel_size)
    whole = reported if options.pipeline_parallel_size == 1 else {}
    found = [str(entry) for entry in differences(made, shape, whole) if entry.is_large]
    return (*found, *made.notes)
