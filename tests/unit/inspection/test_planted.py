"""Faults planted in copies of the published checkpoints: each is found under its own name, and under no other."""

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from qgate.inspection import catalogue
from qgate.rooms.inspect import inspect
from qgate.schemas.inspection import Inspection, Severity
from tests.unit.inspection.planting import BASELINE, FIRST, FIXTURES, Opened, Plant, write

TEMPLATE = "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}{% endfor %}"
CLEAN = {
    "awq-gemm": set(),
    "gptq-v1": set(),
    "gptq-v1-desc-act": {"activation-order"},
    "gptqmodel-awq": set(),
    "gptqmodel-gptq": set(),
    "gptqmodel-gptq-asym": {"no-kernel"},
    "gptqmodel-gptq-v2": set(),
    "pack-quantized": set(),
    "pack-quantized-asym": set(),
    "int-quantized": set(),
    "float-quantized": set(),
    "float-quantized-static": set(),
    "baseline": set(),
}
"""What is true of them and worth a warning; nothing else may be found."""


def codes(found: Inspection) -> set[str]:
    return {finding.code for finding in found.findings}


@pytest.mark.parametrize("name", CLEAN)
@pytest.mark.parametrize("is_compared", [False, True])
def test_published_formats_are_clean(name: str, is_compared: bool) -> None:
    found = inspect(FIXTURES / name, BASELINE if is_compared else None, weights=is_compared)
    assert codes(found) == CLEAN[name]
    assert not found.errors
    assert found.num_quantized_layers == (0 if name == "baseline" else 14)
    if is_compared and name != "baseline":
        assert len(found.layers) == 14
        assert "weights" in found.checked


@dataclass(frozen=True)
class Fault:
    """What is planted where, and the name that it must be found under."""

    code: str
    source: str
    plant: Plant
    is_compared: bool = True
    weighs: bool = False
    size: int = 1
    """Tensor-parallel."""


def drop(*names: str) -> Plant:
    return lambda opened: opened.drop(*names)


def config(**changes: object) -> Plant:
    return lambda opened: opened.config(**changes)


def change(file: str, **changes: object) -> Plant:
    return lambda opened: opened.json(file, **changes)


def fill(name: str, value: float, count: int = 1) -> Plant:
    def plant(opened: Opened) -> None:
        opened.arrays[name].reshape(-1)[:count] = value

    return plant


def scaled(name: str, factor: float) -> Plant:
    def plant(opened: Opened) -> None:
        opened.arrays[name] = (opened.arrays[name] * factor).astype(opened.arrays[name].dtype)

    return plant


def truncated(opened: Opened) -> None:
    file = opened.close() / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    opened.close = lambda: opened.folder  # type: ignore[method-assign]


def unreadable(opened: Opened) -> None:
    file = opened.close() / "model.safetensors"
    data = file.read_bytes()
    file.write_bytes(struct.pack("<Q", 64) + b"{" * 64 + data[72:])
    opened.close = lambda: opened.folder  # type: ignore[method-assign]


def in_two(*, gone: str | None = None, index: bool = True, moved: bool = False, twice: bool = False) -> Plant:
    def plant(opened: Opened) -> None:
        opened.split(index=index)
        map_file = opened.folder / "model.safetensors.index.json"
        if gone is not None:
            (opened.folder / gone).unlink()
        if moved:
            place = json.loads(map_file.read_text())["weight_map"]
            first, second = sorted(place)[:2]
            place[first], place[second] = place[second], place[first]
            map_file.write_text(json.dumps({"weight_map": place}))
        if twice:
            every = sorted(opened.arrays)
            both = {name: opened.arrays[name] for name in [*every[::2], every[1]]}
            write(opened.folder / "model-00001-of-00002.safetensors", both, opened.types)
        opened.close = lambda: opened.folder  # type: ignore[method-assign]

    return plant


def pickled(opened: Opened) -> None:
    (opened.close() / "model.safetensors").rename(opened.folder / "pytorch_model.bin")
    opened.close = lambda: opened.folder  # type: ignore[method-assign]


def plain(opened: Opened, module: str) -> None:
    """A layer as the baseline has it."""
    opened.drop(*[name for name in opened.arrays if name.startswith(f"{module}.")])
    source = Opened(BASELINE, opened.folder.with_name("plain"))
    opened.set(f"{module}.weight", source.arrays[f"{module}.weight"])


def ignored_apart(opened: Opened) -> None:
    plain(opened, "model.layers.0.self_attn.q_proj")
    opened.config(quantization_config__ignore=["lm_head", "model.layers.0.self_attn.q_proj"])


