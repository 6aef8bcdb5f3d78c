"""AutoAWQ, AutoGPTQ and GPTQModel for real, each in its locked environment, on a Llama of two layers (some seconds each).

Skipped where the environments are not built: `qgate env build autoawq autogptq gptqmodel`, or QGATE_TEST_ALL_ENVS=1.
Every workaround of a worker has a test here that fails on the day when the package does without it.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qgate.commands.progress import QuietWatcher
from qgate.engines.transformers import WORKERS
from qgate.errors import QuantizeError
from qgate.io import checkpoint, proc, tensors
from qgate.ports import Tool, load_quantizer
from qgate.rooms.precheck import VariantJob, precheck
from qgate.rooms.quantize import quantize
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.variant import Calibration

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
BASELINE = HERE.parent / "golden" / "checkpoints" / "baseline"
KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "autoawq": ("autoawq", {"q_group_size": 32}),
    "autogptq": ("autogptq", {"group_size": 32}),
    "autogptq-desc-act": ("autogptq", {"group_size": 32, "desc_act": True}),
    "gptqmodel-gptq": ("gptqmodel", {"method": "gptq", "group_size": 32}),
    "gptqmodel-awq": ("gptqmodel", {"method": "awq", "group_size": 32, "ignore": ["re:.*down_proj"]}),
}
ToolOf = Callable[[str], Tool]


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen lines of 64 bytes or more, which are as many tokens to this model."""
    written = (HERE.parents[1] / "recipes" / "calibration" / "written.txt").read_text(encoding="utf-8").splitlines()
    file = tmp_path_factory.mktemp("texts") / "texts.jsonl"
    file.write_text(
        "".join(json.dumps({"text": text}) + "\n" for text in [line for line in written if len(line) > 64][:16])
    )
    return file


@pytest.fixture(scope="module", params=KINDS)
def made(
    request: pytest.FixtureRequest, package_tool: ToolOf, texts: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Checkpoint]:
    package, options = KINDS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    return request.param, quantized(package, options, package_tool(package), texts, folder)


def quantized(
    package: str, options: dict[str, Any], tool: Tool, texts: Path, folder: Path, model: Path = BASELINE
) -> Checkpoint:
    quantizer = load_quantizer(package)
    calibration = Calibration(file=texts, num_samples=16, sequence_length=64)
    baseline = checkpoint.read(model, "baseline")
    job = VariantJob("variant", quantizer, quantizer.options(**options), calibration, baseline, "float16", tool)
    precheck(job, folder)
    (folder / "out").mkdir()
    return quantize(job, folder / "out", folder / "work", QuietWatcher())


def test_the_checkpoint_is_whole_and_named_as_readers_look_for_it(made: tuple[str, Checkpoint]) -> None:
    name, result = made
    expected = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}
    assert set(result.files) == expected
    stored = tensors.read(result.path)
    num_left = 2 if name == "gptqmodel-awq" else 0
    assert sum(tensor.endswith(".qweight") for tensor in stored) == 14 - num_left
    assert not [tensor for tensor in stored if tensor.endswith(".bias") or "lm_head" in tensor]
    assert {tensor.dtype for tensor in stored.values()} == {"F16", "I32"}
    assert result.precision == "W4A16"


def test_what_is_not_quantized_is_the_baseline_s(made: tuple[str, Checkpoint]) -> None:
    _, result = made
    before = checkpoint.read(BASELINE, "baseline")
    for file in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        assert result.files[file] == before.files[file], "carried over byte for byte"
    config, original = checkpoint.read_config(result.path), checkpoint.read_config(BASELINE)
    said = config.pop("quantization_config")
    assert config == original
    assert str(result.path.parents[1]) not in json.dumps(said), "no path of the machine that made it"
    assert result.num_parameters == before.num_parameters


def test_the_config_names_the_type_that_is_stored(package_tool: ToolOf, texts: Path, tmp_path: Path) -> None:
    model = shutil.copytree(BASELINE, tmp_path / "model")
    config = json.loads((model / "config.json").read_text())
    (model / "config.json").write_text(json.dumps(config | {"dtype": "bfloat16"}))
    found = quantized("autogptq", {"group_size": 32}, package_tool("autogptq"), texts, tmp_path, model)
    assert checkpoint.read_config(found.path)["dtype"] == "float16"


def test_how_it_was_made_is_on_record(made: tuple[str, Checkpoint]) -> None:
    name, result = made
    assert result.making is not None
    assert result.making.calibration["num_samples"] == 16
    assert result.making.calibration["num_tokens"] == 16 * 64
    notes = " ".join(result.making.details["notes"])
    assert "computed on " in notes
    assert ("archived" in notes) == name.startswith("auto")
    progress = json.loads((result.path.parent / "work" / "progress.json").read_text())
    assert progress == {"step": "saving", "done": 2, "total": 2}


