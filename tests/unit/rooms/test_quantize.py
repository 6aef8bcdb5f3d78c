"""Prechecks, calibration texts and the quantize room, with a quantizer whose worker needs nothing but Python."""

import json
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from qgate.errors import CheckpointError, QuantizeError, StoreError
from qgate.io import checkpoint, envs
from qgate.ports import QuantizeJob, Tool, load_quantizer
from qgate.rooms import calibration
from qgate.rooms.precheck import VariantJob, precheck, quantized_layers, result_bytes
from qgate.rooms.quantize import quantize
from qgate.schemas.base import Frozen
from qgate.schemas.variant import Calibration
from tests.unit.tiny_checkpoint import PLAIN, Entries, write_checkpoint, write_safetensors

WORKER = """
import json, pathlib, shutil, sys
request = json.loads(pathlib.Path(sys.argv[1]).read_text())
if "fail" in request:
    pathlib.Path(sys.argv[2]).write_text(json.dumps({"error": request["fail"], "advice": "do this"}))
    sys.exit(1)
for file in pathlib.Path(request["model"]).iterdir():
    shutil.copy(file, request["output"])
config = pathlib.Path(request["output"]) / "config.json"
groups = {"g": {"weights": {"num_bits": request["bits"], "type": "int"}}}
said = json.loads(config.read_text()) | {
    "quantization_config": {"quant_method": "compressed-tensors", "config_groups": groups}}
config.write_text(json.dumps(said))
pathlib.Path(request["progress"]).write_text(json.dumps({"step": "done", "done": 3, "total": 4}))
pathlib.Path(sys.argv[2]).write_text(json.dumps({
    "packages": {"tool": "1"}, "wall_s": 1.5, "peak_memory_bytes": 10, "notes": ["odd"],
    "calibration": {"num_samples": request["num_texts"], "num_tokens": 9}}))
"""


class Options(Frozen):
    bits: int = 4
    group: int | None = 32
    ignore: tuple[str, ...] = ("lm_head",)
    calibrated: bool = True
    fail: str | None = None
    claimed: str = "W4A16"


@dataclass
class PlainQuantizer:
    """Satisfies the protocol; its options say what it answers."""

    worker: Path
    name: str = "plain"
    options: type[BaseModel] = Options
    lock: str = "plain"

    def precision(self, options: Any) -> str:
        return str(options.claimed)

    def needs_calibration(self, options: Any) -> bool:
        return bool(options.calibrated)

    def group_size(self, options: Any) -> int | None:
        return options.group

    def ignored(self, options: Any) -> tuple[str, ...]:
        return options.ignore

    def request(self, job: QuantizeJob) -> dict[str, Any]:
        options: Any = job.options
        texts = job.calibration_file
        asked = {"model": str(job.model), "output": str(job.output), "bits": options.bits}
        asked |= {"num_texts": len(texts.read_text().splitlines()) if texts else 0}
        asked |= {"progress": str(job.work / "progress.json")}
        return asked | ({"fail": options.fail} if options.fail else {})


@dataclass
class Watching:
    labels: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator["Watching"]:
        self.labels.append(label)
        yield self

    def advance(self, num: int = 1) -> None:
        pass

    def detail(self, text: str) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))


@pytest.fixture
def job(tmp_path: Path) -> VariantJob:
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    texts = tmp_path / "texts.jsonl"
    texts.write_text("".join(json.dumps({"text": f"text {number}"}) + "\n" for number in range(8)))
    return VariantJob(
        name="small",
        quantizer=PlainQuantizer(worker),
        options=Options(),
        calibration=Calibration(file=texts, num_samples=5, sequence_length=64, seed=3),
        baseline=checkpoint.read(write_checkpoint(tmp_path / "model"), "baseline"),
        dtype="float16",
        tool=Tool(Path(sys.executable), "test"),
    )


def having(job: VariantJob, **said: Any) -> VariantJob:
    return replace(job, options=Options(**said))


def remade(job: VariantJob, entries: Entries, **config: Any) -> VariantJob:
    shutil.rmtree(job.baseline.path)
    return replace(job, baseline=checkpoint.read(write_checkpoint(job.baseline.path, entries, **config), "baseline"))


