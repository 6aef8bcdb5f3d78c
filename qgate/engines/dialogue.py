"""Requests through a client, answers and token scores out: what both engines that speak HTTP do alike."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from qgate.engines import wire
from qgate.errors import EngineError
from qgate.io.calls import Call, Reply
from qgate.io.client import Client
from qgate.schemas.answers import Answer, GenerateRequest, ScoreRequest, TokenScores


@dataclass(frozen=True)
class Dialogue:
    """A server and how it is spoken to. Each arm has a cache salt of its own: it starts with a cold prefix cache."""

    client: Client
    name: str
    """The server, for messages."""
    model: str
    """The name that it serves the checkpoint under."""
    vllm: bool = True
    """Whether vLLM's own request fields are understood."""
    tokens_in: bool = False
    """Whether the server has vLLM's tokens-in endpoint, which scores ten times faster than /v1/completions."""
    score_memory_bytes: int | None = None
    """Budget of all scoring in flight; None: only the client's concurrency bounds it."""
    score_cost_bytes: Callable[[int], int] = lambda num_positions: 0
    """Memory that scoring so many positions takes on the server."""

    def answers(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        """One Answer per request, as they finish. Raises DiedError, HungError.

        A server that cannot write a NaN log-probability refuses the answer, or fails with a 500 without a word; where it
        answers once it is asked without them, they are noted as not finite.
        """
        salt = secrets.token_hex(16)
        unwritable: dict[str, GenerateRequest] = {}
        asked: dict[str, GenerateRequest] = {}

        def call(request: GenerateRequest) -> Call:
            body = wire.body_of(request, self.model, vllm=self.vllm, cache_salt=salt)
            return Call(request.id, wire.path(request), body)

        def remembered(request: GenerateRequest) -> Call:
            asked[request.id] = request
            return call(request)

        for reply in self.client.run(remembered(request) for request in requests):
            request = asked.pop(reply.id)
            if request.logprobs and (wire.is_unwritable(reply) or reply.http_status == 500):
                unwritable[reply.id] = request.model_copy(update={"logprobs": False})
            else:
                yield wire.until(wire.answer(reply, request.sampling.max_tokens), request.stop)
        for reply in self.client.run(map(call, unwritable.values())):
            max_tokens = unwritable[reply.id].sampling.max_tokens
            yield wire.without_finite_logprobs(wire.answer(reply, max_tokens))

    def scores(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        """One TokenScores per request, as they finish.

        Raises DiedError, HungError, and after all the others EngineError, where some could not be had.
        """
        scoring = _Scoring(self)
        failed: list[str] = []
        calls = (scoring.call(request) for request in requests)
        for reply in self.client.run(calls, budget=self.score_memory_bytes):
            try:
                scores = scoring.scores(reply)
            except EngineError as error:
                failed.append(f"{reply.id}: {error.message}")
                continue
            yield scores
        if failed:
            raise EngineError(
                f"{self.name} could not score {len(failed)} answers; the first is {failed[0]}",
                advice="scoring needs vLLM's /tokenize and prompt_logprobs, and room for one token after the answer",
            )


class _Scoring:
    """One arm's scoring: remembers what each call in flight was about."""

    def __init__(self, dialogue: Dialogue):
        self._dialogue = dialogue
        self._requests: dict[str, ScoreRequest] = {}
        self._prompts: dict[str, list[int]] = {}
        self._answers: dict[str, tuple[int, ...]] = {}

    def call(self, request: ScoreRequest) -> Call:
        """The prompt's ids first, unless they are given, then the answer's, likewise, then the scores of both."""
        self._requests[request.id] = request
        if request.prompt is not None:
            return self._answer(request, list(request.prompt))
        return Call(
            request.id, "/tokenize", wire.tokenize_body(request, self._dialogue.model),
            then=lambda body: self._answer(request, wire.tokens(body)),
        )  # fmt: skip

    def _answer(self, request: ScoreRequest, prompt: list[int]) -> Call:
        self._prompts[request.id] = prompt
        if request.completion_ids is not None:
            return self._scored(request, request.completion_ids)
        return Call(
            request.id, "/tokenize", wire.tokenize_text_body(request.completion or "", self._dialogue.model),
            then=lambda body: self._scored(request, tuple(ids)) if (ids := wire.tokens(body)) else None,
        )  # fmt: skip

    def _scored(self, request: ScoreRequest, answer: tuple[int, ...]) -> Call:
        self._answers[request.id] = answer
        ids = [*self._prompts[request.id], *answer]
        salt = secrets.token_hex(16)  # no prefix of another's is reused
        model, cost = self._dialogue.model, self._dialogue.score_cost_bytes(len(ids))
        if self._dialogue.tokens_in:
            scored = wire.token_score_body(ids, request.top_k, model, cache_salt=salt)
            return Call(request.id, wire.TOKENS_IN, scored, cost)
        scored = wire.score_body(ids, request.top_k, model, cache_salt=salt)
        return Call(request.id, "/v1/completions", scored, cost)

    def scores(self, reply: Reply) -> TokenScores:
        """The scores in the last reply of a chain: none of a text without a token, or that the server refuses to read.

        Raises EngineError.
        """
        request, prompt = self._requests.pop(reply.id), self._prompts.pop(reply.id, None)
        answer = self._answers.pop(reply.id, None)
        refused = reply.http_status == 400 and not wire.is_unwritable(reply)
        if request.completion is not None and (refused or (answer is None and reply.body is not None)):
            return TokenScores.none(request)
        if prompt is None or answer is None:
            raise EngineError(reply.error or "no prompt ids")
        told = {"completion": None, "completion_ids": answer}
        return wire.token_scores(reply, request.model_copy(update=told), prompt)