def test_it_computes_nearly_what_the_baseline_does(
    made: tuple[str, Checkpoint], package_tool: ToolOf, tmp_path: Path
) -> None:
    _, result = made
    request = {"workers": str(WORKERS), "baseline": str(BASELINE), "checkpoint": str(result.path)}
    tool = package_tool("llmcompressor")
    said = proc.run_worker(tool.python, HERE / "logits_check.py", request, work=tmp_path, what="logits")
    assert 0.01 < said["departure"] < 1.0, "steep random weights; unrelated logits depart by 1.4"


def test_zero_points_that_format_v1_cannot_store_are_refused(package_tool: ToolOf, texts: Path, tmp_path: Path) -> None:
    positive = tmp_path / "positive"
    shifted = {"workers": str(WORKERS), "baseline": str(BASELINE), "output": str(positive)}
    script = HERE / "positive_weights.py"
    proc.run_worker(package_tool("llmcompressor").python, script, shifted, work=tmp_path / "w", what="weights")
    quantizer = load_quantizer("autogptq")
    job = VariantJob(
        "variant", quantizer, quantizer.options(group_size=32, sym=False), Calibration(file=texts, num_samples=4),
        checkpoint.read(positive, "baseline"), "float16", package_tool("autogptq"),
    )  # fmt: skip
    (tmp_path / "out").mkdir()
    with pytest.raises(QuantizeError, match="zero point of 0") as caught:
        quantize(job, tmp_path / "out", tmp_path / "work", QuietWatcher())
    assert "gptq_v2" in str(caught.value.advice)


def observed(check: str, tool: Tool, texts: Path, work: Path) -> dict[str, Any]:
    """What upstream_check.py finds; see there."""
    request = {
        "tool": check, "workers": str(WORKERS), "baseline": str(BASELINE), "texts": str(texts),
        "scratch": str(work / "scratch"),
    }  # fmt: skip
    return proc.run_worker(tool.python, HERE / "upstream_check.py", request, work=work, what=check)


def test_autoawq_still_aliases_the_weights_that_it_means_to_keep(
    package_tool: ToolOf, texts: Path, tmp_path: Path
) -> None:
    found = observed("autoawq", package_tool("autoawq"), texts, tmp_path)
    assert found["mended"] == 0, "the search leaves the weights as they were, bit for bit"
    assert found["aliased"] > 0.001, "else `state_dict_not_aliased` is not needed any more"
    assert found["few_texts"] == {"num_samples": 1, "num_tokens": len("One short text.")}


@pytest.fixture(scope="module")
def autogptq(package_tool: ToolOf, texts: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return observed("autogptq", package_tool("autogptq"), texts, tmp_path_factory.mktemp("autogptq"))


def test_autogptq_still_needs_each_of_its_workarounds(autogptq: dict[str, Any]) -> None:
    without, left = autogptq["without"], autogptq["left"]
    assert "CUDA" in without["device"], "else `cuda_not_needed` need not replace CUDA_0"
    assert "CUDA" in without["synchronize"], "else it need not replace torch.cuda.synchronize"
    assert "requires CUDA" in without["from_pretrained"], "else the model may be loaded by AutoGPTQ itself"
    assert left["file"] == "gptq_model-4bit-32g.safetensors", "else the file need not be renamed"
    assert left["head"], "else the tied output head need not be dropped"
    assert len(left["biases"]) == 14, "else no biases of zeros need be dropped"


def test_transformers_4_still_overlooks_rope_parameters(autogptq: dict[str, Any]) -> None:
    assert autogptq["rope_theta"] == {"original": 10_000, "view": 50_000}, "10,000: the view is needed"


def test_gptqmodel_still_needs_each_of_its_workarounds(package_tool: ToolOf, texts: Path, tmp_path: Path) -> None:
    tool = package_tool("gptqmodel")
    found = observed("gptqmodel", tool, texts, tmp_path / "rest")
    assert found["auto_dtype"] == "torch.bfloat16", "else it may choose its dtype on a CPU itself"
    assert found["paths"], "else its config names no path to be stripped"
    lengths = observed("awq-two-lengths", tool, texts, tmp_path / "lengths")
    assert lengths["scales"] == ["short"], (
        "all but the last text, which is the shortest, is read too: no `blocks` needed"
    )
    assert lengths["limits"] == [], "the inputs of clipping are divided by the scales once, as for one text alone"
    refused = observed("one-worker", tool, texts, tmp_path / "one")["refused"]
    assert "2 workers" in refused, "else GPTQMODEL_CPU_WORKERS need not be set"
    with pytest.raises(proc.ProcessError, match=r"only supports .*float16"):
        observed("awq-float32", tool, texts, tmp_path / "awq")  # else its AWQ could compute in float32 on a CPU