def cut(name: str, axis: int, amount: int) -> Plant:
    def plant(opened: Opened) -> None:
        whole = opened.arrays[name]
        opened.set(
            name, np.ascontiguousarray(np.take(whole, range(whole.shape[axis] - amount), axis)), opened.types[name]
        )

    return plant


def retyped(name: str, dtype: str) -> Plant:
    def plant(opened: Opened) -> None:
        opened.types[name] = dtype

    return plant


def added(name: str, values: object, dtype: str | None = None) -> Plant:
    return lambda opened: opened.set(name, np.asarray(values), dtype)


def quantized_head(opened: Opened) -> None:
    opened.set("lm_head.weight", np.ones((257, 64), np.int8))
    opened.set("lm_head.weight_scale", np.ones((257, 1), np.float16))
    opened.config(tie_word_embeddings=False, quantization_config__ignore=[])


def stray_zero_points(opened: Opened) -> None:
    for module in [name.removesuffix(".weight_packed") for name in opened.arrays if name.endswith(".weight_packed")]:
        shape = opened.arrays[f"{module}.weight_scale"].shape
        opened.set(f"{module}.weight_zero_point", np.full(shape, 9 if module == FIRST else 0, np.int8))


def kv_scales(value: float) -> Plant:
    def plant(opened: Opened) -> None:
        for name in opened.arrays:
            if name.endswith((".k_scale", ".v_scale")):
                opened.arrays[name][:] = value

    return plant


def with_template(text: str | None, theirs: str = TEMPLATE) -> Plant:
    """In the copy and in the baseline's copy beside it."""

    def plant(opened: Opened) -> None:
        if text is not None:
            (opened.folder / "chat_template.jinja").write_text(text)
        (Opened(BASELINE, opened.folder.with_name("base")).folder / "chat_template.jinja").write_text(theirs)

    return plant


