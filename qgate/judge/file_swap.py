"""Two checkpoints' small files in, what differs in them and what one would be with the other's parts out. Pure.

Two kinds of parts are told apart, because they are different causes: what makes the prompt (chat template, tokenizer),
and what ends an answer or shapes the model (EOS tokens, config.json, generation_config.json).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from qgate.schemas.repro import FileDifference

TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "vocab.json", "merges.txt", "added_tokens.json")
TOKENIZER_CONFIG, CONFIG, GENERATION = "tokenizer_config.json", "config.json", "generation_config.json"
SMALL_FILES = (*TEMPLATE_FILES, *TOKENIZER_FILES, TOKENIZER_CONFIG, CONFIG, GENERATION)
"""Every file that is compared or swapped."""
OF_THE_WEIGHTS = ("quantization_config", "compression_config", "dtype", "torch_dtype", "transformers_version")
"""Fields of config.json that belong to a checkpoint's own weights."""
IGNORED = frozenset({*OF_THE_WEIGHTS, "_name_or_path", "_from_model_config", "architectures", "use_cache"})
ENDS = ("eos_token", "bos_token", "pad_token", "unk_token")
MOST_SHOWN = 120

Files = Mapping[str, bytes]
"""File name to content, of those that a checkpoint has."""


def differences(candidate: Files, baseline: Files) -> tuple[FileDifference, ...]:
    """What the two say differently and what could make a difference."""
    return (*_of_prompt(candidate, baseline), *_of_configuration(candidate, baseline))


def with_template(candidate: Files, baseline: Files) -> dict[str, bytes | None]:
    """The candidate's files as they would be with the baseline's template and tokenizer; None: without that file."""
    changed: dict[str, bytes | None] = {name: baseline.get(name) for name in (*TEMPLATE_FILES, *TOKENIZER_FILES)}
    if TOKENIZER_CONFIG in baseline:
        own, other = _object(candidate, TOKENIZER_CONFIG), _object(baseline, TOKENIZER_CONFIG)
        changed[TOKENIZER_CONFIG] = _json(other | {name: own[name] for name in ENDS if name in own})
    return _only_changes(changed, candidate)


def with_configuration(candidate: Files, baseline: Files) -> dict[str, bytes | None]:
    """The candidate's files as they would be with the baseline's EOS tokens and configuration."""
    own, other = _object(candidate, CONFIG), _object(baseline, CONFIG)
    kept = {name: own[name] for name in OF_THE_WEIGHTS if name in own}
    config = {name: value for name, value in other.items() if name not in OF_THE_WEIGHTS} | kept
    changed: dict[str, bytes | None] = {GENERATION: baseline.get(GENERATION), CONFIG: _json(config)}
    if TOKENIZER_CONFIG in candidate:
        own, other = _object(candidate, TOKENIZER_CONFIG), _object(baseline, TOKENIZER_CONFIG)
        without = {name: value for name, value in own.items() if name not in ENDS}
        changed[TOKENIZER_CONFIG] = _json(without | {name: other[name] for name in ENDS if name in other})
    return _only_changes(changed, candidate)


def chat_template(files: Files) -> str | None:
    """The chat template, wherever it stands; vLLM and transformers look in this order."""
    if TEMPLATE_FILES[0] in files:
        return files[TEMPLATE_FILES[0]].decode("utf-8", "replace")
    for name in (TEMPLATE_FILES[1], TOKENIZER_CONFIG):
        if (found := _object(files, name).get("chat_template")) is not None:
            return found if isinstance(found, str) else json.dumps(found, sort_keys=True)
    return None


def generation_config(files: Files) -> dict[str, Any]:
    """generation_config.json, empty where there is none."""
    return _object(files, GENERATION)


def arithmetic(files: Files) -> str | None:
    """The dtype that config.json says."""
    config = _object(files, CONFIG)
    said = config.get("dtype") or config.get("torch_dtype")
    return said if isinstance(said, str) else None


def _of_prompt(candidate: Files, baseline: Files) -> Iterator[FileDifference]:
    one, other = chat_template(candidate), chat_template(baseline)
    if one != other:
        yield _difference("chat template", "template_or_tokenizer", one, other)
    for name in TOKENIZER_FILES:
        if name in candidate or name in baseline:
            one_file, other_file = _value(candidate.get(name)), _value(baseline.get(name))
            if one_file != other_file:
                yield _difference(name, "template_or_tokenizer", _size(candidate, name), _size(baseline, name))


def _of_configuration(candidate: Files, baseline: Files) -> Iterator[FileDifference]:
    for name in (CONFIG, GENERATION):
        yield from _fields(name, _object(candidate, name), _object(baseline, name), IGNORED)
    one, other = _object(candidate, TOKENIZER_CONFIG), _object(baseline, TOKENIZER_CONFIG)
    yield from _fields(TOKENIZER_CONFIG, _ends(one), _ends(other), frozenset())


def _fields(
    name: str, one: Mapping[str, Any], other: Mapping[str, Any], ignored: frozenset[str]
) -> Iterator[FileDifference]:
    for field in sorted((one.keys() | other.keys()) - ignored):
        if one.get(field) != other.get(field):
            yield _difference(f"{name}: {field}", "eos_or_configuration", one.get(field), other.get(field))


def _difference(where: str, of: Any, one: Any, other: Any) -> FileDifference:
    return FileDifference(where=where, of=of, candidate=_shown(one), baseline=_shown(other))


def _shown(value: Any) -> str:
    text = "missing" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}… ({len(text)} characters)"


def _size(files: Files, name: str) -> str | None:
    return f"{len(files[name])} bytes" if name in files else None


def _ends(tokenizer_config: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _token(tokenizer_config[name]) for name in ENDS if name in tokenizer_config}


def _token(value: Any) -> Any:
    return value.get("content") if isinstance(value, dict) else value


def _value(data: bytes | None) -> Any:
    """JSON by its meaning, since two tools lay it out differently; anything else by its bytes."""
    if data is None:
        return None
    try:
        return json.loads(data)
    except ValueError:
        return data


def _object(files: Files, name: str) -> dict[str, Any]:
    value = _value(files.get(name))
    return value if isinstance(value, dict) else {}


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def _only_changes(changed: Mapping[str, bytes | None], candidate: Files) -> dict[str, bytes | None]:
    return {name: data for name, data in changed.items() if _value(data) != _value(candidate.get(name))}
