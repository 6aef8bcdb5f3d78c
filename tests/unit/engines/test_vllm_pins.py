"""What a recipe pins is what runs: a field, an argument or a variable that the server ignores is told."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from qgate.engines.vllm import PROBE
from qgate.engines.vllm_options import VllmOptions
from qgate.engines.vllm_pins import ignored, unknown_fields
from qgate.engines.wire import chat_body
from tests.unit.engines import jobs

CONFIG = (
    "(EngineCore pid=3208) INFO 11-29 15:53:15 [core.py:116] Initializing a V1 LLM engine (v0.26.0) with config: "
    "model='/m', revision=None, dtype=torch.float16, max_seq_len=2056, tensor_parallel_size=1, pipeline_parallel_size=1, "
    "decode_context_parallel_size=1, enforce_eager=False, kv_cache_dtype=auto, "
    "structured_outputs_config=StructuredOutputsConfig(backend='auto'), seed=0, enable_prefix_caching=True, "
    "compilation_config={'cudagraph_mode': <CUDAGraphMode.FULL_AND_PIECEWISE: (2, 1)>}\n"
    "(EngineCore pid=3208) INFO 11-29 15:53:16 [gpu_worker.py:378] Using V2 Model Runner\n"
    "(APIServer pid=1) INFO 11-29 15:52:46 [scheduler.py:252] Chunked prefill is enabled with max_num_batched_tokens=7168.\n"
)


def told(tmp_path: Path, logged: str = CONFIG, lengths: Any = (2056, 7168), **options: Any) -> tuple[str, ...]:
    made = VllmOptions(**options)
    return ignored(jobs.job(tmp_path, made), made, lengths, logged)


def test_a_server_that_took_everything_ignores_nothing(tmp_path: Path) -> None:
    assert told(tmp_path) == ()
    assert told(tmp_path, model_runner="v2") == ()
    assert told(tmp_path, lengths=(None, None)) == ()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"tensor_parallel_size": 2}, "tensor_parallel_size is 1, not 2"),
        ({"enforce_eager": True}, "enforce_eager is False, not True"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype is auto, not fp8"),
        ({"prefix_caching": False}, "enable_prefix_caching is True, not False"),
        ({"model_runner": "v1"}, "the model runner is v2, not v1"),
        ({"lengths": (4104, 7168)}, "max_seq_len is 2056, not 4104"),
        ({"lengths": (2056, 1024)}, "max_num_batched_tokens is 7168, not 1024"),
    ],
)
def test_what_it_took_otherwise_is_named(tmp_path: Path, options: dict[str, Any], fault: str) -> None:
    assert told(tmp_path, **options) == (fault,)


def test_a_name_that_the_server_makes_precise_is_the_same(tmp_path: Path) -> None:
    assert told(tmp_path, CONFIG.replace("kv_cache_dtype=auto", "kv_cache_dtype=fp8_e4m3"), kv_cache_dtype="fp8") == ()


def test_variables_that_it_does_not_know_are_named(tmp_path: Path) -> None:
    line = (
        "(APIServer pid=1) WARNING 11-29 15:52:44 [envs.py:2096] Unknown vLLM environment variable detected: VLLM_ATN\n"
    )
    assert told(tmp_path, CONFIG + line + line) == ("it does not know the variable VLLM_ATN",)


def test_what_is_not_logged_is_not_asked(tmp_path: Path) -> None:
    assert told(tmp_path, "INFO 11-29 15:53:15 [x.py:1] something else\n", model_runner="v2") == ()


def test_fields_are_looked_up_in_the_servers_own_schema() -> None:
    sent = chat_body(PROBE, "m", cache_salt="x")
    schema = {"components": {"schemas": {"ChatCompletionRequest": {"properties": {name: {} for name in sent}}}}}
    assert unknown_fields(schema, sent) == ()
    assert unknown_fields(schema, {**sent, "min_q": 1}) == ("min_q",)
    assert unknown_fields({}, sent) == ()
