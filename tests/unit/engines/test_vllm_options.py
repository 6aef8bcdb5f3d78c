"""The vLLM server's command and variables: everything explicit, nothing of the caller's, no secrets, bounded memory."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from qgate.engines.vllm_options import (
    VllmOptions,
    command,
    max_model_len,
    model_limits,
    not_passed_on,
    variables,
    with_api_servers,
)
from tests.unit.engines import jobs


def words(folder: Path, options: VllmOptions, lengths: tuple[int | None, int | None] = (1032, None)) -> list[str]:
    return command(jobs.job(folder, options), options, 21_234, lengths)


def value_of(found: list[str], name: str) -> str:
    return found[found.index(name) + 1]


def test_no_default_of_the_checkpoint_decides(tmp_path: Path) -> None:
    found = words(tmp_path, VllmOptions())
    assert value_of(found, "--generation-config") == "vllm"
    assert value_of(found, "--dtype") == "float16"
    assert value_of(found, "--seed") == "0"
    assert value_of(found, "--served-model-name") == "awq"
    assert value_of(found, "--max-model-len") == "1032"
    assert value_of(found, "--max-logprobs") == "20"
    assert "--enforce-eager" not in found
    assert "--no-enable-log-requests" in found


def test_options_reach_the_command(tmp_path: Path) -> None:
    options = VllmOptions(
        tensor_parallel_size=2, kv_cache_memory_bytes=1 << 30, max_num_seqs=64, enforce_eager=True, prefix_caching=False,
        kv_cache_dtype="fp8", args=("--trust-remote-code",),
    )  # fmt: skip
    found = words(tmp_path, options, (None, 4096))
    assert value_of(found, "--tensor-parallel-size") == "2"
    assert value_of(found, "--kv-cache-memory-bytes") == str(1 << 30)
    assert value_of(found, "--max-num-batched-tokens") == "4096"
    assert value_of(found, "--kv-cache-dtype") == "fp8"
    assert "--no-enable-prefix-caching" in found
    assert "--max-model-len" not in found
    assert found[-1] == "--trust-remote-code"


def test_several_api_servers_need_another_command(tmp_path: Path) -> None:
    found = words(tmp_path, VllmOptions(api_servers=4))
    assert found[2:4] == ["vllm.entrypoints.cli.main", "serve"]
    assert found[4] == value_of(words(tmp_path, VllmOptions()), "--model")
    assert value_of(found, "--api-server-count") == "4"
    assert "--model" not in found


@pytest.mark.parametrize(
    ("concurrency", "num_cores", "number"), [(512, 32, 4), (512, 8, 2), (128, 32, 2), (63, 32, 1), (4096, 2, 1)]
)
def test_api_servers_are_as_many_as_the_load_needs_and_the_machine_has_cores_for(
    concurrency: int, num_cores: int, number: int
) -> None:
    def settled(options: VllmOptions, *, cpu: bool = False) -> int | None:
        return with_api_servers(options, concurrency, num_cores=num_cores, cpu=cpu).api_servers

    assert settled(VllmOptions()) == number
    assert settled(VllmOptions(), cpu=True) == 1
    assert settled(VllmOptions(api_servers=3)) == 3


def test_servers_that_share_a_gpu_do_not_ask_for_all_of_it(tmp_path: Path) -> None:
    def share(**options: float) -> str:
        return value_of(words(tmp_path, VllmOptions.model_validate(options)), "--gpu-memory-utilization")

    assert share() == "0.9"
    assert share(kv_cache_memory_bytes=1 << 30) == "0.05"
    assert share(kv_cache_memory_bytes=1 << 30, gpu_memory_utilization=0.4) == "0.4"


@pytest.mark.parametrize(
    "word", ["--api-key=x", "--port", "--max_model_len", "--generation-config", "--api-server-count"]
)
def test_args_may_not_take_what_is_ours(word: str) -> None:
    with pytest.raises(ValidationError, match="qgate sets it"):
        VllmOptions(args=(word,))


@pytest.mark.parametrize("name", ["HF_TOKEN", "VLLM_API_KEY", "MY_SECRET"])
def test_env_may_hold_no_secret(name: str) -> None:
    with pytest.raises(ValidationError, match="stored with its run"):
        VllmOptions(env={name: "x"})


def test_variables_say_what_was_asked_for(tmp_path: Path) -> None:
    plain = variables(jobs.job(tmp_path, VllmOptions()), VllmOptions(), cpu=False)
    assert plain == {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "INFO"}
    options = VllmOptions(
        model_runner="v1", count_nans=True, cuda_visible_devices="1", env={"VLLM_USE_FLASHINFER_SAMPLER": "0"}
    )
    found = variables(jobs.job(tmp_path, options, repeatable=True), options, cpu=False)
    assert found["VLLM_BATCH_INVARIANT"] == "1"
    assert found["VLLM_USE_V2_MODEL_RUNNER"] == "0"
    assert found["VLLM_COMPUTE_NANS_IN_LOGITS"] == "1"
    assert found["CUDA_VISIBLE_DEVICES"] == "1"
    assert found["VLLM_USE_FLASHINFER_SAMPLER"] == "0"


def test_the_cpu_build_takes_its_cache_size_from_a_variable(tmp_path: Path) -> None:
    options = VllmOptions(kv_cache_memory_bytes=3 << 30)
    found = variables(jobs.job(tmp_path, options), options, cpu=True)
    assert found["VLLM_CPU_KVCACHE_SPACE"] == "3"


def test_the_callers_vllm_variables_stay_behind() -> None:
    caller = ["PATH", "VLLM_USE_V1", "VLLM_CACHE_ROOT", "VLLM_ATTENTION_BACKEND"]
    assert not_passed_on(caller, VllmOptions()) == ("VLLM_ATTENTION_BACKEND", "VLLM_USE_V1")
    assert not_passed_on(caller, VllmOptions(env={"VLLM_USE_V1": "1"})) == ("VLLM_ATTENTION_BACKEND",)


@pytest.mark.parametrize(
    ("wanted", "limit", "length"), [(None, 8192, None), (1000, 8192, 1008), (8190, 8192, 8192), (1000, None, 1008)]
)
def test_length_is_what_the_run_needs_and_never_more_than_the_model_can(
    wanted: int | None, limit: int | None, length: int | None
) -> None:
    assert max_model_len(wanted, limit) == length


def test_a_bound_beyond_the_model_is_the_models_own_limit() -> None:
    assert max_model_len(9000, 8192) == 8192


def test_limits_are_read_from_nested_configs_too() -> None:
    assert model_limits({"max_position_embeddings": 8192, "vocab_size": 5}) == (8192, 5)
    assert model_limits({"text_config": {"max_position_embeddings": 99, "vocab_size": 7}}) == (99, 7)
    assert model_limits({}) == (None, None)
