"""Embedding and output layer against vocab_size and the tokenizer's tokens. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from qgate.inspection.codes import ERROR, NOTE, WARNING, Code
from qgate.inspection.facts import FLOATS, Facts
from qgate.inspection.tokenizer import tokens_of
from qgate.schemas.inspection import Finding

VOCABULARY_SIZE = Code(
    "vocabulary-size",
    ERROR,
    breaks="vLLM checks the rows of embedding and output layer against vocab_size and stops",
    fix="set vocab_size of config.json to the rows of the embedding",
)
HEAD_MISSING = Code(
    "head-missing",
    ERROR,
    breaks="the output layer starts from random weights",
    fix="set tie_word_embeddings, if the model ties them; else save lm_head",
)
HEAD_TIED_AND_STORED = Code(
    "head-tied-and-stored",
    NOTE,
    breaks="nothing: a tied lm_head is stored again, and its bytes are not used",
    fix="remove lm_head.weight to save space",
)
VOCABULARY_BEYOND_EMBEDDING = Code(
    "vocabulary-beyond-embedding",
    WARNING,
    breaks="a prompt with one of these tokens stops the server's request",
    fix="remove the tokens, or enlarge the embedding",
)

CODES = (VOCABULARY_SIZE, HEAD_MISSING, HEAD_TIED_AND_STORED, VOCABULARY_BEYOND_EMBEDDING)
EMBEDDING = re.compile(r"^(model\.|transformer\.|language_model\.)*(embed_tokens|wte|word_embeddings)\.weight$")
HEADS = ("lm_head.", "embed_out.", "output.", "head.")
GENERATES = ("ForCausalLM", "ForConditionalGeneration")
UNTIED = frozenset(
    {
        "deepseek_v2", "deepseek_v3", "exaone4", "glm", "glm4", "gpt_neox", "gpt_oss", "granite", "granitemoe", "helium",
        "llama", "llama4_text", "ministral", "mistral", "mixtral", "nemotron", "olmo", "olmo2", "phi", "phi3", "phimoe",
        "qwen2", "qwen2_moe", "qwen3", "qwen3_moe", "stablelm",
    }
)  # fmt: skip
"""Model types whose configs in transformers (4.46, 5.17 and 5.24) take tie_word_embeddings as false where it is not said."""

MORE_ROWS = {"mllama_text_model": 8}
"""Rows of the embedding beyond vocab_size: Llama 3.2 Vision's for the image token, in transformers and vLLM."""


def check(facts: Facts, baseline: Facts | None) -> Iterator[Finding]:
    """Findings on the rows of the embedding, and on the output layer."""
    name = next((name for name in facts.headers if EMBEDDING.match(name)), None)
    if name is None or facts.headers[name].dtype not in FLOATS or len(facts.headers[name].shape) != 2:
        return
    rows, said = facts.headers[name].shape[0], facts.text_config.get("vocab_size")
    more = MORE_ROWS.get(str(facts.text_config.get("model_type")), 0)
    for each, extra in ((name, more),) if tied(facts) else ((name, more), ("lm_head.weight", 0)):
        header = facts.headers.get(each)
        if isinstance(said, int) and header is not None and header.shape and header.shape[0] != said + extra:
            yield VOCABULARY_SIZE.at(each, f"it has {header.shape[0]} rows, vocab_size is {said}")
    yield from _tokens(facts, baseline, rows)
    yield from _head(facts)


def _tokens(facts: Facts, baseline: Facts | None, rows: int) -> Iterator[Finding]:
    """Tokens beyond the last row, unless the baseline has them there too."""
    known = set(tokens_of(baseline.tokenizer).values()) if baseline is not None else set()
    beyond = {token: number for token, number in tokens_of(facts.tokenizer).items() if number >= rows}
    new = [token for token, number in beyond.items() if number not in known]
    if new:
        detail = f"token {beyond[new[0]]}, the embedding has {rows} rows"
        yield VOCABULARY_BEYOND_EMBEDDING.at([repr(token) for token in new], detail)


def _head(facts: Facts) -> Iterator[Finding]:
    is_tied = tied(facts)
    is_untied = is_tied is False or (is_tied is None and str(facts.config.get("model_type")) in UNTIED)
    heads = [name for name in facts.headers if any(f".{name}".find(f".{head}") >= 0 for head in HEADS)]
    is_embedding = any(name.endswith("embed_tokens.weight") for name in facts.headers)
    if is_untied and generates(facts) and not heads and is_embedding:
        why = "false" if is_tied is False else f"not said, which is false for {facts.config['model_type']}"
        yield HEAD_MISSING.at("lm_head.weight", f"tie_word_embeddings is {why}, and no output layer is stored")
    if is_tied is True and "lm_head.weight" in heads:
        yield HEAD_TIED_AND_STORED.at("lm_head.weight", "tie_word_embeddings is true")


def tied(facts: Facts) -> bool | None:
    """Whether the output layer is the embedding; None where nothing says it, or `text_config` contradicts what is around it.

    vLLM goes by the inner one, transformers by the outer one.
    """
    said = [level.get("tie_word_embeddings") for level in (facts.config, facts.text_config)]
    told = {each for each in said if isinstance(each, bool)}
    return told.pop() if len(told) == 1 else None


def generates(facts: Facts) -> bool:
    """Whether the model has an output layer over its vocabulary."""
    said = facts.config.get("architectures")
    return any(str(name).endswith(GENERATES) for name in (said if isinstance(said, list) else []))
