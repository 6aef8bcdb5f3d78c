"""The fake engine's model: a prompt, a seed and planted faults in; text, token ids and token scores out. Pure.

It answers by extraction: the sentences of the prompt that share the rarest words with its question, which is what a
needle test asks for. Every choice is a hash of what it may depend on, so two variants without faults agree, and
a lower accuracy loses exactly the answers at the margin: paired comparisons see what was planted and nothing else.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from qgate.schemas.evalset import Message

VOCABULARY = 49_152
NUM_SPECIAL = 16
EOS_ID = 2
TAIL_MASS = 0.02
"""Probability of everything outside the candidates, at every position."""
CANDIDATES = 32
NUM_QUOTED = 2
"""Sentences that a right answer quotes, where there are so many."""

_SENTENCE = re.compile(r"[^.!?。！？؟\n]+[.!?。！？؟]*")
_PIECE = re.compile(r"\s?[^\W\d_\u2e80-\u9fff\uac00-\ud7af]+|\s?\d|\s|.", re.DOTALL)
_WORD = re.compile(r"[\u2e80-\u9fff]|[^\W\u2e80-\u9fff]+")


def uniform(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` and nothing else."""
    return _hash(parts) / 2**64


def _hash(parts: Sequence[object]) -> int:
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")


def prompt_text(messages: Sequence[Message]) -> str:
    """The chat as the fake template renders it."""
    turns = "".join(f"<|im_start|>{message.role}\n{message.content}<|im_end|>\n" for message in messages)
    return f"{turns}<|im_start|>assistant\n"


def tokenize(text: str) -> tuple[str, ...]:
    """Pieces that join to `text`: words with their leading space, single digits, single CJK characters."""
    return tuple(_PIECE.findall(text))


def token_id(piece: str) -> int:
    """Id of a piece; never a special token's."""
    return NUM_SPECIAL + _hash((piece,)) % (VOCABULARY - NUM_SPECIAL)


def as_ids(ids: Sequence[int]) -> NDArray[np.int32]:
    """Ids as an int32 array."""
    return np.asarray(ids, dtype=np.int32)


def right_answer(messages: Sequence[Message]) -> str:
    """The sentences nearest to the question, in their order; the question itself where there is no other.

    The question is the last sentence with a question mark, else the last sentence.
    """
    sentences = _sentences(messages) or [""]
    asking = [i for i, sentence in enumerate(sentences) if sentence.endswith(("?", "？", "؟"))]
    question = sentences.pop(asking[-1] if asking else -1)
    if not sentences:
        return question
    spread = Counter(word for sentence in (*sentences, question) for word in set(_words(sentence)))
    asked = set(_words(question))
    weight = [sum(1 / spread[word] for word in asked & set(_words(sentence))) for sentence in sentences]
    best = sorted(sorted(range(len(sentences)), key=lambda i: (-weight[i], i))[:NUM_QUOTED])
    return " ".join(sentences[i] for i in best)


def wrong_answer(messages: Sequence[Message], seed: int) -> str:
    """A fluent answer that says nothing: it names how the question begins, which no scorer takes for an answer."""
    openings = ("I am not sure about that.", "That cannot be told from the text.", "There is nothing to add here.")
    return openings[_hash((prompt_text(messages), seed, "wrong")) % len(openings)]


def loop(text: str, num_tokens: int) -> str:
    """`text`, then its last sentence again and again until `num_tokens` are full."""
    sentences = _SENTENCE.findall(text)
    phrase = f" {(sentences[-1] if sentences else 'and so on').strip()}"
    return text + phrase * (1 + num_tokens // max(1, len(tokenize(phrase))))


def endless(pieces: Sequence[str], num_tokens: int) -> tuple[str, ...]:
    """An answer that nothing ends: the next turns follow until `num_tokens` are full."""
    turns = tokenize("<|im_end|>\n<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n" + "".join(pieces))
    return (*pieces, *turns * (1 + num_tokens // max(1, len(turns))))[:num_tokens]


def garble(text: str) -> str:
    """`text` as broken weights tell it: other scripts in the middle of words, and characters that decode to nothing."""
    salad = ("ðŸ", "\ufffd", " сло", "ปร", "ㅋ", "Ã©", " queſ", "ዐ")
    pieces = tokenize(text)[:60] or ("x",)
    return "".join(piece + salad[_hash((piece, index)) % len(salad)] for index, piece in enumerate(pieces))


def scores(
    context: str, ids: Sequence[int], *, top_k: int, noise: Sequence[object], noise_nats: float, loss_nats: float
) -> tuple[NDArray[np.float32], NDArray[np.int32], NDArray[np.float32]]:
    """Log-probabilities of `ids` after `context`: of the forced id [T], and the top ids and values [T, K].

    Candidate logits depend on the context alone; a normal deviation of `noise_nats` depends on `noise` too, and
    `loss_nats` is taken off the forced id's logit. The candidates and a constant tail sum to one.
    """
    forced = np.asarray(ids, dtype=np.int32)
    rng = np.random.default_rng(_hash((context, *ids)))
    logits = rng.gumbel(size=(len(forced), CANDIDATES))
    drawn = rng.integers(NUM_SPECIAL, VOCABULARY, size=(len(forced), CANDIDATES), dtype=np.int32)
    steps = np.arange(CANDIDATES, dtype=np.int32) * (1 + drawn[:, :1] % (VOCABULARY // CANDIDATES - 1))
    others = NUM_SPECIAL + (forced[:, None] - NUM_SPECIAL + steps) % (VOCABULARY - NUM_SPECIAL)  # none stands twice
    others[:, 0] = forced
    logits[:, 0] = logits.max(axis=1) + rng.normal(2.0, 1.5, len(forced)) - loss_nats
    logits += np.random.default_rng(_hash((context, *ids, *noise))).normal(0.0, 1.0, logits.shape) * noise_nats
    logprobs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True) + np.log1p(-TAIL_MASS)
    order = np.argsort(-logprobs, axis=1, kind="stable")[:, :top_k]
    top_ids = np.take_along_axis(others, order, axis=1)
    top_logprobs = np.take_along_axis(logprobs, order, axis=1)
    return logprobs[:, 0].astype(np.float32), top_ids, top_logprobs.astype(np.float32)


def _sentences(messages: Sequence[Message]) -> list[str]:
    text = "\n".join(message.content for message in messages if message.role == "user")
    return [found.strip() for found in _SENTENCE.findall(text) if found.strip()]


def _words(sentence: str) -> list[str]:
    return _WORD.findall(sentence.lower())
