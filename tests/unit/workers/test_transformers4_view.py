import json
from pathlib import Path
from typing import Any

import pytest

from qgate.workers import transformers4_view

CHECKPOINTS = Path(__file__).parents[2] / "golden" / "checkpoints"


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    source = tmp_path / "source"
    source.mkdir()
    for file in (CHECKPOINTS / "baseline").iterdir():
        (source / file.name).write_bytes(file.read_bytes())
    (source / "chat_template.jinja").write_text("{{ messages }} ü")
    return transformers4_view.view(source, tmp_path / "view")


def read(path: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(path.read_text())
    return value


def test_the_original_stays_as_it_is_and_weights_are_links(shown: Path) -> None:
    source = shown.parent / "source"
    for file in (CHECKPOINTS / "baseline").iterdir():
        assert (source / file.name).read_bytes() == file.read_bytes()
    assert (shown / "model.safetensors").readlink() == source / "model.safetensors"
    assert {file.name for file in shown.iterdir()} == {file.name for file in source.iterdir()}


def test_rope_theta_stands_where_transformers_4_looks_for_it(shown: Path) -> None:
    said = read(shown / "config.json")
    assert said["rope_theta"] == 50000.0
    assert said["rope_scaling"] is None
    assert said["torch_dtype"] == "float16"
    assert not said.keys() & {"rope_parameters", "dtype"}


def test_the_chat_template_stands_in_the_tokenizer_s_config(shown: Path) -> None:
    assert read(shown / "tokenizer_config.json")["chat_template"] == "{{ messages }} ü"


def test_scaled_rope_keeps_its_factors() -> None:
    rope = {"rope_theta": 5e5, "rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0}
    said = transformers4_view.config({"rope_parameters": rope, "partial_rotary_factor": 0.5})
    assert said == {
        "partial_rotary_factor": 0.5,
        "rope_theta": 5e5,
        "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0},
    }


def test_a_checkpoint_of_transformers_4_is_shown_unchanged() -> None:
    said = {"rope_theta": 1e6, "rope_scaling": None, "torch_dtype": "bfloat16"}
    assert transformers4_view.config(said) == said
    assert transformers4_view.tokenizer({"tokenizer_class": "LlamaTokenizer"}) == {"tokenizer_class": "LlamaTokenizer"}


def test_the_tokenizer_s_class_and_added_tokens_have_transformers_4_s_names() -> None:
    said = {"tokenizer_class": "TokenizersBackend", "extra_special_tokens": ["<a>"], "eos_token": "</s>"}
    assert transformers4_view.tokenizer(said) == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "additional_special_tokens": ["<a>"],
        "eos_token": "</s>",
    }


def test_rope_by_kind_of_layer_is_refused_not_guessed() -> None:
    rope = {"full_attention": {"rope_theta": 1e6}, "sliding_attention": {"rope_theta": 1e4}}
    with pytest.raises(ValueError, match="by kind of layer"):
        transformers4_view.config({"rope_parameters": rope})
