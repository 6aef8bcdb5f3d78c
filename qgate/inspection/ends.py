"""Tokens that end an answer: config.json's and generation_config.json's, known, of one mind, and the baseline's. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from qgate.inspection.codes import WARNING, Code
from qgate.inspection.facts import Facts
from qgate.inspection.tokenizer import tokens_of
from qgate.schemas.inspection import Finding

EOS_DIFFERS = Code(
    "eos-differs",
    WARNING,
    breaks="answers do not stop where the baseline's do",
    fix="copy eos_token_id from the baseline's config.json and generation_config.json",
)
EOS_CONTRADICTS = Code(
    "eos-contradicts",
    WARNING,
    breaks="engines that read only one of config.json and generation_config.json stop elsewhere, or never",
    fix="write the token that ends an answer into both",
)
EOS_UNKNOWN = Code(
    "eos-unknown",
    WARNING,
    breaks="answers never stop: no such token is in the vocabulary",
    fix="take eos_token_id from the model's authors",
)

CODES = (EOS_DIFFERS, EOS_CONTRADICTS, EOS_UNKNOWN)


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """Findings on the tokens alone, then against the baseline's."""
    ends, known = eos_ids(facts), set(tokens_of(facts.tokenizer).values())
    if known and ends and not ends & known:
        yield EOS_UNKNOWN.at("eos_token_id", f"{sorted(ends)}, and the tokenizer has no such token")
    if baseline is not None and ends != eos_ids(baseline):
        yield EOS_DIFFERS.at("eos_token_id", f"{sorted(ends)}, the baseline's {sorted(eos_ids(baseline))}")
        return
    why = _contradiction(facts)
    is_theirs = baseline is not None and _contradiction(baseline) is not None
    if why is not None and not is_theirs and (ends & known or not known):
        yield EOS_CONTRADICTS.at(("config.json: eos_token_id", "generation_config.json: eos_token_id"), why)


def eos_ids(facts: Facts) -> frozenset[int]:
    """Tokens that end an answer: those of generation_config.json, else of config.json."""
    return _ends(facts.generation) or _ends(facts.text_config)


def _ends(place: Mapping[str, Any]) -> frozenset[int]:
    said = place.get("eos_token_id")
    return frozenset(number for number in (said if isinstance(said, list) else [said]) if isinstance(number, int))


def _contradiction(facts: Facts) -> str | None:
    """Both files name ends of an answer, and no token is in both."""
    mine, other = _ends(facts.generation), _ends(facts.config) | _ends(facts.text_config)
    if mine and other and not mine & other:
        return f"config.json says {sorted(other)}, generation_config.json {sorted(mine)}"
    return None
