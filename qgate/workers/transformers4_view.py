"""A transformers-5 checkpoint in, a view of it that transformers 4 reads rightly out. Touches the disk; the original never.

transformers 4 ignores `rope_parameters` without a word: rope_theta falls to 10,000, and perplexity rises by a tenth. So
a worker whose package stopped at transformers 4 is given a folder of links to the weights beside rewritten JSON files.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

CONFIG, TOKENIZER, TEMPLATE = "config.json", "tokenizer_config.json", "chat_template.jinja"


def view(source: Path, target: Path) -> Path:
    """Fill the new folder `target` and return it. Raises ValueError for a config that transformers 4 has no words for."""
    target.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.name not in {CONFIG, TOKENIZER}:
            (target / file.name).symlink_to(file.absolute())
    _write(target / CONFIG, config(_read(source / CONFIG)))
    if (source / TOKENIZER).is_file():
        template = source / TEMPLATE
        said = tokenizer(_read(source / TOKENIZER))
        if template.is_file():
            said["chat_template"] = template.read_text(encoding="utf-8")
        _write(target / TOKENIZER, said)
    return target


def config(said: dict[str, Any]) -> dict[str, Any]:
    """config.json in transformers 4's words: rope_theta and rope_scaling for rope_parameters, torch_dtype for dtype."""
    rewritten = {key: value for key, value in said.items() if key not in {"rope_parameters", "dtype"}}
    if "dtype" in said:
        rewritten["torch_dtype"] = said["dtype"]
    rope = said.get("rope_parameters")
    if rope is None:
        return rewritten
    if any(isinstance(value, dict) for value in rope.values()):
        raise ValueError("config.json has rope parameters by kind of layer, which transformers 4 cannot say")
    scaling = {key: value for key, value in rope.items() if key not in {"rope_theta", "partial_rotary_factor"}}
    rewritten |= {key: value for key, value in rope.items() if key in {"rope_theta", "partial_rotary_factor"}}
    rewritten["rope_scaling"] = None if scaling.get("rope_type", "default") == "default" else scaling
    return rewritten


def tokenizer(said: dict[str, Any]) -> dict[str, Any]:
    """tokenizer_config.json in transformers 4's words: its class for a tokenizer.json, a list of added special tokens."""
    rewritten = dict(said)
    if rewritten.get("tokenizer_class") == "TokenizersBackend":
        rewritten["tokenizer_class"] = "PreTrainedTokenizerFast"
    if isinstance(rewritten.get("extra_special_tokens"), list):
        rewritten["additional_special_tokens"] = rewritten.pop("extra_special_tokens")
    return rewritten


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def _write(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