def refusal(job: VariantJob, results: Path) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        precheck(job, results)
    assert caught.value.advice
    return caught.value


def test_what_can_be_made_passes(job: VariantJob, tmp_path: Path) -> None:
    precheck(job, tmp_path / "results" / "not made yet")


def test_a_group_size_that_does_not_divide_names_layer_columns_and_sizes_that_would(
    job: VariantJob, tmp_path: Path
) -> None:
    error = refusal(having(job, group=64), tmp_path)
    assert error.message == (
        "variant small: group size 64 does not divide the 96 columns of model.layers.0.self_attn.q_proj "
        "(and those of 1 other layers)"
    )
    assert error.advice == "set group_size to 16 or 32"
    awq = load_quantizer("autoawq")
    awq_job = replace(job, quantizer=awq, options=awq.options(q_group_size=64))
    assert refusal(awq_job, tmp_path).advice == "set q_group_size to 16 or 32"


def test_where_no_group_size_fits_the_advice_is_another(job: VariantJob, tmp_path: Path) -> None:
    odd = remade(job, {**PLAIN, "model.layers.0.mlp.down_proj.weight": ("F16", (96, 33))})
    assert refusal(odd, tmp_path).advice == "add the layers to `ignore`"
    precheck(replace(odd, options=Options(ignore=("re:.*down_proj",))), tmp_path)


def test_embeddings_norms_and_ignored_layers_are_not_quantized(job: VariantJob) -> None:
    entries: Entries = {**PLAIN, "lm_head.weight": ("F16", (10, 96)), "transformer.wte.weight": ("F16", (10, 96))}
    write_safetensors(job.baseline.path / "model.safetensors", entries)
    stored = checkpoint.tensors.read(job.baseline.path)
    modules = ["model.layers.0.self_attn.q_proj", "model.layers.0.mlp.down_proj"]
    assert list(quantized_layers(stored, ["lm_head"])) == modules
    assert list(quantized_layers(stored, ["lm_head", "re:.*mlp"])) == modules[:1]


def test_ignoring_everything_is_refused(job: VariantJob, tmp_path: Path) -> None:
    assert "leaves no layer" in refusal(having(job, ignore=("re:.*",)), tmp_path).message


