"""The OpenAI-compatible wire format, with vLLM's additions: requests to bodies, bodies to answers and scores. Pure.

Field names are those of vLLM 0.26 and 0.32 (entrypoints/openai/*/protocol.py). A log-probability of -9999 is what vLLM
writes for one that is not finite.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from qgate.errors import EngineError
from qgate.io.calls import Reply
from qgate.judge.defects.seen import was_cut
from qgate.judge.request_body import cut_at_stop
from qgate.schemas.answers import Answer, GenerateRequest, ScoreRequest, Status, TokenScores
from qgate.schemas.incident import CHAT, COMPLETION

TOKENS_IN = "/inference/v1/generate"
"""vLLM's tokens-in, tokens-out endpoint (0.26 and newer)."""
MAX_ID = 2**31 - 1
NOT_FINITE = -9999.0
UNWRITABLE = "Out of range float values are not JSON compliant"
"""What a server says when it cannot write a NaN: vLLM 0.32 with a 400, others with a 500."""
SCORING = "scoring needs `prompt_logprobs`: serve with vLLM, or turn token_evidence off"
UNLIKE_THE_PROTOCOL = (AttributeError, IndexError, KeyError, OverflowError, TypeError, ValueError)
"""What Python raises on a body whose parts have other types than the protocol's."""
UNFINISHED = frozenset({"abort", "error"})
MAX_STOPS = 4
"""Stop texts that OpenAI's own protocol takes; an answer is cut at the others once it is there."""
UNREAD = ("system_fingerprint", "service_tier")
REPLACED = frozenset({"model", "stream", "stream_options", "n", "best_of", "seed"})
"""Fields of a verbatim body that a replay gives itself: one whole answer, from this server, with this seed."""


def path(request: GenerateRequest) -> str:
    """Where the request goes."""
    return CHAT if request.prompt is None else COMPLETION


def body_of(
    request: GenerateRequest, model: str, *, vllm: bool = True, cache_salt: str | None = None
) -> dict[str, Any]:
    """The body for `path(request)`: with every sampling field, or the verbatim one of a request that brings its own.

    A verbatim one gets no salt: it meets the prefix cache as it did.
    """
    if request.body is None:
        make = chat_body if request.prompt is None else completion_body
        return make(request, model, vllm=vllm, cache_salt=cache_salt)
    body = {name: value for name, value in request.body.items() if name not in REPLACED}
    body |= {"model": model, "seed": request.sampling.seed, "stream": False}
    if request.logprobs:
        body["logprobs"] = True if request.prompt is None else 0
    return body | ({"return_token_ids": True} if vllm else {})


def completion_body(
    request: GenerateRequest, model: str, *, vllm: bool = True, cache_salt: str | None = None
) -> dict[str, Any]:
    """Body of /v1/completions that goes on from the request's raw prompt."""
    body = chat_body(request, model, vllm=vllm, cache_salt=cache_salt)
    del body["messages"], body["logprobs"]
    body["prompt"] = request.prompt if isinstance(request.prompt, str) else list(request.prompt or ())
    return body | ({"logprobs": 0} if request.logprobs else {})


def chat_body(
    request: GenerateRequest, model: str, *, vllm: bool = True, cache_salt: str | None = None
) -> dict[str, Any]:
    """Body of /v1/chat/completions. Every sampling field is there; vLLM's own fields where `vllm`."""
    sampling = request.sampling
    body: dict[str, Any] = {
        "model": model,
        "messages": [message.model_dump() for message in request.messages],
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "presence_penalty": sampling.presence_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "max_tokens": sampling.max_tokens,
        "seed": sampling.seed,
        "n": 1,
        "stream": False,
        "logprobs": request.logprobs,
    }
    if request.stop:
        body["stop"] = list(request.stop if vllm else request.stop[:MAX_STOPS])
    if vllm:
        body |= {
            "top_k": sampling.top_k,
            "min_p": sampling.min_p,
            "repetition_penalty": sampling.repetition_penalty,
            "min_tokens": 0,
            "ignore_eos": False,
            "skip_special_tokens": True,
            "return_token_ids": True,
        }
        body |= {"cache_salt": cache_salt} if cache_salt else {}
    return body


def tokenize_body(request: ScoreRequest, model: str) -> dict[str, Any]:
    """Body of vLLM's /tokenize: the chat prompt as /v1/chat/completions renders it."""
    messages = [message.model_dump() for message in request.messages]
    return {"model": model, "messages": messages, "add_generation_prompt": True, "add_special_tokens": False}


