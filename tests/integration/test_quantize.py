"""The demo model through the real tools: a GGUF file unpacked, then rounded to nearest, and the result loaded back.

Uses the locked environment `llmcompressor`. About two minutes on two idle cores, most of it torch being imported.
"""

import json
from pathlib import Path

import pytest

from qgate.commands.progress import QuietWatcher
from qgate.errors import QuantizeError
from qgate.io import checkpoint, proc, tensors
from qgate.ports import Tool, load_quantizer
from qgate.rooms.precheck import VariantJob, precheck, quantized_layers, result_bytes
from qgate.rooms.quantize import quantize
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.variant import Calibration
from tests.integration.conftest import SHORT
from tests.tools import tool_or_skip

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
GENERAL = Path(__file__).parents[2] / "recipes" / "calibration" / "general.jsonl"
PROBE = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
tokenizer = AutoTokenizer.from_pretrained(sys.argv[1])
model = AutoModelForCausalLM.from_pretrained(sys.argv[1], dtype=torch.float32)
chat = [{"role": "user", "content": "Name 3 colours, e.g. in 2024."}]
prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
ids = tokenizer(prompt, add_special_tokens=False, return_tensors="pt").input_ids
with torch.no_grad():
    loss = model(ids, labels=ids).loss.item()
print(json.dumps({
    "prompt": prompt, "round_trip": tokenizer.decode(ids[0]) == prompt, "loss": loss,
    "eos": [tokenizer.eos_token, model.generation_config.eos_token_id, model.config.eos_token_id],
    "digits": tokenizer.tokenize("in  2024"), "block": tokenizer.decode(tokenizer("a \\u2581 b").input_ids),
}))
"""


def probed(folder: Path, tool: Tool) -> dict[str, object]:
    said = proc.output([str(tool.python), "-c", PROBE, str(folder)], timeout_s=300)
    assert said is not None
    value: dict[str, object] = json.loads(said.splitlines()[-1])
    return value


@pytest.fixture(scope="module")
def llmcompressor() -> Tool:
    return tool_or_skip("llmcompressor")


@pytest.fixture(scope="module")
def baseline(demo_model: Path) -> Checkpoint:
    return checkpoint.read(demo_model, "baseline")


@pytest.fixture(scope="module")
def short(short_model: Path) -> Checkpoint:
    """Every algorithm in seconds."""
    return checkpoint.read(short_model, "baseline")


def loss(of: Checkpoint, tool: Tool) -> float:
    """Mean negative log-likelihood of the probe's prompt."""
    return float(str(probed(of.path, tool)["loss"]))


def variant(baseline: Checkpoint, tool: Tool, calibration: Calibration | None = None, **options: object) -> VariantJob:
    quantizer = load_quantizer("llmcompressor")
    return VariantJob("variant", quantizer, quantizer.options(**options), calibration, baseline, "float16", tool)


def made(job: VariantJob, tmp_path: Path) -> Checkpoint:
    precheck(job, tmp_path)
    (tmp_path / "out").mkdir()
    return quantize(job, tmp_path / "out", tmp_path / "work", QuietWatcher())


def test_a_gguf_file_becomes_the_same_model(baseline: Checkpoint, llmcompressor: Tool) -> None:
    assert (baseline.num_parameters, baseline.precision) == (134_515_008, "FP16")
    said = probed(baseline.path, llmcompressor)
    assert said["eos"] == ["<|im_end|>", 2, 2]
    assert str(said["prompt"]).endswith("<|im_start|>assistant\n")
    assert said["round_trip"]
    assert said["digits"] == ["in", "ĠĠ", "2", "0", "2", "4"], "SmolLM2 splits digits before anything else"
    assert said["block"] == "a \u2581 b"


@pytest.mark.parametrize(
    ("options", "precision", "bits"),
    [
        ({"scheme": "W4A16", "algorithm": "rtn", "group_size": 32}, "W4A16", (6.8, 7.1)),
        ({"scheme": "W8A8", "algorithm": "rtn"}, "W8A8", (9.6, 9.8)),
        ({"scheme": "FP8_DYNAMIC", "algorithm": "rtn"}, "FP8", (9.6, 9.8)),
    ],
)
def test_rounding_to_nearest_makes_what_it_says(
    options: dict[str, object],
    precision: str,
    bits: tuple[float, float],
    baseline: Checkpoint,
    llmcompressor: Tool,
    tmp_path: Path,
) -> None:
    job = variant(baseline, llmcompressor, **options)
    result = made(job, tmp_path)
    assert result.precision == precision
    assert result.num_parameters == baseline.num_parameters
    assert bits[0] < result.bits_per_weight < bits[1]
    layers = quantized_layers(tensors.read(baseline.path), ["lm_head"])
    assert len(layers) == 30 * 7
    assert result_bytes(job, layers) == pytest.approx(result.weight_bytes, rel=0.05)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        assert result.files[name] == baseline.files[name], "carried over byte for byte"
    assert result.making is not None
    assert result.making.peak_memory_bytes > baseline.weight_bytes
    assert {"torch", "llmcompressor", "compressed-tensors"} <= result.making.packages.keys()


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        ({"scheme": "W4A16", "algorithm": "gptq", "group_size": 32}, 1),
        ({"scheme": "W4A16_ASYM", "algorithm": "awq", "group_size": 32, "n_grid": 4}, 1),
        ({"scheme": "W8A8", "algorithm": "smoothquant_gptq"}, 2),
    ],
)
def test_calibrated_algorithms_read_their_texts_and_load_back_close_to_the_baseline(
    options: dict[str, object], passes: int, short: Checkpoint, llmcompressor: Tool, tmp_path: Path
) -> None:
    texts = Calibration(file=GENERAL, num_samples=4, sequence_length=64)
    result = made(variant(short, llmcompressor, texts, **options), tmp_path)
    assert result.making is not None
    assert result.making.calibration["num_samples"] == 4
    assert 8 <= result.making.calibration["num_tokens"] <= 256
    progress = json.loads((tmp_path / "work" / "progress.json").read_text())
    assert progress["done"] == progress["total"] == SHORT * passes
    assert loss(result, llmcompressor) == pytest.approx(loss(short, llmcompressor), abs=0.5)


def test_a_model_that_does_not_load_is_one_clear_message(
    baseline: Checkpoint, llmcompressor: Tool, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in baseline.path.iterdir():
        (broken / file.name).symlink_to(file)
    config = json.loads((broken / "config.json").read_text())
    (broken / "config.json").unlink()
    (broken / "config.json").write_text(json.dumps(config | {"model_type": "not-a-model"}))
    job = variant(checkpoint.read(broken, "baseline"), llmcompressor, scheme="W8A8", algorithm="rtn")
    (tmp_path / "out").mkdir()
    with pytest.raises(QuantizeError, match="cannot load") as caught:
        quantize(job, tmp_path / "out", tmp_path / "work", QuietWatcher())
    assert caught.value.advice
