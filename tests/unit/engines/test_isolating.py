"""Launch arguments become options, and options and facts become levers."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from qgate.engines.openai import OpenAiOptions
from qgate.engines.transformers import Options as TransformersOptions
from qgate.engines.vllm_options import VllmOptions
from qgate.levers import Isolating, Launched, Lever, load_isolating
from qgate.ports import load_engine, plugin_names
from qgate.schemas.answers import EngineFacts


def isolating(name: str) -> Isolating:
    found = load_isolating(name)
    assert found is not None
    return found


def launched(text: str) -> Launched:
    return isolating("vllm").launched(shlex.split(text))


def levers(options: dict[str, Any], **facts: Any) -> dict[str, Lever]:
    known = EngineFacts(engine="vllm", version="0.32", device="H200", **{"dtype": "bfloat16", **facts})
    return {lever.name: lever for lever in isolating("vllm").levers(VllmOptions(**options), known)}


def test_every_engine_has_levers_and_a_stranger_has_none() -> None:
    assert set(plugin_names("isolation")) == set(plugin_names("engines"))
    assert load_isolating("stranger") is None


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("vllm serve ./m --enforce-eager -tp 2", {"enforce_eager": True, "tensor_parallel_size": 2}),
        ("--kv-cache-dtype=fp8 --no-enable-prefix-caching", {"kv_cache_dtype": "fp8", "prefix_caching": False}),
        ("--max-num-batched-tokens 8K --gpu_memory_utilization 0.5",
         {"max_num_batched_tokens": 8192, "gpu_memory_utilization": 0.5}),
        ("/opt/v/bin/python3.12 -m vllm.entrypoints.openai.api_server --model m --quantization awq --port 9",
         {"args": ("--quantization", "awq")}),
        ("python -m vllm.entrypoints.cli.main serve m --api-server-count=4", {"api_servers": 4}),
        ("VLLM_X=1 vllm serve m --trust-remote-code", {"env": {"VLLM_X": "1"}, "args": ("--trust-remote-code",)}),
        ("", {}),
    ],
)  # fmt: skip
def test_launch_arguments(text: str, options: dict[str, Any]) -> None:
    found = launched(text)
    assert found.options == options
    VllmOptions.model_validate(found.options)


def test_what_is_no_option_is_kept_beside() -> None:
    found = launched("HF_TOKEN=x vllm serve m --dtype half --max-model-len 4096 --generation-config vllm --api-key k")
    assert (found.model, found.dtype, found.max_model_len) == ("m", "half", 4096)
    assert not found.own_sampling_defaults
    assert found.left_out == ("HF_TOKEN", "--api-key")
    assert "k" not in repr(found.options)


@pytest.mark.parametrize("text", ["--tensor-parallel-size two", "--max-model-len x", "--kv-cache-dtype"])
def test_a_launch_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="launch argument"):
        launched(text)


@pytest.mark.parametrize("engine", ["transformers", "openai", "fake"])
def test_other_engines_take_none(engine: str) -> None:
    assert isolating(engine).launched([]).options == {}
    with pytest.raises(ValueError, match="takes no launch arguments"):
        isolating(engine).launched(["--x"])


def test_only_what_is_on_has_a_lever() -> None:
    assert set(levers({})) == {"cold_prefix_cache", "eager", "prefix_caching"}
    assert set(levers({"enforce_eager": True, "prefix_caching": False})) == set()
    everything = levers(
        {"tensor_parallel_size": 2, "kv_cache_dtype": "fp8", "args": ("--speculative-config", "{}", "--x", "1")},
        dtype="float16",
        kernels={"linear": "MarlinLinearKernel for W4A16, CutlassKernel for W8A8", "attention": "FLASH_ATTN",
                 "model_runner": "v2"},
        details={"num_gpus": 2},
    )  # fmt: skip
    assert set(everything) == {
        "cold_prefix_cache", "eager", "kv_cache_dtype", "prefix_caching", "speculative", "parallel", "bfloat16",
        "linear_kernel", "attention_kernel", "model_runner",
    }  # fmt: skip
    assert everything["speculative"].options == {"args": ("--x", "1")}
    assert everything["linear_kernel"].options["env"] == {"VLLM_DISABLED_KERNELS": "MarlinLinearKernel,CutlassKernel"}
    assert everything["attention_kernel"].options["args"][-2:] == ("--attention-backend", "TRITON_ATTN")
    assert everything["model_runner"].options == {"model_runner": "v1"}
    assert everything["bfloat16"].dtype == "bfloat16"
    assert not everything["cold_prefix_cache"].needs_start


def test_every_lever_is_options_that_the_engine_takes() -> None:
    for lever in levers(
        {"tensor_parallel_size": 2}, kernels={"linear": "A for B", "attention": "X"}, details={"num_gpus": 1}
    ).values():
        VllmOptions.model_validate({**VllmOptions(tensor_parallel_size=2).model_dump(), **lever.options})


def test_levers_of_the_other_engines() -> None:
    facts = EngineFacts(engine="x", version="vLLM 0.32", device="cpu", dtype="float16")
    url = OpenAiOptions(base_url="http://h")
    assert [each.name for each in isolating("openai").levers(url, facts)] == ["cold_prefix_cache"]
    assert isolating("openai").levers(url, facts.model_copy(update={"version": "unknown"})) == ()
    (lever,) = isolating("transformers").levers(TransformersOptions(), facts)
    assert lever.options == {"dtype": "float32"}
    assert lever.widens
    exact = facts.model_copy(update={"dtype": "float32"})
    assert isolating("transformers").levers(TransformersOptions(), exact) == ()
    fake = load_engine("fake").options
    assert [each.name for each in isolating("fake").levers(fake(), facts)] == ["linear_kernel", "bfloat16"]
    assert isolating("fake").levers(fake(kernel="plain"), exact) == ()
