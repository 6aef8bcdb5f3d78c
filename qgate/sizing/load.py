"""A run's requests in, how long their prompts and answers can be in tokens out, without the model's tokenizer.

Two answers to the same question: a bound that no byte-level or byte-fallback tokenizer exceeds, for what a server must
be able to take, and a likely length, for how much memory is set aside.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Sequence

from qgate.schemas.answers import GenerateRequest, ScoreRequest

Asked = GenerateRequest | ScoreRequest

TEMPLATE_TOKENS = 256
"""Room for what a chat template writes around the turns (a default system prompt, the date)."""
TURN_TOKENS = 8
ASCII_PER_TOKEN = 3
"""English has about 4.3 characters a token, code and numbers fewer. Other scripts are counted a token a character."""
LEAST_CONTEXT = 2048
_ASCII = re.compile(r"[\x00-\x7f]+")


def bound_tokens(request: Asked) -> int:
    """Tokens of a request's prompt and answer at most: every token is at least one byte of the text."""
    template = 0 if isinstance(request.prompt, tuple) else TEMPLATE_TOKENS
    return template + sum(TURN_TOKENS + len(text.encode()) for text in _texts(request)) + _given_tokens(request)


def likely_tokens(request: Asked) -> int:
    """Tokens of a request's prompt and answer, rather too many than too few."""
    found = _given_tokens(request)
    for text in _texts(request):
        ascii_chars = sum(map(len, _ASCII.findall(text)))
        found += TURN_TOKENS + ascii_chars // ASCII_PER_TOKEN + len(text) - ascii_chars
    return found


def _texts(request: Asked) -> Sequence[str]:
    """What is there as text, of the prompt and of a given answer."""
    answer = None if isinstance(request, GenerateRequest) else request.completion
    turns = [turn.content for turn in request.messages] if request.prompt is None else [request.prompt]
    return [text for text in (*turns, answer) if isinstance(text, str)]


def _given_tokens(request: Asked) -> int:
    """What is known in tokens, of the prompt and of the answer."""
    prompt = len(request.prompt) if isinstance(request.prompt, tuple) else 0
    answer = request.sampling.max_tokens if isinstance(request, GenerateRequest) else len(request.completion_ids or ())
    return prompt + answer


def context_tokens(requests: Iterable[Asked]) -> int:
    """Context that holds every prompt and its answer, rounded up to a power of two.

    A server's longest context can change its kernels' schedule, and so bytes: it is part of the content key, and the
    rounding keeps a slightly longer item from making every answer anew.
    """
    longest = max(map(bound_tokens, requests), default=1)
    return max(LEAST_CONTEXT, 1 << (longest - 1).bit_length())


def in_flight(arms: Iterable[Sequence[Asked]], concurrency: int) -> tuple[int, ...]:
    """Likely tokens of each of the `concurrency` longest requests of the heaviest arm: no more are in flight at once."""
    found = [heapq.nlargest(concurrency, map(likely_tokens, arm)) for arm in arms]
    return tuple(max(found, key=sum, default=[]))
