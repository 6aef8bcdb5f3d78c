"""The tokenizer's files against the baseline's, and what calibration left in them. Pure.

Of tokenizer.json only what turns text into ids is compared (vocabulary, merges, normalizer, pre-tokenizer, added
tokens), in one spelling: versions of the library write the same merges as pairs or as text, and add default fields.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from qgate.inspection.codes import ERROR, WARNING, Code
from qgate.inspection.facts import Facts, TokenizerFacts
from qgate.schemas.inspection import Finding

TOKENIZER_MISSING = Code(
    "tokenizer-missing",
    WARNING,
    breaks="nothing turns text into tokens unless the server is given a tokenizer of its own",
    fix="copy the baseline's tokenizer files",
)
TOKENIZER_UNREADABLE = Code(
    "tokenizer-unreadable",
    ERROR,
    breaks="the tokenizer cannot be loaded",
    fix="copy the baseline's tokenizer files",
)
TOKENIZER_TRUNCATION = Code(
    "tokenizer-truncation",
    WARNING,
    breaks="long prompts are cut without a word, at the length of the calibration",
    fix="set truncation of tokenizer.json to null",
)
TOKENIZER_PADDING = Code(
    "tokenizer-padding",
    WARNING,
    breaks="prompts are padded to the calibration's length",
    fix="set padding of tokenizer.json to null",
)
TOKENIZER_DIFFERS = Code(
    "tokenizer-differs",
    WARNING,
    breaks="the same text becomes other tokens than the weights were trained on",
    fix="copy the baseline's tokenizer files",
)
ADDED_TOKENS_DIFFER = Code(
    "added-tokens-differ",
    WARNING,
    breaks="special tokens are split into letters, or stand for others",
    fix="copy the baseline's tokenizer files",
)
SPECIAL_TOKENS_DIFFER = Code(
    "special-tokens-differ",
    WARNING,
    breaks="answers do not stop, or start with another token",
    fix="copy the baseline's tokenizer_config.json",
)

CODES = (
    TOKENIZER_MISSING,
    TOKENIZER_UNREADABLE,
    TOKENIZER_TRUNCATION,
    TOKENIZER_PADDING,
    TOKENIZER_DIFFERS,
    ADDED_TOKENS_DIFFER,
    SPECIAL_TOKENS_DIFFER,
)
FILE = "tokenizer.json"
ANY_OF = frozenset({FILE, "tokenizer.model", "vocab.json", "spiece.model", "tekken.json", "sentencepiece.bpe.model"})
SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token")
ADDS = ("add_bos_token", "add_eos_token")
"""What absence means here, classes of tokenizers differ in."""
SECTIONS = ("model", "normalizer", "pre_tokenizer", "post_processor", "decoder")
NUMBER = re.compile(r"[0-9]{1,9}")
DEFAULTS = {"ignore_merges": False, "byte_fallback": False, "fuse_unk": False, "dropout": None, "use_regex": True}


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """Findings on the tokenizer's own files; chat templates have a module of their own."""
    mine = facts.tokenizer
    for file, why in mine.unreadable.items():
        yield TOKENIZER_UNREADABLE.at(file, why)
    if mine.unreadable:
        return
    if not mine.files & ANY_OF and not any(name.endswith(".tiktoken") for name in facts.files):
        yield TOKENIZER_MISSING.at(FILE, "no file of a tokenizer is there")
        return
    yield from _left_over(mine, baseline)
    if baseline is not None and baseline.tokenizer.files and not baseline.tokenizer.unreadable:
        yield from _against(mine, baseline.tokenizer)


def tokens_of(facts: TokenizerFacts) -> dict[str, int]:
    """Every token to its id, added ones included; empty without a tokenizer.json that lists them."""
    vocabulary = _model(facts).get("vocab")
    found: dict[str, int] = {}
    if isinstance(vocabulary, Mapping):
        found = {str(token): number for token, number in vocabulary.items() if isinstance(number, int)}
    elif isinstance(vocabulary, list):
        found = {str(entry[0]): number for number, entry in enumerate(vocabulary) if isinstance(entry, list) and entry}
    return found | {token: number for number, (token, _) in _added(facts).items()}


def _left_over(mine: TokenizerFacts, baseline: Facts | None) -> Iterator[Finding]:
    """Truncation and padding that the baseline does not have: what a calibration's calls leave in the file."""
    theirs = baseline.tokenizer.tokenizer if baseline is not None else {}
    for field, code in (("truncation", TOKENIZER_TRUNCATION), ("padding", TOKENIZER_PADDING)):
        said = mine.tokenizer.get(field)
        if isinstance(said, Mapping) and said != theirs.get(field):
            yield code.at(f"{FILE}: {field}", json.dumps(said, sort_keys=True)[:160])


