"""Faults planted in copies of the published checkpoints: each is found under its own name, and under no other."""

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    allowed: frozenset[str] = frozenset()
    """What the source has already."""


def drop(*names: str) -> Plant:
    return lambda opened: opened.drop(*names)


def config(**changes: object) -> Plant:
    return lambda opened: opened.config(**changes)


def change(file: str, **changes: object) -> Plant:
    return lambda opened: opened.json(file, **changes)


def both(*plants: Plant) -> Plant:
    def plant(opened: Opened) -> None:
        for each in plants:
            each(opened)

    return plant


def flipped(name: str) -> Plant:
    def plant(opened: Opened) -> None:
        opened.arrays[name] = opened.arrays[name][::-1].copy()

    return plant


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


def beside_consolidated(opened: Opened) -> None:
    """The original in Mistral's own form, as its authors publish it too."""
    weights = {"layers.0.attention.wq.weight": np.zeros((64, 64), np.float16)}
    write(opened.folder / "consolidated.safetensors", weights, dict.fromkeys(weights, "F16"))


def beside_another(opened: Opened) -> None:
    """A second weight file, and no index."""
    write(opened.folder / "other.safetensors", {"other.weight": np.ones(4, np.float16)}, {"other.weight": "F16"})


FP8_OF_MISTRAL = {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"}


def in_both_casts(opened: Opened) -> None:
    """A type in config.json that is not the tensors', here and in the baseline."""
    Opened(BASELINE, opened.folder.with_name("base")).config(dtype="bfloat16")
    opened.config(dtype="bfloat16")


def in_transformers_words(opened: Opened) -> None:
    """FP8 with static inputs as transformers stores it, and Mistral publishes it."""
    words = {"weight_scale": "weight_scale_inv", "input_scale": "activation_scale"}
    for name in list(opened.arrays):
        module, _, last = name.rpartition(".")
        if last in words:
            opened.set(f"{module}.{words[last]}", opened.arrays[name], opened.types[name])
        if last in {*words, "k_scale", "v_scale"}:
            opened.drop(name)
    said = {"quant_method": "fp8", "activation_scheme": "static", "modules_to_not_convert": ["lm_head"]}
    opened.config(quantization_config=said)


def beside_an_older_save(opened: Opened) -> None:
    """The index and shards of another save stand beside the one file."""
    whole = opened.close() / "model.safetensors"
    kept = whole.read_bytes()
    opened.split()
    whole.write_bytes(kept)
    opened.close = lambda: opened.folder  # type: ignore[method-assign]


def rewritten(change: Callable[[dict[str, Any], bytes], tuple[dict[str, Any], bytes]]) -> Plant:
    """The weight file with another header, or other bytes behind it."""

    def plant(opened: Opened) -> None:
        file = opened.close() / "model.safetensors"
        data = file.read_bytes()
        end = 8 + struct.unpack("<Q", data[:8])[0]
        header, body = change(json.loads(data[8:end]), data[end:])
        raw = json.dumps(header).encode()
        file.write_bytes(struct.pack("<Q", len(raw)) + raw + body)
        opened.close = lambda: opened.folder  # type: ignore[method-assign]

    return plant


def shared(header: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """Two norms on the same bytes."""
    header["model.norm.weight"]["data_offsets"] = header[f"{NORM}.weight"]["data_offsets"]
    return header, body


def moved_on(header: dict[str, Any], body: bytes) -> tuple[dict[str, Any], bytes]:
    """Every tensor 64 bytes further on, behind a hole."""
    for entry in header.values():
        entry["data_offsets"] = [offset + 64 for offset in entry["data_offsets"]]
    return header, bytes(64) + body


def pickled(opened: Opened) -> None:
    (opened.close() / "model.safetensors").rename(opened.folder / "pytorch_model.bin")
    opened.close = lambda: opened.folder  # type: ignore[method-assign]


def plain(opened: Opened, module: str) -> None:
    """A layer as the baseline has it."""
    opened.drop(*[name for name in opened.arrays if name.startswith(f"{module}.")])
    source = Opened(BASELINE, opened.folder.with_name(f"plain-{module}"))
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


def wrapped(prefix: str) -> Plant:
    def plant(opened: Opened) -> None:
        for name in list(opened.arrays):
            opened.set(prefix + name, opened.arrays[name], opened.types[name])
            opened.drop(name)

    return plant


def cut_head(opened: Opened) -> None:
    opened.set("lm_head.weight", opened.arrays["model.embed_tokens.weight"][:200].copy())
    opened.config(tie_word_embeddings=False)


def swapped(one: str, other: str) -> Plant:
    def plant(opened: Opened) -> None:
        opened.arrays[one], opened.arrays[other] = opened.arrays[other], opened.arrays[one]

    return plant


def reordered(module: str) -> Plant:
    """The columns' groups in another layer's order."""

    def plant(opened: Opened) -> None:
        order = opened.arrays[f"{module}.g_idx"]
        opened.arrays[f"{module}.g_idx"] = np.random.default_rng(0).permutation(order)

    return plant


def rolled(name: str, axis: int) -> Plant:
    """Each group with the next one's scales."""

    def plant(opened: Opened) -> None:
        opened.arrays[name] = np.roll(opened.arrays[name], 1, axis)

    return plant


def with_asymmetric_inputs(opened: Opened) -> None:
    for name in [each for each in opened.arrays if each.endswith(".weight_scale")]:
        module = name.removesuffix(".weight_scale")
        opened.set(f"{module}.input_scale", np.full(1, 0.02, np.float16))
        opened.set(f"{module}.input_zero_point", np.full(1, 3, np.int8))
    inputs = {"num_bits": 8, "type": "int", "symmetric": False, "strategy": "tensor", "dynamic": False}
    opened.config(quantization_config__config_groups__group_0__input_activations=inputs)


def inputs_of_down_proj(opened: Opened) -> None:
    """An MLP's input scales the other way round."""
    inner, outer = (opened.arrays[f"model.layers.0.mlp.{name}.input_scale"].copy() for name in ("up_proj", "down_proj"))
    for name, value in {"gate_proj": outer, "up_proj": outer, "down_proj": inner}.items():
        opened.arrays[f"model.layers.0.mlp.{name}.input_scale"] = value


def added(name: str, values: object, dtype: str | None = None) -> Plant:
    return lambda opened: opened.set(name, np.asarray(values), dtype)


def quantized_head_ignored(opened: Opened) -> None:
    quantized_head(opened)
    opened.config(quantization_config__ignore=["lm_head"])


def quantized_head(opened: Opened) -> None:
    opened.set("lm_head.weight", np.ones((257, 64), np.int8))
    opened.set("lm_head.weight_scale", np.ones((257, 1), np.float16))
    opened.config(tie_word_embeddings=False, quantization_config__ignore=[])


def plain_head_promised(opened: Opened) -> None:
    opened.set("lm_head.weight", opened.arrays["model.embed_tokens.weight"].copy())
    opened.config(tie_word_embeddings=False, quantization_config__ignore=["re:.*vision.*"])


def stray_zero_points(opened: Opened) -> None:
    for module in [name.removesuffix(".weight_packed") for name in opened.arrays if name.endswith(".weight_packed")]:
        shape = opened.arrays[f"{module}.weight_scale"].shape
        opened.set(f"{module}.weight_zero_point", np.full(shape, 9 if module == FIRST else 0, np.int8))


def kv_scales(value: float, *kinds: str) -> Plant:
    def plant(opened: Opened) -> None:
        for name in opened.arrays:
            if name.endswith(kinds or (".k_scale", ".v_scale")):
                opened.arrays[name][:] = value

    return plant


def with_template(text: str | None, theirs: str = TEMPLATE) -> Plant:
    """In the copy and in the baseline's copy beside it."""

    def plant(opened: Opened) -> None:
        if text is not None:
            (opened.folder / "chat_template.jinja").write_text(text)
        (Opened(BASELINE, opened.folder.with_name("base")).folder / "chat_template.jinja").write_text(theirs)

    return plant


def without_processor(opened: Opened) -> None:
    (Opened(BASELINE, opened.folder.with_name("base")).folder / "preprocessor_config.json").write_text("{}")


def attention_left_plain(opened: Opened) -> None:
    """The first layer's attention as the baseline has it, and ignored."""
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        plain(opened, f"model.layers.0.self_attn.{name}")
    opened.config(quantization_config__ignore=["lm_head", "re:.*layers.0.self_attn.*"])


def with_moved_scales(opened: Opened) -> None:
    """The same, and the norm's weights, and the rows of `v_proj`, moved into the layers after them."""
    attention_left_plain(opened)
    of_norm, of_values = np.random.default_rng(0).uniform(0.5, 2, (2, 64)).astype(np.float16)
    opened.arrays[f"{NORM}.weight"] *= of_norm
    for module in (Q, K, V):
        opened.arrays[f"{module}.weight"] /= of_norm
    opened.arrays[f"{V}.weight"] *= of_values[:, None]
    opened.arrays[f"{OUT}.weight"] /= of_values


def swapped_tokens(opened: Opened) -> None:
    content = json.loads((opened.folder / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    vocabulary["a"], vocabulary["b"] = vocabulary["b"], vocabulary["a"]
    (opened.folder / "tokenizer.json").write_text(json.dumps(content))


def another_beginning(opened: Opened) -> None:
    Opened(BASELINE, opened.folder.with_name("base")).json("tokenizer_config.json", add_bos_token=False)
    opened.json("tokenizer_config.json", add_bos_token=True)


def nested(opened: Opened) -> None:
    """The language model's fields in `text_config`, where transformers 5 writes those that older ones left on top."""
    path = opened.folder / "config.json"
    inner = json.loads(path.read_text())
    outer = {name: inner.pop(name) for name in ("architectures", "quantization_config")}
    path.write_text(json.dumps(outer | {"model_type": inner["model_type"], "text_config": inner}))


def index_that_says_a_name_twice(last_is_right: bool) -> Plant:
    def plant(opened: Opened) -> None:
        opened.split()
        file = opened.folder / "model.safetensors.index.json"
        (name, place), *rest = json.loads(file.read_text())["weight_map"].items()
        entries = [(name, "model-00002-of-00002.safetensors"), (name, place)]
        entries = [*(entries if last_is_right else entries[::-1]), *rest]
        told = ", ".join(f"{json.dumps(key)}: {json.dumps(value)}" for key, value in entries)
        file.write_text(f'{{"weight_map": {{{told}}}}}')
        opened.close = lambda: opened.folder  # type: ignore[method-assign]

    return plant


def in_bfloat16(name: str) -> Plant:
    def plant(opened: Opened) -> None:
        high = opened.arrays[name].astype(np.float32).view(np.uint32) >> 16
        opened.set(name, high.astype(np.uint16).view(np.float16), "BF16")

    return plant


def two_templates(opened: Opened) -> None:
    with_template(TEMPLATE)(opened)
    opened.json("tokenizer_config.json", chat_template=TEMPLATE.replace("<|", "["))


def template_of_settings(theirs: str) -> Plant:
    """The baseline's template in tokenizer_config.json, where older versions of transformers write it."""

    def plant(opened: Opened) -> None:
        with_template(None, theirs)(opened)
        opened.json("tokenizer_config.json", chat_template=theirs)

    return plant


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


CACHE = {"num_bits": 8, "type": "float", "strategy": "tensor", "dynamic": False, "symmetric": True}
Q, GATE, NORM = "model.layers.0.self_attn.q_proj", "model.layers.1.mlp.gate_proj", "model.layers.0.input_layernorm"
K, V, OUT = (f"model.layers.0.self_attn.{name}_proj" for name in "kvo")
ORDERED = frozenset({"activation-order"})
GROUP = "quantization_config__config_groups__group_0__weights"
FAULTS = [
    Fault("shard-truncated", "pack-quantized", truncated),
    Fault("shard-unreadable", "gptq-v1", unreadable),
    Fault("shard-unreadable", "int-quantized", rewritten(lambda h, body: ({**h, "__metadata__": {"a": 1}}, body))),
    Fault("shard-unreadable", "int-quantized", rewritten(shared)),
    Fault("shard-unreadable", "int-quantized", rewritten(moved_on)),
    Fault("index-mismatch", "int-quantized", index_that_says_a_name_twice(last_is_right=False)),
    Fault("shard-missing", "awq-gemm", in_two(gone="model-00002-of-00002.safetensors")),
    Fault("index-mismatch", "int-quantized", in_two(moved=True)),
    Fault("index-missing", "int-quantized", in_two(index=False)),
    Fault("tensor-twice", "int-quantized", in_two(twice=True)),
    Fault("weights-twice", "int-quantized", beside_an_older_save),
    Fault("weights-twice", "int-quantized", beside_another, is_compared=False),
    Fault("weights-twice", "int-quantized", beside_consolidated),
    Fault("weights-twice", "gptq-v1", both(beside_consolidated, change("params.json", quantization=FP8_OF_MISTRAL))),
    Fault("weights-twice", "baseline", both(beside_consolidated, change("params.json", quantization=FP8_OF_MISTRAL))),
    Fault("weights-blank", "baseline", rewritten(lambda header, body: (header, body[:-30_000] + bytes(30_000)))),
    Fault("weights-pickled", "gptq-v1", pickled),
    Fault("tensor-missing", "pack-quantized", drop(f"{FIRST}.weight_scale")),
    Fault("tensor-missing", "pack-quantized", drop(f"{FIRST}.weight_packed"), is_compared=False),
    Fault("tensor-missing", "gptq-v1", drop(f"{FIRST}.qzeros"), is_compared=False),
    Fault("tensor-missing", "awq-gemm", drop(f"{NORM}.weight")),
    Fault("tensor-missing", "int-quantized", config(num_hidden_layers=3), is_compared=False),
    Fault("tensor-missing", "gptq-v1", drop(f"{NORM}.weight"), is_compared=False),
    Fault("tensor-names-wrapped", "gptq-v1", wrapped("base_model.model."), is_compared=False),
    Fault("tensor-names-wrapped", "baseline", wrapped("_orig_mod."), is_compared=False),
    Fault("tensor-missing", "gptq-v1", drop("model.embed_tokens.weight"), is_compared=False),
    Fault("tensor-unexpected", "pack-quantized", added(f"{Q}.weight_g_idx", np.arange(64, dtype=np.int32))),
    Fault("tensor-unexpected", "int-quantized", added("model.layers.0.extra", np.zeros((0, 4), np.float16))),
    Fault(
        "tensor-unexpected",
        "float-quantized-static",
        config(quantization_config__config_groups__group_0__input_activations__dynamic=True),
    ),
    Fault("tensor-shape", "pack-quantized", config(**{f"{GROUP}__group_size": 64})),
    Fault("tensor-shape", "pack-quantized", config(**{f"{GROUP}__strategy": "channel", f"{GROUP}__group_size": -1})),
    Fault("tensor-shape", "pack-quantized", cut(f"{FIRST}.weight_scale", 1, 2)),
    Fault("tensor-shape", "awq-gemm", cut(f"{Q}.scales", 0, 1)),
    Fault("tensor-shape", "gptq-v1", cut("model.norm.weight", 0, 1)),
    Fault("packed-shape", "pack-quantized", cut(f"{FIRST}.weight_packed", 1, 1)),
    Fault("packed-shape", "pack-quantized", fill(f"{FIRST}.weight_shape", 63)),
    Fault("packed-shape", "gptq-v1", cut(f"{Q}.qweight", 0, 1)),
    Fault("tensor-missing", "pack-quantized", config(**{f"{GROUP}__symmetric": False})),
    Fault("tensor-dtype", "int-quantized", config(**{f"{GROUP}__type": "float"})),
    Fault("tensor-dtype", "awq-gemm", retyped(f"{Q}.qweight", "F32")),
    Fault("layer-not-quantized", "pack-quantized", lambda opened: plain(opened, FIRST)),
    Fault("layer-left-plain", "gptq-v1", lambda opened: plain(opened, FIRST)),
    Fault("layer-quantized-though-ignored", "int-quantized", config(quantization_config__ignore=["lm_head", FIRST])),
    Fault(
        "layer-quantized-though-ignored", "awq-gemm", config(quantization_config__modules_to_not_convert=["down_proj"])
    ),
    Fault("fused-layers-differ", "pack-quantized", ignored_apart),
    Fault("head-quantized", "int-quantized", quantized_head, is_compared=False),
    Fault("layer-quantized-though-ignored", "int-quantized", quantized_head_ignored, is_compared=False),
    Fault("kind-not-ignored", "pack-quantized", config(quantization_config__ignore=[])),
    Fault("kind-not-ignored", "int-quantized", plain_head_promised, is_compared=False),
    Fault("quantization-config-missing", "float-quantized", config(quantization_config=...)),
    Fault("quantization-method-unknown", "gptq-v1", config(quantization_config__quant_method="squeezellm")),
    Fault("quantization-config-wrong", "awq-gemm", config(quantization_config__bits=0)),
    Fault(
        "quantization-config-wrong", "pack-quantized", config(quantization_config__ignore=["lm_head", "re:.*(vision"])
    ),
    Fault(
        "quantization-config-wrong",
        "pack-quantized",
        config(quantization_config__ignore=["lm_head", f"re:a{{{9**30}}}"]),
    ),
    Fault(
        "quantization-config-wrong",
        "pack-quantized",
        config(quantization_config__ignore=["lm_head", "re:" + "(" * 5_000]),
    ),
    Fault("quantization-config-wrong", "awq-gemm", config(quantization_config__modules_to_not_convert="lm_head")),
    Fault("quantization-config-wrong", "pack-quantized", config(**{f"{GROUP}__actorder": "sideways"})),
    Fault("quantization-config-wrong", "int-quantized", config(**{f"{GROUP}__strategy": "rows"})),
    Fault("no-kernel", "int-quantized", config(quantization_config__config_groups__group_0__input_activations=None)),
    Fault(
        "sparsity-config",
        "int-quantized",
        config(quantization_config__sparsity_config={"format": "sparse-24-bitmask", "targets": ["Linear"]}),
    ),
    Fault("scale-not-finite", "pack-quantized", fill(f"{FIRST}.weight_scale", np.nan)),
    Fault("scale-not-positive", "gptq-v1", fill(f"{FIRST}.scales", 0.0)),
    Fault("scale-denormal", "int-quantized", fill(f"{FIRST}.weight_scale", 1e-6)),
    Fault("weights-not-finite", "awq-gemm", fill(f"{NORM}.weight", np.inf)),
    Fault("zero-point-not-symmetric", "gptq-v1", fill(f"{FIRST}.qzeros", 0x77777773)),
    Fault("zero-point-not-symmetric", "pack-quantized-asym", config(**{f"{GROUP}__symmetric": True})),
    Fault("group-index-ignored", "gptq-v1-desc-act", config(quantization_config__desc_act=False)),
    Fault("group-index-range", "gptq-v1", fill(f"{FIRST}.g_idx", -1)),
    Fault("group-index-uneven", "gptq-v1", fill(f"{FIRST}.g_idx", 0, 128)),
    Fault("group-index-uneven", "gptq-v1-desc-act", fill(f"{FIRST}.g_idx", 1, 70), allowed=ORDERED),
    Fault("group-index-differs", "gptq-v1-desc-act", reordered(K), is_compared=False, allowed=ORDERED),
    Fault("groups-mixed", "gptq-v1-desc-act", reordered(FIRST), weighs=True, allowed=ORDERED),
    Fault("groups-mixed", "gptq-v1", rolled(f"{FIRST}.scales", 0), weighs=True),
    Fault("groups-mixed", "pack-quantized", rolled(f"{FIRST}.weight_scale", 1), weighs=True),
    Fault("zero-point-offset", "gptq-v1", config(quantization_config__checkpoint_format="gptq_v2")),
    Fault("zero-point-range", "pack-quantized-asym", stray_zero_points),
    Fault("fused-scales-differ", "float-quantized-static", scaled("model.layers.1.self_attn.k_proj.weight_scale", 30)),
    Fault("input-scale-foreign", "float-quantized-static", scaled(f"{K}.input_scale", 1.5), is_compared=False),
    Fault("input-scale-foreign", "float-quantized-static", swapped(f"{Q}.input_scale", f"{OUT}.input_scale")),
    Fault("input-scale-foreign", "float-quantized-static", inputs_of_down_proj),
    Fault("input-scale-foreign", "float-quantized-static", scaled(f"{NORM}.weight", 0.3), is_compared=False),
    Fault("kv-scale-missing", "float-quantized-static", drop("model.layers.1.self_attn.k_scale")),
    Fault("kv-scale-missing", "int-quantized", config(quantization_config__kv_cache_scheme=CACHE)),
    Fault("kv-scale-uncalibrated", "float-quantized-static", kv_scales(1.0)),
    Fault("kv-scale-uncalibrated", "float-quantized-static", kv_scales(1.0, ".k_scale")),
    Fault("kv-cache-scheme", "float-quantized-static", config(quantization_config__kv_cache_scheme__type="int")),
    Fault("group-split", "gptq-v1", config(), size=4),
    Fault("tokenizer-missing", "awq-gemm", lambda opened: (opened.folder / "tokenizer.json").unlink()),
    Fault("tokenizer-unreadable", "awq-gemm", lambda o: (o.folder / "tokenizer.json").write_text("{") and None),
    Fault("tokenizer-truncation", "int-quantized", change("tokenizer.json", truncation={"max_length": 512})),
    Fault("tokenizer-padding", "int-quantized", change("tokenizer.json", padding={"strategy": {"Fixed": 512}})),
    Fault("tokenizer-differs", "int-quantized", swapped_tokens),
    Fault("tokenizer-differs", "gptq-v1", change("tokenizer.json", decoder={"type": "Fuse"})),
    Fault(
        "tokenizer-differs",
        "gptq-v1",
        change(
            "tokenizer.json",
            post_processor={
                "type": "TemplateProcessing",
                "single": [
                    {"SpecialToken": {"id": "<eos>", "type_id": 0}},
                    {"Sequence": {"id": "A", "type_id": 0}},
                ],
            },
        ),
    ),
    Fault("added-tokens-differ", "int-quantized", added_token(200, "<tool>")),
    Fault(
        "added-tokens-differ",
        "int-quantized",
        change("tokenizer_config.json", added_tokens_decoder={"200": {"content": "<tool>", "special": True}}),
    ),
    Fault("special-tokens-differ", "int-quantized", change("tokenizer_config.json", eos_token="a")),
    Fault("special-tokens-differ", "int-quantized", another_beginning),
    Fault("vocabulary-beyond-embedding", "int-quantized", added_token(300, "<tool>"), is_compared=False),
    Fault("vocabulary-size", "int-quantized", config(vocab_size=320)),
    Fault("vocabulary-size", "int-quantized", cut_head, is_compared=False),
    Fault("head-missing", "int-quantized", config(tie_word_embeddings=False), is_compared=False),
    Fault("head-missing", "gptq-v1", config(tie_word_embeddings=...), is_compared=False),
    Fault("head-tied-and-stored", "int-quantized", added("lm_head.weight", np.ones((257, 64), np.float16))),
    Fault("processor-missing", "gptq-v1", without_processor),
    Fault("template-missing", "gptq-v1", with_template(None)),
    Fault("template-differs", "gptq-v1", with_template(TEMPLATE.replace("<|", "["))),
    Fault("template-twice", "gptq-v1", two_templates),
    Fault("template-broken", "gptq-v1", with_template(TEMPLATE + "{% endif %}")),
    Fault("eos-differs", "gptq-v1", change("generation_config.json", eos_token_id=[256, 10])),
    Fault("eos-contradicts", "gptq-v1", config(eos_token_id=10)),
    Fault("eos-contradicts", "gptq-v1", change("generation_config.json", eos_token_id=[10]), is_compared=False),
    Fault("eos-unknown", "gptq-v1", change("generation_config.json", eos_token_id=999), is_compared=False),
    Fault("config-differs", "gptq-v1", config(hidden_act="gelu")),
    Fault("config-differs", "gptq-v1", config(hidden_act=...)),
    Fault("config-differs", "gptq-v1", config(rms_norm_eps=...)),
    Fault("config-differs", "baseline", config(architectures=...)),
    Fault("config-shape-differs", "gptq-v1", config(num_attention_heads=8, num_key_value_heads=8, head_dim=8)),
    Fault("config-misfit", "gptq-v1", config(num_attention_heads=8), is_compared=False),
    Fault("config-misfit", "awq-gemm", config(num_key_value_heads=2), is_compared=False),
    Fault("config-misfit", "baseline", config(head_dim=..., num_attention_heads=3), is_compared=False),
    Fault("config-misfit", "float-quantized", config(intermediate_size=256), is_compared=False),
    Fault("config-misfit", "pack-quantized", config(hidden_size=128), is_compared=False),
    Fault("rope-differs", "gptq-v1", config(rope_parameters={"rope_theta": 10000.0, "rope_type": "default"})),
    Fault("rope-differs", "gptq-v1", config(rope_theta=10000.0)),
    Fault("rope-differs", "gptq-v1", config(rope_scaling={"type": "linear", "factor": 2.0})),
    Fault("rope-differs", "gptq-v1", config(rope_parameters={"rope_type": "yarm", "rope_theta": 50000.0})),
    Fault("dtype-cast", "gptq-v1", config(dtype="bfloat16")),
    Fault("dtype-unknown", "gptq-v1", config(dtype="auto")),
    Fault("generation-unreadable", "gptq-v1", lambda o: (o.folder / "generation_config.json").write_text("{") and None),
    Fault("sampling-differs", "gptq-v1", change("generation_config.json", do_sample=True, temperature=0.1)),
    Fault("sampling-differs", "gptq-v1", change("generation_config.json", suppress_tokens=[1, 2], min_new_tokens=5)),
    Fault("context-differs", "gptq-v1", change("tokenizer_config.json", model_max_length=16)),
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
    Fault("scale-drift", "pack-quantized", swapped(f"{Q}.weight_scale", f"{K}.weight_scale"), weighs=True),
    Fault("scale-drift", "gptq-v1", swapped(f"{Q}.scales", f"{K}.scales"), weighs=True),
    Fault("weight-error-high", "int-quantized", swapped(f"{Q}.weight_scale", f"{K}.weight_scale"), weighs=True),
    Fault("weight-error-high", "float-quantized", scaled(f"{GATE}.weight_scale", 1.1), weighs=True),
    Fault("weight-error-high", "awq-gemm", scaled(f"{GATE}.scales", 1.15), weighs=True),
    Fault("weight-outlier", "int-quantized", scaled(f"{GATE}.weight_scale", 1.05), weighs=True),
    Fault("weights-not-finite", "int-quantized", fill("model.embed_tokens.weight", np.nan), weighs=True),
    Fault("plain-tensor-differs", "awq-gemm", scaled("model.embed_tokens.weight", 1.1), weighs=True),
    Fault("plain-tensor-differs", "int-quantized", fill("model.norm.weight", 0.0, 64), weighs=True),
    Fault(
        "plain-tensor-differs", "pack-quantized", both(attention_left_plain, scaled(f"{Q}.weight", 1.1)), weighs=True
    ),
    Fault("plain-tensor-differs", "int-quantized", both(attention_left_plain, flipped(f"{OUT}.weight")), weighs=True),
    Fault("plain-tensor-differs", "int-quantized", both(with_moved_scales, flipped(f"{V}.weight")), weighs=True),
    Fault("weights-not-finite", "int-quantized", both(attention_left_plain, fill(f"{V}.weight", np.nan)), weighs=True),
    Fault("weights-not-finite", "int-quantized", both(attention_left_plain, fill(f"{Q}.weight", np.inf)), weighs=True),
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
    planted = [finding for finding in found.findings if finding.code not in fault.allowed]
    assert [each.code for each in planted] == [fault.code], [(f.code, f.places, f.detail) for f in found.findings]
    (finding,) = planted
    assert finding.severity is catalogue.CODES[fault.code].severity
    assert finding.breaks and finding.fix and finding.places


HARMLESS: dict[str, tuple[str, Plant]] = {
    "an index that says a name twice, at last rightly": ("int-quantized", index_that_says_a_name_twice(True)),
    "metadata of null": ("int-quantized", rewritten(lambda h, body: ({**h, "__metadata__": None}, body))),
    "metadata": ("int-quantized", rewritten(lambda h, body: ({**h, "__metadata__": {"format": "pt"}}, body))),
    "half, torch's other name": ("gptq-v1", config(dtype="half")),
    "ignored patterns that match nothing": (
        "pack-quantized", config(quantization_config__ignore=["lm_head", "re:.*vision.*"]),
    ),
    "nothing excluded": ("awq-gemm", config(quantization_config__modules_to_not_convert=None)),
    "a part of no name excluded": ("awq-gemm", config(quantization_config__modules_to_not_convert=["visual"])),
    "scales of a cache that is not quantized": (
        "float-quantized-static", config(quantization_config__kv_cache_scheme=None),
    ),
    "static order, whose columns were put back": ("pack-quantized", config(**{f"{GROUP}__actorder": "static"})),
    "rope in transformers 4's words": ("gptq-v1", config(rope_parameters=..., rope_theta=50000.0)),
    "rope written twice alike": ("gptq-v1", config(rope_theta=50000.0)),
    "a token whose number no vocabulary reaches": (
        "gptq-v1", change("tokenizer_config.json", added_tokens_decoder={"9" * 5000: {"content": "<tool>"}}),
    ),
    "sampling that is off, said or left unsaid": (
        "gptq-v1", change("generation_config.json", do_sample=False, temperature=1.0, top_p=1.0, repetition_penalty=None),
    ),
    "no token to pad with": ("gptq-v1", change("generation_config.json", pad_token_id=None)),
    "fields whose absence means what the baseline says": ("gptq-v1", config(num_key_value_heads=..., head_dim=...)),
    "fields in another part of config.json": ("gptq-v1", nested),
    "a tokenizer's limit beyond the model's": ("gptq-v1", change("tokenizer_config.json", model_max_length=4096)),
    "two tokens that end an answer, one of them in config.json": (
        "gptq-v1", both(config(eos_token_id=[256, 10]), change("generation_config.json", eos_token_id=256)),
    ),
    "no generation config": ("gptq-v1", lambda o: (o.folder / "generation_config.json").unlink()),
    "scales in bfloat16": ("gptq-v1", in_bfloat16(f"{FIRST}.scales")),
    "packed scales in bfloat16": ("pack-quantized", in_bfloat16(f"{FIRST}.weight_scale")),
    "tokens that are told twice alike": (
        "gptq-v1",
        change("tokenizer_config.json", added_tokens_decoder={"256": {"content": "<eos>", "special": True}}),
    ),
    "the same template in another place": ("gptq-v1", template_of_settings(TEMPLATE)),
    "a sparsity that was given up": (
        "int-quantized", config(quantization_config__sparsity_config={"format": "dense", "targets": []}),
    ),
    "an attention that was left plain": ("int-quantized", attention_left_plain),
    "scales that were moved into plain layers": ("pack-quantized", with_moved_scales),
    "an unquantized model in two forms": ("baseline", beside_consolidated),
    "a quantized model in two forms": (
        "float-quantized", both(beside_consolidated, change("params.json", quantization=FP8_OF_MISTRAL)),
    ),
    "GPTQ with another width for some layers": ("gptq-v1", config(quantization_config__dynamic={"+:.*x": {"bits": 8}})),
    "inputs with a zero point": ("int-quantized", with_asymmetric_inputs),
    "FP8 scales under transformers' names": ("float-quantized-static", in_transformers_words),
    "a cast that the baseline has too": ("gptq-v1", in_both_casts),
    "an adapter's config beside": ("gptq-v1", lambda o: (o.folder / "adapter_config.json").write_text("{}") and None),
}  # fmt: skip


@pytest.mark.parametrize("name", HARMLESS)
def test_what_is_odd_and_does_no_harm_is_no_finding(name: str, tmp_path: Path) -> None:
    source, plant = HARMLESS[name]
    opened = Opened(FIXTURES / source, tmp_path / "copy")
    plant(opened)
    baseline = tmp_path / "base" if (tmp_path / "base").exists() else BASELINE
    found = inspect(opened.close(), baseline, weights=True)
    assert found.findings == ()
    assert "weights" in found.checked


def test_a_pointer_of_git_lfs_is_called_one(tmp_path: Path) -> None:
    folder = Opened(FIXTURES / "gptq-v1", tmp_path / "copy").folder
    (folder / "model.safetensors").write_text(
        f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"
    )
    (finding,) = inspect(folder).findings
    assert finding.code == "shard-unreadable"
    assert "git lfs pull" in finding.detail


def test_an_output_layer_that_ties_make_useless_is_told_by_its_values(tmp_path: Path) -> None:
    for value, expected in ((1.0, {"head-untied", "head-tied-and-stored"}), (None, {"head-tied-and-stored"})):
        opened = Opened(FIXTURES / "int-quantized", tmp_path / str(value))
        head = opened.arrays["model.embed_tokens.weight"].copy()
        opened.set("lm_head.weight", head if value is None else np.full_like(head, value))
        assert codes(inspect(opened.close(), BASELINE, weights=True)) == expected


def test_autoawqs_fault_on_cpus_is_found_by_the_weights_alone() -> None:
    assert codes(inspect(FIXTURES / "awq-gemm-corrupted", BASELINE)) == set(), "it is well-formed"
    found = inspect(FIXTURES / "awq-gemm-corrupted", BASELINE, weights=True)
    assert codes(found) == {"weight-error", "weight-error-high"}
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
        "expert-group-split", "expert-unreached", "router-quantized", "tensor-names-differ",
        "weights-missing", "index-unreadable", "head-untied",
    }  # fmt: skip
    assert {fault.code for fault in FAULTS} | elsewhere == set(catalogue.CODES)
    assert len({fault.code for fault in FAULTS}) >= 20


def test_what_no_engine_can_serve_is_an_error_and_what_the_gate_can_measure_is_not() -> None:
    of = {code.name: code.severity for code in catalogue.CODES.values()}
    assert of["shard-truncated"] is of["tensor-missing"] is of["scale-not-finite"] is Severity.ERROR
    assert of["rope-differs"] is of["no-kernel"] is of["template-differs"] is Severity.WARNING