def tokenize_text_body(text: str, model: str) -> dict[str, Any]:
    """Body of vLLM's /tokenize for a plain text. It has no field that keeps `<|im_end|>` in it from being one token."""
    return {"model": model, "prompt": text, "add_special_tokens": False}


def tokens(body: Any) -> list[int]:
    """The ids in a reply to `tokenize_body` or `tokenize_text_body`. Raises EngineError where it has none."""
    ids = body.get("tokens") if isinstance(body, dict) else None
    if not isinstance(ids, list) or not all(type(each) is int and 0 <= each <= MAX_ID for each in ids):
        raise EngineError("the server's /tokenize does not answer with token ids")
    return ids


def score_body(ids: Sequence[int], top_k: int, model: str, *, cache_salt: str | None = None) -> dict[str, Any]:
    """Body of /v1/completions that returns the log-probability of each of `ids` and of the `top_k` most likely.

    One token is generated, the fewest that vLLM allows; `prompt_logprobs` makes it compute the whole prompt, cached or
    not (vllm/sampling_params.py, skip_reading_prefix_cache).
    """
    body: dict[str, Any] = {
        "model": model, "prompt": list(ids), "max_tokens": 1, "temperature": 0.0, "seed": 0, "stream": False,
        "prompt_logprobs": top_k, "add_special_tokens": False, "return_token_ids": False,
    }  # fmt: skip
    return body | ({"cache_salt": cache_salt} if cache_salt else {})


def token_score_body(ids: Sequence[int], top_k: int, model: str, *, cache_salt: str) -> dict[str, Any]:
    """Body of vLLM's /inference/v1/generate that returns the same: tokens in, tokens out.

    Without `detokenize` the server does not turn each of the `top_k` ids of each position into text, which takes it ten
    times as long as all the rest (vllm/v1/engine/logprobs.py).
    """
    sampling = {"max_tokens": 1, "temperature": 0.0, "seed": 0, "prompt_logprobs": top_k, "detokenize": False}
    asked = {"model": model, "token_ids": list(ids), "sampling_params": sampling}
    return {**asked, "stream": False, "cache_salt": cache_salt}


def ids_sha256(ids: Sequence[int]) -> str:
    """SHA-256 over ids as little-endian int32."""
    return hashlib.sha256(np.asarray(ids, dtype="<i4").tobytes()).hexdigest()


def answer(reply: Reply, max_tokens: int | None = None) -> Answer:
    """The Answer to a chat call. A body without a choice, or one that was cut off by the server, is an error.

    An answer of `max_tokens` tokens is truncated unless its finish reason says what else ended it.
    """
    if reply.body is None:
        status: Status = "timeout" if reply.status == "timeout" else "error"
        return _no_answer(reply, status, reply.error or "no answer")
    try:
        return _read(reply, reply.body, max_tokens)
    except UNLIKE_THE_PROTOCOL:
        return _no_answer(reply, "error", "the server's answer is not what the OpenAI protocol says it is")


def _read(reply: Reply, body: dict[str, Any], max_tokens: int | None) -> Answer:
    """A whole body as an Answer. Raises one of Python's own errors where a part has another type than the protocol's."""
    choice, message = _first_choice(body)
    if message is None:
        return _no_answer(reply, "error", "the server's answer has no message in it")
    reason = choice.get("finish_reason")
    if reason in UNFINISHED:
        return _no_answer(reply, "error", f"the server gave the request up: finish_reason {reason}")
    usage = body.get("usage") or {}
    num_tokens = usage.get("completion_tokens")
    token_ids = choice.get("token_ids")
    prompt_ids = body.get("prompt_token_ids") or choice.get("prompt_token_ids")
    tool_calls = len(message.get("tool_calls") or ())
    text = message.get("content")
    return Answer(
        id=reply.id,
        text=text if text is not None or tool_calls else "",
        token_ids=None if token_ids is None else tuple(token_ids),
        logprobs=_logprobs(choice),
        tool_calls=tool_calls,
        prompt_token_ids_sha256=None if prompt_ids is None else ids_sha256(prompt_ids),
        prompt_tokens=usage.get("prompt_tokens"),
        completion_tokens=num_tokens,
        finish_reason=reason,
        status="truncated" if was_cut(reason, num_tokens, max_tokens) else "ok",
        latency_s=reply.latency_s,
        attempt=reply.attempt,
        extra=_unread(body, choice, message),
    )


