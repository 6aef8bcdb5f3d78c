"""The command that serves a checkpoint as it was judged."""

from pathlib import Path

from qgate.engines.vllm_options import VllmOptions, command, variables
from qgate.ports import ServeJob, Tool
from qgate.reports.serve_command import serve_command
from qgate.schemas.answers import EngineFacts
from qgate.schemas.statement import JudgedVariant


def judged(facts: EngineFacts | None) -> JudgedVariant:
    return JudgedVariant(precision="W8A8", digest="0" * 64, path="/m", bits_per_weight=8.0, engine=facts)


def on_vllm(options: VllmOptions, repeatable: bool = False) -> EngineFacts:
    """Facts with the command that the engine would really start."""
    job = ServeJob(
        checkpoint=Path("/store/model"), name="w8a8", dtype="float16", options=options, tool=Tool(Path("/python"), "x"),
        concurrency=16, request_timeout_s=1, stall_timeout_s=1, repeatable=repeatable, max_model_len=None,
        log=Path("/log"), work=Path("/work"),
    )  # fmt: skip
    argv = command(job, options, 8001, (4096, 2048))
    env = variables(job, options, cpu=False)
    return EngineFacts(engine="vllm", version="0.26.0", device="NVIDIA H200", argv=tuple(argv), env_vars=env)


def test_it_keeps_what_decides_an_answer_and_nothing_of_the_measuring() -> None:
    made = serve_command(judged(on_vllm(VllmOptions(kv_cache_memory_bytes=1 << 30, args=("--quantization", "fp8")))))
    assert made.line("/my model", "w8a8") == (
        "vllm serve '/my model' --served-model-name w8a8 --dtype float16 --seed 0 --generation-config vllm "
        "--tensor-parallel-size 1 --pipeline-parallel-size 1 --kv-cache-dtype auto --enable-prefix-caching "
        "--max-num-batched-tokens 2048 --quantization fp8"
    )
    assert made.environment == {}
    assert made.notes == (
        "judged on vLLM 0.26.0, NVIDIA H200",
        "judged on prompts and answers of at most 4096 tokens together; what is longer was not judged",
    )


def test_several_api_servers_are_kept() -> None:
    one, several = (serve_command(judged(on_vllm(VllmOptions(api_servers=count)))).options for count in (1, 4))
    assert several == ("--api-server-count", "4", *one)


def test_variables_that_swap_kernels_are_kept() -> None:
    options = VllmOptions(model_runner="v1", cuda_visible_devices="1", env={"VLLM_USE_FLASHINFER_SAMPLER": "0"})
    assert serve_command(judged(on_vllm(options, repeatable=True))).environment == {
        "VLLM_BATCH_INVARIANT": "1",
        "VLLM_USE_V2_MODEL_RUNNER": "0",
        "VLLM_USE_FLASHINFER_SAMPLER": "0",
    }


def test_another_engine_judged_no_command() -> None:
    facts = EngineFacts(engine="transformers", version="5", device="CPU", dtype="bfloat16")
    made = serve_command(judged(facts))
    assert made.options == ("--dtype", "bfloat16", "--generation-config", "vllm")
    assert "never judged" in made.notes[0]
    assert serve_command(judged(None)).options[:2] == ("--dtype", "auto")
