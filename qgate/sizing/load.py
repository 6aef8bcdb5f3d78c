"""A run's requests in, how long their prompts and answers can be in tokens out, without the model's tokenizer.

Two answers to the same question: a bound that no byte-level or byte-fallback tokenizer exceeds, for what a server must
be able to take, and a likely length, for how much memory is set aside.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence

from qgate.schemas.answers import GenerateRequest
from qgate.schemas.evalset import Message

TEMPLATE_TOKENS = 256
"""Room for what a chat template writes around the turns (a default system prompt, the date)."""
TURN_TOKENS = 8
ASCII_PER_TOKEN = 3
"""English has about 4.3 characters a token, code and numbers fewer. Other scripts are counted a token a character."""
LEAST_CONTEXT = 2048
_ASCII = re.compile(r"[\x00-\x7f]+")


def bound_tokens(messages: Sequence[Message]) -> int:
    """Tokens of a prompt at most: every token is at least one byte of the text."""
    return TEMPLATE_TOKENS + sum(TURN_TOKENS + len(message.content.encode()) for message in messages)


def likely_tokens(messages: Sequence[Message]) -> int:
    """Tokens of a prompt, rather too many than too few."""
    found = TURN_TOKENS * len(messages)
    for message in messages:
        ascii_chars = sum(map(len, _ASCII.findall(message.content)))
        found += ascii_chars // ASCII_PER_TOKEN + len(message.content) - ascii_chars
    return found


def context_tokens(requests: Iterable[GenerateRequest]) -> int:
    """Context that holds every prompt and its answer, rounded up to a power of two.

    A server's longest context can change its kernels' schedule, and so bytes: it is part of the content key, and the
    rounding keeps a slightly longer item from making every answer anew.
    """
    longest = max((bound_tokens(asked.messages) + asked.sampling.max_tokens for asked in requests), default=1)
    return int(max(LEAST_CONTEXT, 1 << (longest - 1).bit_length()))


def in_flight(arms: Iterable[Sequence[GenerateRequest]], concurrency: int) -> tuple[int, ...]:
    """Likely tokens of each of the `concurrency` longest requests of the heaviest arm: no more are in flight at once."""
    found: list[list[int]] = [
        heapq.nlargest(concurrency, (likely_tokens(asked.messages) + asked.sampling.max_tokens for asked in arm))
        for arm in arms
    ]
    return tuple(max(found, key=sum, default=[]))
