"""Why a vLLM server failed: its log in, one line and the fix out, or nothing where the cause is not known. Pure.

The texts are those of vLLM 0.26 and 0.32, PyTorch, safetensors and argparse. The order matters: what is asked first is
the root, what comes later may only follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from qgate.io.server import Cause

_PREFIX = r"^(?:\(.*?\) )?(?:(?:ERROR|CRITICAL) [\d-]+ [\d:]+ \[\S+\] )?"
_EXCEPTION = re.compile(_PREFIX + r"((?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)): (.+)$", re.MULTILINE)
_FOLLOWING = ("Engine core initialization failed", "EngineCore encountered an issue", "WorkerProc initialization")

_Rule = tuple[str, Callable[[re.Match[str]], Cause]]


def _memory(found: re.Match[str]) -> Cause:
    wanted, device, total, free = found.groups()
    return Cause(
        f"CUDA ran out of memory: {wanted} more was needed, {free} of {total} was free on GPU {device}",
        "free the GPU (nvidia-smi shows who holds it), or lower gpu_memory_utilization, kv_cache_memory_bytes, "
        "max_num_seqs or score_memory_bytes in engine.options; a larger model needs tensor_parallel_size",
    )


def _driver_memory(found: re.Match[str]) -> Cause:
    return Cause(
        f"the GPU's memory ran out outside PyTorch's allocator: {found[1]}",
        "free the GPU (nvidia-smi shows who holds it), or lower gpu_memory_utilization, kv_cache_memory_bytes or "
        "max_num_seqs in engine.options: the driver, CUDA graphs and workspaces need room beside them",
    )


def _no_kernel(found: re.Match[str]) -> Cause:
    """With the first reasons, one for each kernel that was tried."""
    reasons = [reason.strip() for reason in _REASON.findall(found[2])]
    why = f": {'; '.join(reasons[:3])}" if reasons else ""
    return Cause(
        f"the server has no kernel for this quantization here ({found[1]} layer){why}",
        "another scheme or group size, a smaller tensor_parallel_size, another GPU, or a server that has the kernel",
    )


def _startup_memory(found: re.Match[str]) -> Cause:
    device, free, total, share, wanted = found.groups()
    return Cause(
        f"CUDA memory: {wanted} GiB was needed (gpu_memory_utilization {share} of {total} GiB), {free} GiB was free on "
        f"{device}",
        "lower engine.options.gpu_memory_utilization, or give kv_cache_memory_bytes where servers share a GPU; "
        "nvidia-smi shows who holds the memory",
    )


def _kv_memory(found: re.Match[str]) -> Cause:
    length, wanted, free = found.groups()
    return Cause(
        f"the KV cache is too small: one request of {length} tokens needs {wanted} GiB, {free} GiB was free for it",
        "raise engine.options.gpu_memory_utilization or kv_cache_memory_bytes, or use shorter prompts and answers",
    )


def _plain(summary: str, advice: str, *, port_taken: bool = False) -> Callable[[re.Match[str]], Cause]:
    """A cause whose summary takes the match's groups as {0}, {1}, ..."""
    return lambda found: Cause(summary.format(*found.groups()), advice, port_taken)