def swapped_tokens(opened: Opened) -> None:
    content = json.loads((opened.folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    (opened.folder / "tokenizer.json").write_text(json.dumps(content))


def added_token(number: int, text: str) -> Plant:
    def plant(opened: Opened) -> None:
        content = json.loads((opened.folder / "tokenizer.json").read_text())
        content["added_tokens"] = [*content["added_tokens"], {"id": number, "content": text, "special": True}]
        (opened.folder / "tokenizer.json").write_text(json.dumps(content))

    return plant


def renamed(old: str, new: str) -> Plant:
    def plant(opened: Opened) -> None:
        *parents, last = old.split("__")
        content = here = json.loads((opened.folder / "config.json").read_text())
        for part in parents:
            here = here[part]
        here[new] = here.pop(last)
        (opened.folder / "config.json").write_text(json.dumps(content))

    return plant


def shuffled(opened: Opened) -> None:
    """Rows of a packed layer in another order: every tensor is well-formed, and the layer is wrong."""
    packed = opened.arrays[f"{FIRST}.weight_packed"]
    opened.arrays[f"{FIRST}.weight_packed"] = packed[::-1].copy()


def cast_from_bfloat16(opened: Opened) -> None:
    """The baseline's copy is a model in bfloat16 with one neuron of a large norm, as massive activations come from."""
    base = Opened(BASELINE, opened.folder.with_name("base"))
    for name in ("gate_proj", "up_proj"):
        base.arrays[f"model.layers.1.mlp.{name}.weight"][7] *= 25
    base.config(dtype="bfloat16")
    base.close()
    for name, values in base.arrays.items():
        opened.set(name, values)
    opened.config(dtype="float16")


Q, GATE, NORM = "model.layers.0.self_attn.q_proj", "model.layers.1.mlp.gate_proj", "model.layers.0.input_layernorm"
GROUP = "quantization_config__config_groups__group_0__weights"
FAULTS = [
    Fault("shard-truncated", "pack-quantized", truncated),
    Fault("shard-unreadable", "gptq-v1", unreadable),
    Fault("shard-missing", "awq-gemm", in_two(gone="model-00002-of-00002.safetensors")),
    Fault("index-mismatch", "int-quantized", in_two(moved=True)),
    Fault("index-missing", "int-quantized", in_two(index=False)),
    Fault("tensor-twice", "int-quantized", in_two(twice=True)),
    Fault("weights-pickled", "gptq-v1", pickled),
    Fault("tensor-missing", "pack-quantized", drop(f"{FIRST}.weight_scale")),
    Fault("tensor-missing", "pack-quantized", drop(f"{FIRST}.weight_packed"), is_compared=False),
    Fault("tensor-missing", "gptq-v1", drop(f"{FIRST}.qzeros"), is_compared=False),
    Fault("tensor-missing", "awq-gemm", drop(f"{NORM}.weight")),
    Fault("tensor-missing", "int-quantized", config(num_hidden_layers=3), is_compared=False),
    Fault("tensor-unexpected", "pack-quantized", added(f"{Q}.weight_g_idx", np.arange(64, dtype=np.int32))),
    Fault("tensor-shape", "pack-quantized", cut(f"{FIRST}.weight_scale", 1, 2)),
    Fault("tensor-shape", "awq-gemm", cut(f"{Q}.scales", 0, 1)),
    Fault("tensor-shape", "gptq-v1", cut("model.norm.weight", 0, 1)),
    Fault("packed-shape", "pack-quantized", cut(f"{FIRST}.weight_packed", 1, 1)),
    Fault("packed-shape", "pack-quantized", fill(f"{FIRST}.weight_shape", 63)),
    Fault("packed-shape", "gptq-v1", cut(f"{Q}.qweight", 0, 1)),
    Fault("tensor-dtype", "awq-gemm", retyped(f"{Q}.qweight", "F32")),
    Fault("layer-not-quantized", "pack-quantized", lambda opened: plain(opened, FIRST)),
    Fault("layer-left-plain", "gptq-v1", lambda opened: plain(opened, FIRST)),
    Fault("layer-quantized-though-ignored", "int-quantized", config(quantization_config__ignore=["lm_head", FIRST])),
    Fault("fused-layers-differ", "pack-quantized", ignored_apart),
    Fault("head-quantized", "int-quantized", quantized_head, is_compared=False),
    Fault("quantization-config-missing", "float-quantized", config(quantization_config=...)),
    Fault("quantization-method-unknown", "gptq-v1", config(quantization_config__quant_method="squeezellm")),
    Fault("quantization-config-wrong", "awq-gemm", config(quantization_config__bits=0)),
    Fault("scale-not-finite", "pack-quantized", fill(f"{FIRST}.weight_scale", np.nan)),
    Fault("scale-not-positive", "gptq-v1", fill(f"{FIRST}.scales", 0.0)),
    Fault("scale-denormal", "int-quantized", fill(f"{FIRST}.weight_scale", 1e-6)),
    Fault("weights-not-finite", "awq-gemm", fill(f"{NORM}.weight", np.inf)),
    Fault("zero-point-not-symmetric", "gptq-v1", fill(f"{FIRST}.qzeros", 0x77777773)),
    Fault("zero-point-offset", "gptq-v1", config(quantization_config__checkpoint_format="gptq_v2")),
    Fault("zero-point-range", "pack-quantized-asym", stray_zero_points),
    Fault("fused-scales-differ", "float-quantized-static", scaled("model.layers.1.self_attn.k_proj.weight_scale", 30)),
    Fault("kv-scale-missing", "float-quantized-static", drop("model.layers.1.self_attn.k_scale")),
    Fault("kv-scale-uncalibrated", "float-quantized-static", kv_scales(1.0)),
    Fault("kv-cache-scheme", "float-quantized-static", config(quantization_config__kv_cache_scheme__type="int")),
    Fault("group-split", "gptq-v1", config(), size=4),
    Fault("tokenizer-missing", "awq-gemm", lambda opened: (opened.folder / "tokenizer.json").unlink()),
    Fault("tokenizer-unreadable", "awq-gemm", lambda o: (o.folder / "tokenizer.json").write_text("{") and None),
    Fault("tokenizer-truncation", "int-quantized", change("tokenizer.json", truncation={"max_length": 512})),
    Fault("tokenizer-padding", "int-quantized", change("tokenizer.json", padding={"strategy": {"Fixed": 512}})),
    Fault("tokenizer-differs", "int-quantized", swapped_tokens),
    Fault("added-tokens-differ", "int-quantized", added_token(200, "<tool>")),
    Fault("special-tokens-differ", "int-quantized", change("tokenizer_config.json", eos_token="a")),
    Fault("vocabulary-beyond-embedding", "int-quantized", added_token(300, "<tool>"), is_compared=False),
    Fault("vocabulary-size", "int-quantized", config(vocab_size=320)),
    Fault("head-missing", "int-quantized", config(tie_word_embeddings=False), is_compared=False),
    Fault("head-tied-and-stored", "int-quantized", added("lm_head.weight", np.ones((257, 64), np.float16))),
    Fault("template-missing", "gptq-v1", with_template(None)),
    Fault("template-differs", "gptq-v1", with_template(TEMPLATE.replace("<|", "["))),
    Fault("template-broken", "gptq-v1", with_template(TEMPLATE + "{% endif %}")),
    Fault("eos-differs", "gptq-v1", change("generation_config.json", eos_token_id=[256, 10])),
    Fault("eos-unknown", "gptq-v1", change("generation_config.json", eos_token_id=999), is_compared=False),
    Fault("config-differs", "gptq-v1", config(hidden_act="gelu")),
    Fault("config-shape-differs", "gptq-v1", config(num_attention_heads=8)),
    Fault("rope-differs", "gptq-v1", config(rope_parameters={"rope_theta": 10000.0, "rope_type": "default"})),
    Fault("context-differs", "gptq-v1", config(max_position_embeddings=4096)),
    Fault("field-renamed", "gptq-v1", renamed("num_key_value_heads", "num_key_value_head")),
    Fault("field-renamed", "gptq-v1", renamed("rope_parameters", "rope_parameter")),
    Fault("quantization-field-renamed", "pack-quantized", renamed(f"{GROUP}__num_bits", "num_bit")),
    Fault("float16-overflow", "baseline", config(model_type="gemma2"), is_compared=False),
    Fault("float16-overflow", "baseline", cast_from_bfloat16, weighs=True),
    Fault("remote-code", "gptq-v1", config(auto_map={"AutoModelForCausalLM": "modeling_x.X"})),
    Fault("bias-zero", "gptq-v1", added(f"{Q}.bias", np.zeros(64, np.float16))),
    Fault("bias-unexpected", "gptq-v1", added(f"{Q}.bias", np.ones(64, np.float16))),
    Fault("weight-error", "pack-quantized", shuffled, weighs=True),
    Fault("weight-error", "int-quantized", scaled(f"{GATE}.weight_scale", 2.0), weighs=True),
    Fault("weight-error-high", "float-quantized", scaled(f"{GATE}.weight_scale", 1.1), weighs=True),
    Fault("weight-outlier", "int-quantized", scaled(f"{GATE}.weight_scale", 1.05), weighs=True),
    Fault("plain-tensor-differs", "awq-gemm", scaled("model.embed_tokens.weight", 1.1), weighs=True),
    Fault("plain-tensor-differs", "baseline", scaled(f"{Q}.weight", 1.1), weighs=True),
    Fault(
        "weights-not-compared", "int-quantized", config(quantization_config__transform_config={"R1": {}}), weighs=True
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.code}-{fault.source}")
def test_a_planted_fault_is_found_under_its_own_name(fault: Fault, tmp_path: Path) -> None:
    opened = Opened(FIXTURES / fault.source, tmp_path / "copy")
    fault.plant(opened)
    folder = opened.close()
    theirs = tmp_path / "base" if (tmp_path / "base").exists() else BASELINE
    baseline = theirs if fault.is_compared else None
    found = inspect(folder, baseline, tensor_parallel_size=fault.size, weights=fault.weighs)
    assert codes(found) == {fault.code}, [(f.code, f.places, f.detail) for f in found.findings]
    (finding,) = found.findings
    assert finding.severity is catalogue.CODES[fault.code].severity
    assert finding.breaks and finding.fix and finding.places


def test_autoawqs_fault_on_cpus_is_found_by_the_weights_alone() -> None:
    assert codes(inspect(FIXTURES / "awq-gemm-corrupted", BASELINE)) == set(), "it is well-formed"
    found = inspect(FIXTURES / "awq-gemm-corrupted", BASELINE, weights=True)
    assert codes(found) == {"weight-error"}
    worst, rounding = found.layers[0].relative_error, found.layers[0].rounding_error
    assert rounding is not None
    assert worst > 2 * rounding


def test_scales_that_awq_moved_between_layers_are_no_error() -> None:
    (layer,) = [
        each for each in inspect(FIXTURES / "gptqmodel-awq", BASELINE, weights=True).layers if each.module == FIRST
    ]
    assert layer.rounding_error is not None
    assert layer.relative_error == pytest.approx(layer.rounding_error, rel=0.1)
    assert layer.raw_relative_error > 1.5 * layer.relative_error


def test_every_finding_but_those_of_mixtures_and_odd_shapes_has_been_planted() -> None:
    elsewhere = {
        "activation-order", "no-kernel", "no-fast-kernel", "group-size-columns", "packing-split", "block-split",
        "expert-group-split", "expert-unreached", "router-quantized", "kind-not-ignored", "tensor-names-differ",
        "weights-missing", "index-unreadable",
    }  # fmt: skip
    assert {fault.code for fault in FAULTS} | elsewhere == set(catalogue.CODES)
    assert len({fault.code for fault in FAULTS}) >= 20


def test_what_no_engine_can_serve_is_an_error_and_what_the_gate_can_measure_is_not() -> None:
    of = {code.name: code.severity for code in catalogue.CODES.values()}
    assert of["shard-truncated"] is of["tensor-missing"] is of["scale-not-finite"] is Severity.ERROR
    assert of["rope-differs"] is of["no-kernel"] is of["template-differs"] is Severity.WARNING
