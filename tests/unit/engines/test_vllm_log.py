"""Facts from the log and counters from /metrics, in the words of vLLM 0.26 (GPU) and 0.32 (CPU)."""

from __future__ import annotations

from qgate.engines import vllm_log

GPU = """\
(APIServer pid=1) INFO 11-29 14:16:58 [model.py:2152] Using max model len 2048
(EngineCore pid=2) INFO 11-29 14:17:05 [core.py:117] Initializing a V1 LLM engine (v0.26.0) with config: enforce_eager=False, x
(EngineCore pid=2) INFO 11-29 14:17:06 [gpu_worker.py:378] Using V2 Model Runner
(EngineCore pid=2) INFO 11-29 14:17:07 [__init__.py:605] Selected CutlassInt8ScaledMMLinearKernel for CompressedTensorsW8A8Int8
INFO 11-29 14:17:07 [cuda.py:466] Using FLASH_ATTN attention backend out of potential backends: x.
(EngineCore pid=2) INFO 11-29 14:17:08 [topk_topp_sampler.py:55] Using FlashInfer for top-p & top-k sampling.
(EngineCore pid=2) INFO 11-29 14:17:09 [model_runner.py:306] Model loading took 0.16 GiB and 1.234567 seconds
(EngineCore pid=2) INFO 11-29 14:17:19 [gpu_worker.py:561] Available KV cache memory: 120.5 GiB
(EngineCore pid=2) INFO 11-29 14:17:20 [kv_cache_utils.py:2177] GPU KV cache size: 5,616,144 tokens
(EngineCore pid=2) INFO 11-29 14:17:20 [kv_cache_utils.py:2179] Maximum concurrency for 2,048 tokens per request: 2742.26x
(EngineCore pid=2) INFO 11-29 14:17:30 [model_runner.py:748] Graph capturing finished in 5 secs, took 0.52 GiB
INFO 11-29 14:17:30 [core.py:341] init engine (profile, create kv cache, warmup model) took 31.40 s (x)
"""
CPU = """\
WARNING 11-29 14:20:15 [vllm.py:725] Model Runner V2 requires Triton; using the V1 model runner instead.
INFO 11-29 14:20:24 [core.py:133] Initializing a V1 LLM engine (v0.32.0) with config: enforce_eager=True, y
(Worker pid=5) INFO 11-29 14:20:33 [__init__.py:923] Using CPUWNA16LinearKernel for mixed-precision linear
INFO 11-29 14:20:33 [compressed_tensors_wNa16.py:138] Using CPUWNA16LinearKernel for CompressedTensorsWNA16
INFO 11-29 14:22:00 [kv.py:2327] CPU KV cache size: 46,592 tokens, Maximum concurrency for 2 tokens per request: 22.75x
"""
METRICS = """\
# HELP vllm:num_preemptions_total Cumulative number of preemption from the engine.
# TYPE vllm:num_preemptions_total counter
vllm:num_preemptions_total{engine="0",model_name="m"} 3.0
vllm:num_preemptions_total{engine="1",model_name="m"} 1.0
vllm:num_preemptions_created{engine="0",model_name="m"} 1.79e+09
vllm:generation_tokens_total{engine="0",model_name="m"} 298.0
vllm:prompt_tokens_total{engine="0",model_name="m"} 861.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:corrupted_requests_total{engine="0",model_name="m"} 2.0
process_cpu_seconds_total 12.0
"""


def test_kernels_of_a_gpu_server() -> None:
    assert vllm_log.kernels(GPU) == {
        "linear": "CutlassInt8ScaledMMLinearKernel for CompressedTensorsW8A8Int8",
        "attention": "FLASH_ATTN",
        "graphs": "CUDA graphs",
        "model_runner": "v2",
        "sampler": "FlashInfer",
    }


def test_kernels_of_a_cpu_server() -> None:
    assert vllm_log.kernels(CPU) == {
        "linear": "CPUWNA16LinearKernel for mixed-precision, CPUWNA16LinearKernel for CompressedTensorsWNA16",
        "graphs": "eager",
        "model_runner": "v1",
    }


def test_numbers_of_the_start() -> None:
    found = vllm_log.numbers(GPU)
    assert found == {
        "kv_cache_tokens": 5_616_144, "kv_cache_gib": 120.5, "model_gib": 0.16, "cuda_graphs_gib": 0.52,
        "max_concurrency": 2742.26, "init_engine_s": 31.4, "max_model_len": 2048,
    }  # fmt: skip
    assert vllm_log.numbers(CPU) == {"kv_cache_tokens": 46_592, "max_concurrency": 22.75}


def test_what_is_not_logged_is_missing() -> None:
    assert vllm_log.kernels("") == {}
    assert vllm_log.numbers("") == {}
    assert vllm_log.prefix_caching("") is None


def test_prefix_caching_is_what_the_server_made_of_it() -> None:
    config = (
        "INFO 11-29 15:53:15 [core.py:116] with config: seed=0, enable_prefix_caching=True, enable_chunked_prefill=True"
    )
    assert vllm_log.prefix_caching(config) is True
    assert vllm_log.prefix_caching(config.replace("caching=True", "caching=False")) is False
    off = "WARNING 11-29 15:53:15 [x.py:1] Disabling prefix caching for FLASHINFER/TRITON_MLA with batch invariance, as"
    assert vllm_log.prefix_caching(f"{config}\n{off}\n") is False


def test_kernels_of_other_layers_in_the_words_of_0_26() -> None:
    said = (
        "INFO 11-29 [cuda.py:422] Using AttentionBackendEnum.TRITON_ATTN backend.\n"
        "INFO 11-29 [flash_attn.py:776] Using FlashAttention version 3\n"
        "INFO 11-29 [unquantized.py:375] Using TritonExperts MoE backend\n"
        "INFO 11-29 [core.py:116] config: enforce_eager=False, 'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>\n"
        "INFO 11-29 [model_runner.py:747] Graph capturing finished in 7 secs, took 0.43 GiB\n"
    )
    found = vllm_log.kernels(said)
    assert found["attention"] == "TRITON_ATTN"
    assert found["flash_attention"] == "3"
    assert found["moe"] == "TritonExperts"
    assert found["graph_mode"] == "FULL_AND_PIECEWISE"


def test_counters_are_summed_over_engines_and_others_left_alone() -> None:
    assert vllm_log.metrics(METRICS) == {
        "preemptions": 4, "generation_tokens": 298, "prompt_tokens": 861, "kv_cache_usage": 0.25, "corrupted_requests": 2,
    }  # fmt: skip
    assert vllm_log.tokens_done(METRICS) == 1159


def test_counters_that_change_what_was_measured_are_noted() -> None:
    preempted, corrupted = vllm_log.notes(vllm_log.metrics(METRICS))
    assert preempted.startswith("4 preemptions")
    assert corrupted == "2 requests had NaN logits"
    assert vllm_log.notes({}) == ()