_REASON = re.compile(r"(\w+Kernel\w* (?:cannot implement due to: |requires capability )[^\n]+)")
_OTHER_CHECKPOINT = "check the checkpoint's files (sha256), and that quantizer and server agree on the format"
_RULES: tuple[_Rule, ...] = (
    (
        r"(?:\[Errno 98\]|[Aa]ddress already in use)",
        _plain("the port is taken", "leave engine.options.port out: a free one is found", port_taken=True),
    ),
    (
        r"CUDA out of memory\. Tried to allocate ([\d.]+ \wiB)\. GPU (\d+) has a total capacity of ([\d.]+ \wiB) "
        r"of which ([\d.]+ \wiB) is free",
        _memory,
    ),
    (
        r"Free memory on device (\S+) \(([\d.]+)/([\d.]+) GiB\) on startup is less than desired GPU memory utilization "
        r"\(([\d.]+), ([\d.]+) GiB\)",
        _startup_memory,
    ),
    (r"(CUDA error: out of memory|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation)", _driver_memory),
    (r"(CUDA out of memory occurred when warming up \w+ with \d+ dummy requests)", _driver_memory),
    (r"max seq len \((\d+)\), \(([\d.]+) GiB KV cache is needed.*?memory \((-?[\d.]+) GiB\)", _kv_memory),
    (
        r"No available memory for the cache blocks",
        _plain(
            "no memory is left for the KV cache after the weights",
            "raise engine.options.gpu_memory_utilization, or free the GPU (nvidia-smi shows who holds it)",
        ),
    ),
    (
        r"Error in memory profiling\. Initial free memory ([\d.]+) GiB, current free memory ([\d.]+) GiB",
        _plain(
            "a neighbour freed GPU memory while the server measured it ({0} GiB free, then {1} GiB)",
            "give engine.options.kv_cache_memory_bytes: the server then measures nothing",
        ),
    ),
    (
        r"No module named '([\w.]+)'",
        _plain(
            "the environment lacks the Python module {0}", "qgate env build NAME, or name another env for the engine"
        ),
    ),
    (
        r"error: (unrecognized arguments: .+|argument .+)",
        _plain("the server does not take its arguments: {0}", "check engine.options.args against this version of vLLM"),
    ),
    (
        r"User-specified max_model_len \((\d+)\) is greater than the derived max_model_len \((?:\w+=)?(\d+)",
        _plain(
            "the run needs {0} tokens of context, the model has {1}",
            "use shorter items (evalsets.where) or a smaller max_tokens",
        ),
    ),
    (r"Failed to find a kernel that can implement the (.+?) linear layer\.((?:.*\n?){0,12})", _no_kernel),
    (
        r"(Selected backend \S+ is not valid for this configuration[^\n]*|VLLM batch_invariant mode is not supported[^\n]*)",
        _plain(
            "the attention that was asked for does not work here: {0}",
            "leave the backend out, or set engine.determinism: fast",
        ),
    ),
    (
        r"([Qq]uantization (?:method|scheme) .*not supported[^\n]*"
        r"|Unknown quantization method: \S+|not supported for the current GPU[^\n]*)",
        _plain(
            "the server has no kernel for this quantization here: {0}",
            "another scheme or group size, another GPU, or a server build that has the kernel",
        ),
    ),
    (
        r"There is no module or parameter named '([^']+)'",
        _plain("the checkpoint holds a tensor that the model does not have: {0}", _OTHER_CHECKPOINT),
    ),
    (
        r"Following weights were not initialized from checkpoint: (\{[^}]{1,400})",
        _plain("the checkpoint lacks tensors: {0}}}", _OTHER_CHECKPOINT),
    ),
    (
        r"Attempted to load weight \((.+)\) into parameter \((.+)\)",
        _plain("a tensor has the wrong shape: {0} where {1} is wanted", _OTHER_CHECKPOINT),
    ),
    (
        r"SafetensorError: (.+)",
        _plain("a weight file is damaged: {0}", "compare the files' sha256 with where they came from; fetch again"),
    ),
    (
        r"(start \(\d+\) \+ length \(\d+\) exceeds dimension size \(\d+\)|assert \w+(?:\.data)?\.shape == loaded_weight\.shape)",
        _plain("a tensor has the wrong shape ({0})", _OTHER_CHECKPOINT),
    ),
    (
        r"KeyError: '([\w.]+\.[\w.]+)'",
        _plain("the model has no place for the checkpoint's tensor {0}", _OTHER_CHECKPOINT),
    ),
    (
        r"(Cannot find any model weights with `[^`]+`|Invalid repository ID or local directory specified: ?'?[^\n]*"
        r"|does not appear to have a file named \S+|is not a local folder and is not a valid model identifier)",
        _plain("the checkpoint is incomplete: {0}", "a checkpoint needs config.json, *.safetensors and its tokenizer"),
    ),
    (
        r"(Failed to infer device type|No CUDA GPUs are available|NVIDIA driver on your system is too old[^\n]*)",
        _plain("the server found no device: {0}", "check nvidia-smi; without a GPU use the env `vllm-cpu`"),
    ),
    (
        r"CUDA error: ([^\n]+)",
        _plain(
            "a CUDA error: {0}",
            "set engine.options.env CUDA_LAUNCH_BLOCKING: '1' to find the kernel; try enforce_eager",
        ),
    ),
    (
        r"Model Runner V2 does not yet support:? ([^\n;]+)",
        _plain("the V2 model runner does not support {0}", "engine.options.model_runner: v1"),
    ),
)
_COMPILED = tuple((re.compile(pattern, re.MULTILINE), make) for pattern, make in _RULES)


def diagnose(logged: str) -> Cause | None:
    """The cause of a failure. Known causes first; else the first exception that is not a mere consequence."""
    for pattern, make in _COMPILED:
        if (found := pattern.search(logged)) is not None and _is_fatal(found, logged):
            return make(found)
    for name, said in _EXCEPTION.findall(logged):
        if not said.startswith(_FOLLOWING):
            return Cause(f"{name}: {said[:300]}", "look at the log: the traceback above this error says where it arose")
    return None


def _is_fatal(found: re.Match[str], logged: str) -> bool:
    """Whether the line is more than a warning or a note."""
    start = logged.rfind("\n", 0, found.start()) + 1
    line = logged[start : found.start()]
    return not re.search(r"\b(?:INFO|WARNING|DEBUG) \d\d-\d\d ", line)