def _against(mine: TokenizerFacts, theirs: TokenizerFacts) -> Iterator[Finding]:
    if mine.tokenizer and theirs.tokenizer:
        sections = [name for name in SECTIONS if _section(mine, name) != _section(theirs, name)]
        if sections:
            yield TOKENIZER_DIFFERS.at(
                [f"{FILE}: {name}" for name in sections], "it is another one than the baseline's"
            )
        added, known = _added(mine), _added(theirs)
        changed = [number for number in sorted(added.keys() | known.keys()) if added.get(number) != known.get(number)]
        if changed:
            number = changed[0]
            detail = f"token {number} is {_told(added, number)}, the baseline's is {_told(known, number)}"
            yield ADDED_TOKENS_DIFFER.at([f"{FILE}: added token {each}" for each in changed], detail)
    differing = [name for name in SPECIAL if special_token(mine, name) != special_token(theirs, name)]
    if differing and theirs.settings:
        name = differing[0]
        detail = f"{name} is {special_token(mine, name)!r}, the baseline's is {special_token(theirs, name)!r}"
        yield SPECIAL_TOKENS_DIFFER.at([f"tokenizer_config.json: {each}" for each in differing], detail)
    elif adding := _adding(mine, theirs):
        detail = f"{adding[0]} is {mine.settings[adding[0]]}, the baseline's is {theirs.settings[adding[0]]}"
        yield SPECIAL_TOKENS_DIFFER.at([f"tokenizer_config.json: {each}" for each in adding], detail)


def _adding(mine: TokenizerFacts, theirs: TokenizerFacts) -> list[str]:
    """Which of `ADDS` both say, and not alike."""
    pairs = {name: (mine.settings.get(name), theirs.settings.get(name)) for name in ADDS}
    return [name for name, pair in pairs.items() if None not in pair and pair[0] != pair[1]]


def special_token(facts: TokenizerFacts, name: str) -> str | None:
    """The text of `eos_token` and the like, which is stored as text or as an object."""
    said = facts.settings.get(name)
    if isinstance(said, Mapping):
        said = said.get("content")
    return said if isinstance(said, str) else None


def _model(facts: TokenizerFacts) -> Mapping[str, Any]:
    model = facts.tokenizer.get("model")
    return model if isinstance(model, Mapping) else {}


def _added(facts: TokenizerFacts) -> dict[int, tuple[str, bool]]:
    """Id to text and whether it is special."""
    entries = facts.tokenizer.get("added_tokens")
    return {
        entry["id"]: (str(entry.get("content")), bool(entry.get("special")))
        for entry in (entries if isinstance(entries, list) else [])
        if isinstance(entry, Mapping) and isinstance(entry.get("id"), int)
    } | _added_by_settings(facts)


def _added_by_settings(facts: TokenizerFacts) -> dict[int, tuple[str, bool]]:
    """Tokens of tokenizer_config.json that tokenizer.json does not have: transformers adds them when it loads."""
    said, entries = facts.settings.get("added_tokens_decoder"), facts.tokenizer.get("added_tokens")
    known = [
        each.get("content") for each in (entries if isinstance(entries, list) else []) if isinstance(each, Mapping)
    ]
    return {
        int(number): (entry["content"], bool(entry.get("special")))
        for number, entry in (said.items() if isinstance(said, Mapping) else ())
        if NUMBER.fullmatch(number) and isinstance(entry, Mapping)
        if isinstance(entry.get("content"), str) and entry["content"] not in known
    }


def _told(tokens: Mapping[int, tuple[str, bool]], number: int) -> str:
    return repr(tokens[number][0]) if number in tokens else "none"


def _section(facts: TokenizerFacts, name: str) -> Any:
    """One part of tokenizer.json in its one spelling."""
    if name == "post_processor":
        return _surroundings(facts.tokenizer.get(name))
    value = dict(_model(facts)) if name == "model" else facts.tokenizer.get(name)
    if isinstance(value, dict) and isinstance(merges := value.get("merges"), list):
        value["merges"] = [" ".join(map(str, pair)) if isinstance(pair, list) else str(pair) for pair in merges]
    return _plain(value)


def _surroundings(processor: Any) -> tuple[str, ...]:
    """What is put around a text (`$` stands for it), by whatever kind of post-processor."""
    if not isinstance(processor, Mapping):
        return ("$",)
    steps = processor.get("processors")
    if isinstance(steps, list):
        return next((found for step in steps if (found := _surroundings(step)) != ("$",)), ("$",))
    if "cls" in processor and "sep" in processor:
        return str(processor["cls"]), "$", str(processor["sep"])
    single = processor.get("single")
    if not isinstance(single, list):
        return ("$",)
    special = [each.get("SpecialToken") if isinstance(each, Mapping) else None for each in single]
    return tuple(str(each.get("id")) if isinstance(each, Mapping) else "$" for each in special)


def _plain(value: Any) -> Any:
    """Without fields that hold their default."""
    if isinstance(value, Mapping) and value.get("type") == "ByteLevel":
        value = {key: each for key, each in value.items() if key != "trim_offsets"}
    if isinstance(value, Mapping) and len(value) < 100:
        return {key: _plain(each) for key, each in value.items() if key not in DEFAULTS or each != DEFAULTS[key]}
    if isinstance(value, list) and len(value) < 100:
        return [_plain(each) for each in value]
    return value