def _first_choice(body: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """The first choice and its message; a text completion's text stands for a message's content."""
    choice = (body.get("choices") or [{}])[0]
    message = choice.get("message")
    if isinstance(choice.get("text"), str):
        message = {"content": choice["text"]}
    return choice, message if isinstance(message, dict) else None


def _no_answer(reply: Reply, status: Status, error: str) -> Answer:
    return Answer(
        id=reply.id, text=None, status=status, error=error, latency_s=reply.latency_s, attempt=reply.attempt,
        extra={} if reply.http_status is None else {"http_status": reply.http_status},
    )  # fmt: skip


def _logprobs(choice: dict[str, Any]) -> tuple[float | None, ...] | None:
    found = choice.get("logprobs") or {}
    if (values := found.get("token_logprobs")) is not None:
        return tuple(_finite(value) for value in values)
    content = found.get("content")
    return None if content is None else tuple(_finite(entry.get("logprob")) for entry in content)


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) or value <= NOT_FINITE else float(value)


def _unread(body: dict[str, Any], choice: dict[str, Any], message: dict[str, Any]) -> dict[str, Any]:
    found = {name: body.get(name) for name in UNREAD}
    found |= {"stop_reason": choice.get("stop_reason"), "reasoning": message.get("reasoning")}
    return {name: value for name, value in found.items() if value is not None}


def is_unwritable(reply: Reply) -> bool:
    """Whether the server failed for want of a way to write a number that is not finite."""
    return reply.http_status is not None and UNWRITABLE in (reply.error or "")


def until(answer: Answer, stops: Sequence[str] | None) -> Answer:
    """The answer cut at the first of `stops`: a server may take fewer of them than were asked for."""
    return answer if answer.text is None else answer.model_copy(update={"text": cut_at_stop(answer.text, stops or ())})


def without_finite_logprobs(answer: Answer) -> Answer:
    """An answer whose log-probabilities the server could not write: not all are finite, and which cannot be told."""
    if answer.token_ids is None:
        return answer
    return answer.model_copy(update={"logprobs": (None,) * len(answer.token_ids)})


def token_scores(reply: Reply, request: ScoreRequest, prompt_ids: Sequence[int]) -> TokenScores:
    """The scores in a reply to `score_body` or `token_score_body` of `prompt_ids + completion_ids`.

    Every score is NaN where the server could not write its NaNs. Raises EngineError on any other failure,
    and where the reply holds no log-probabilities.
    """
    ids = request.completion_ids or ()
    shape = (len(ids), request.top_k)
    scores = TokenScores(
        id=request.id,
        token_ids=np.asarray(ids, dtype=np.int32),
        logprobs=np.full(shape[0], np.nan, dtype=np.float32),
        top_ids=np.full(shape, -1, dtype=np.int32),
        top_logprobs=np.full(shape, np.nan, dtype=np.float32),
        prompt_token_ids_sha256=ids_sha256(prompt_ids),
    )
    if is_unwritable(reply):
        return scores
    if reply.body is None:
        raise EngineError(reply.error or "no answer")
    try:
        positions = reply.body.get("prompt_logprobs") or (reply.body.get("choices") or [{}])[0].get("prompt_logprobs")
        if positions is None or len(positions) != len(prompt_ids) + shape[0]:
            raise EngineError("the server returned no log-probabilities of the prompt", advice=SCORING)
        for row, (forced, entries) in enumerate(zip(ids, positions[len(prompt_ids) :], strict=True)):
            scores.logprobs[row] = _score(entries[str(forced)]["logprob"])
            _fill_top(scores.top_ids[row], scores.top_logprobs[row], entries)
    except UNLIKE_THE_PROTOCOL as error:
        raise EngineError(
            "the server's log-probabilities are not what vLLM's protocol says they are", advice=SCORING
        ) from error
    return scores


def _fill_top(ids: NDArray[np.int32], logprobs: NDArray[np.float32], entries: dict[str, dict[str, Any]]) -> None:
    """The most likely first: vLLM's ranks count from 1, and the forced token comes beside the top where it is not in."""
    for key, entry in entries.items():
        rank = entry["rank"]
        if rank is not None and 1 <= rank <= len(ids):
            ids[rank - 1] = int(key)
            logprobs[rank - 1] = _score(entry["logprob"])


def _score(value: float | None) -> float:
    """As it was before vLLM made it JSON: null was NaN, -9999 was minus infinity."""
    if value is None:
        return float("nan")
    return float("-inf") if value <= NOT_FINITE else value