def test_no_room_is_said_with_sizes(job: VariantJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
    with pytest.raises(StoreError, match=r"variant small takes about 0\.00 GB; .* has 0\.00 GB left"):
        precheck(job, tmp_path)


def test_the_size_of_the_result_is_estimated_from_the_headers(job: VariantJob) -> None:
    layers = quantized_layers(checkpoint.tensors.read(job.baseline.path), ["lm_head"])
    elements = 96 * 96 + 96 * 160
    kept = 2 * (10 * 96 + 96)
    assert result_bytes(job, layers) == kept + elements // 2 + elements // 32 * 5 // 2
    assert result_bytes(having(job, claimed="FP8", group=None), layers) == kept + elements + (96 + 96) * 5 // 2


def test_a_quantized_model_is_refused(job: VariantJob, tmp_path: Path) -> None:
    config = {"quantization_config": {"quant_method": "gptq", "bits": 4}}
    entries: Entries = {"model.layers.0.q.qweight": ("I32", (4, 4))}
    assert "quantized already (W4A16)" in refusal(remade(job, entries, **config), tmp_path).message


def test_an_architecture_that_the_tool_does_not_know(
    job: VariantJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "site" / "transformers" / "models" / "auto" / "modeling_auto.py"
    table.parent.mkdir(parents=True)
    table.write_text('NAMES = [("gpt2", "GPT2LMHeadModel")]')
    monkeypatch.setattr(envs, "site_packages", lambda _: (tmp_path / "site",))
    assert "has no LlamaForCausalLM" in refusal(job, tmp_path).message
    table.write_text('NAMES = [("llama", "LlamaForCausalLM")]')
    precheck(job, tmp_path)


def test_calibration_is_asked_for_only_where_it_is_needed(job: VariantJob, tmp_path: Path) -> None:
    without = replace(job, calibration=None)
    assert "needs calibration texts" in refusal(without, tmp_path).message
    precheck(having(without, calibrated=False), tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "no calibration file at"),
        (b"", "has 0 texts; calibration.num_samples asks for 5"),
        (b'{"text": "a"}\n' * 4, "has 4 texts"),
        (b'{"text": "a"}\nnot json\n', "texts.jsonl:2: not JSON"),
        (b'{"txt": "a"}\n', "texts.jsonl:1: neither a `text` nor chat `messages`"),
        (b'{"text": "  "}\n', "texts.jsonl:1: neither"),
        (b'{"messages": [{"role": "robot", "content": "a"}]}\n', "texts.jsonl:1: neither"),
        (b'{"text": "\xff"}\n', "is not UTF-8"),
    ],
)
def test_calibration_files_that_cannot_be_used(
    job: VariantJob, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "texts.jsonl"
    path.unlink() if content is None else path.write_bytes(content)
    assert message in refusal(job, tmp_path).message


def test_texts_are_chosen_by_the_seed_and_no_text_twice(job: VariantJob, tmp_path: Path) -> None:
    assert job.calibration is not None
    first = calibration.choose(job.calibration, tmp_path / "a").read_text()
    again = calibration.choose(job.calibration, tmp_path / "b").read_text()
    other = calibration.choose(job.calibration.model_copy(update={"seed": 4}), tmp_path / "c").read_text()
    assert first == again != other
    assert len(set(first.splitlines())) == 5


def test_a_text_may_hold_what_python_takes_for_an_end_of_line(tmp_path: Path) -> None:
    texts = ["one\u2028two", "three\x85four"]
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": text}, ensure_ascii=False) + "\n" for text in texts), encoding="utf-8")
    assert [entry["text"] for entry in calibration.read(path)] == texts


def test_paragraphs_of_a_text_file_are_texts(tmp_path: Path) -> None:
    path = tmp_path / "texts.txt"
    path.write_text("one\nstill one\n\n\n  two  \n\n")
    assert calibration.read(path) == [{"text": "one\nstill one"}, {"text": "two"}]


def made(job: VariantJob, tmp_path: Path) -> tuple[checkpoint.Checkpoint, Watching]:
    (tmp_path / "out").mkdir()
    watcher = Watching()
    return quantize(job, tmp_path / "out", tmp_path / "work", watcher), watcher


def test_the_made_checkpoint_says_how_it_was_made(job: VariantJob, tmp_path: Path) -> None:
    result, watcher = made(job, tmp_path)
    assert (result.name, result.precision, result.path) == ("small", "W4A16", tmp_path / "out")
    assert result.making is not None
    assert result.making.packages == {"tool": "1"}
    assert (result.making.wall_s, result.making.peak_memory_bytes) == (1.5, 10)
    assert result.making.calibration.keys() == {"sha256", "num_samples", "num_tokens"}
    assert result.making.calibration["num_samples"] == 5
    assert result.making.details == {"notes": ["odd"]}
    assert result.source == {"model": job.baseline.digest}
    assert watcher.labels == ["small: quantizing"]


def test_without_calibration_none_is_recorded(job: VariantJob, tmp_path: Path) -> None:
    result, _ = made(having(replace(job, calibration=None), calibrated=False), tmp_path)
    assert result.making is not None
    assert result.making.calibration == {}


def test_a_worker_s_own_words_are_the_error(job: VariantJob, tmp_path: Path) -> None:
    with pytest.raises(QuantizeError, match="small: plain: no such layer") as caught:
        made(having(job, fail="no such layer"), tmp_path)
    assert caught.value.advice == "do this"


def test_a_crash_shows_the_log_s_tail(job: VariantJob, tmp_path: Path) -> None:
    job.quantizer.worker.write_text("raise SystemError('out of luck')")
    with pytest.raises(QuantizeError, match="out of luck"):
        made(job, tmp_path)


def test_another_precision_than_promised_is_an_error(job: VariantJob, tmp_path: Path) -> None:
    with pytest.raises(QuantizeError, match="was asked for W4A16 and made W8A16"):
        made(having(job, bits=8), tmp_path)
