"""Engine `fake`: answers at once, without a model, and with the faults that its options plant. For tests and trials.

A checkpoint directory in; answers and token scores out, the same for the same variant name, prompt and seed. It reads
no weights of the checkpoint (but see fake_weights), and writes a log. Give a variant its own faults through
`engine_args`: these are the engine's faults, and those that `fake_weights` reads are the checkpoint's.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from qgate import __version__
from qgate.engines import fake_model as model
from qgate.engines import fake_weights
from qgate.engines.fake_options import FakeOptions
from qgate.engines.fake_weights import FakeCheckpoint
from qgate.engines.wire import ids_sha256
from qgate.errors import DiedError, HungError, StartError
from qgate.judge.request_body import cut_at_stop
from qgate.ports import ServeJob, Session, Tool
from qgate.schemas.answers import Answer, EngineFacts, GenerateRequest, ScoreRequest, TokenScores


class FakeSession:
    """A checkpoint that the fake engine serves."""

    def __init__(self, job: ServeJob, options: FakeOptions, checkpoint: FakeCheckpoint, ordinal: int):
        self.facts = EngineFacts(
            engine="fake",
            version=__version__,
            device="none",
            dtype=job.dtype,
            kernels={"linear": options.kernel},
            notes=("the fake engine ran no model: these numbers test qgate, not a checkpoint",),
            start_s=0.0,
        )
        self._job = job
        self._options = options
        self._checkpoint = checkpoint
        self._ordinal = ordinal
        self._in_flight = 0
        self._asked: Counter[str] = Counter()
        self._num_answered = 0

    def generate(self, requests: Iterable[GenerateRequest]) -> Iterator[Answer]:
        """One answer per request, out of order as a server's are. Raises DiedError, HungError where planted."""
        stream = iter(requests)
        while window := list(itertools.islice(stream, self._job.concurrency)):
            self._in_flight = len(window)
            for request in sorted(window, key=lambda request: model.uniform("order", request.id)):
                self._fail_if_planted()
                self._asked[request.id] += 1
                yield self._answer(request)
                self._num_answered += 1

    def score(self, requests: Iterable[ScoreRequest]) -> Iterator[TokenScores]:
        """Plausible scores, the same for every checkpoint but for the deviation that the options plant."""
        for request in requests:
            self._fail_if_planted()
            context, ids = self._prompt(request)
            answer = request.completion_ids or [
                model.token_id(piece) for piece in model.tokenize(request.completion or "")
            ]
            if not answer:
                self._num_answered += 1
                yield TokenScores.none(request)
                continue
            logprobs, top_ids, top_logprobs = model.scores(
                context,
                answer,
                top_k=request.top_k,
                noise=(self._job.name,),
                noise_nats=self._options.score_noise_nats,
                loss_nats=self._options.score_loss_nats,
            )
            self._num_answered += 1
            yield TokenScores(
                id=request.id,
                token_ids=model.as_ids(answer),
                logprobs=logprobs,
                top_ids=top_ids,
                top_logprobs=top_logprobs,
                prompt_token_ids_sha256=ids_sha256(ids),
            )

    def _fail_if_planted(self) -> None:
        options, job = self._options, self._job
        if options.latency_s:
            time.sleep(options.latency_s / job.concurrency)
        if self._num_answered == options.die_after and (options.die_times is None or self._ordinal < options.die_times):
            raise DiedError(
                f"the server of {job.name} was ended by SIGKILL after {self._num_answered} answers\n  log: {job.log}",
                advice="this is the planted fault `die_after` of the fake engine",
            )
        if self._num_answered == options.hang_after:
            time.sleep(job.stall_timeout_s)
            raise HungError(
                f"the server of {job.name} finished nothing for {job.stall_timeout_s:g} s\n  log: {job.log}",
                advice="this is the planted fault `hang_after` of the fake engine",
            )

    def _prompt(self, request: GenerateRequest | ScoreRequest) -> tuple[str, list[int]]:
        raw = request.prompt
        text = model.prompt_text(request.messages) if raw is None else str(raw)
        ids = [model.token_id(piece) for piece in model.tokenize(text)]
        if self._checkpoint.template and raw is None:
            ids = [model.token_id(self._checkpoint.template), *ids]
        return text, [1, *ids] if self._options.template_drift else ids

    def _answer(self, request: GenerateRequest) -> Answer:
        prompt, prompt_ids = self._prompt(request)
        fault = self._fault(request, prompt, len(prompt_ids))
        shared = {
            "id": request.id,
            "prompt_token_ids_sha256": ids_sha256(prompt_ids),
            "prompt_tokens": len(prompt_ids),
            "latency_s": self._options.latency_s,
        }
        if fault in {"error", "timeout"}:
            said = "HTTP 500: planted" if fault == "error" else "no answer within the time limit: planted"
            return Answer(**shared, text=None, status=fault, error=said)
        limit = request.sampling.max_tokens
        pieces = model.tokenize(cut_at_stop(self._text(request, prompt, fault), request.stop or ()))
        if not self._checkpoint.ends:
            pieces = model.endless(pieces, limit)
        full = len(pieces) >= limit
        pieces = pieces[:limit]
        ids = [0 if fault == "nonfinite" else model.token_id(piece) for piece in pieces]
        ids += [] if full else [model.EOS_ID]
        return Answer(
            **shared,
            text="".join(pieces),
            token_ids=tuple(ids),
            logprobs=self._logprobs(prompt, ids, fault) if request.logprobs else None,
            completion_tokens=len(ids),
            finish_reason="length" if full else "stop",
            status="truncated" if full else "ok",
        )

    def _fault(self, request: GenerateRequest, prompt: str, prompt_tokens: int) -> str | None:
        options, seed = self._options, request.sampling.seed
        if self._in_flight >= 4 and self._again("race", request) < options.race:
            return "garble"
        bad_kernel = options.bad_kernel if options.kernel == "fast" else 0.0
        overflow = options.overflow if self._job.dtype == "float16" else 0.0
        if model.uniform("kernel", prompt, seed) < bad_kernel or model.uniform("overflow", prompt, seed) < overflow:
            return "garble"
        if fault := self._fault_of_weights(request, prompt, prompt_tokens):
            return fault
        if request.sampling.temperature <= options.faults_above_temperature:
            return None
        if prompt_tokens <= options.faults_above_prompt_tokens or not fake_weights.has_trigger(prompt, options.trigger):
            return None
        return options.drawn(model.uniform("fault", prompt, seed))

    def _fault_of_weights(self, request: GenerateRequest, prompt: str, prompt_tokens: int) -> str | None:
        weights = self._checkpoint.weights
        if weights.trained_template not in {None, self._checkpoint.template} and request.prompt is None:
            return "garble"
        if not fake_weights.holds(weights, request.sampling.temperature, prompt, prompt_tokens):
            return None
        if self._job.dtype == "float16" and model.uniform("range", prompt, request.sampling.seed) < weights.overflow:
            return "garble"
        draw = model.uniform("weights", prompt, request.sampling.seed)
        return "loop" if draw < weights.loop else "garble" if draw < weights.loop + weights.garble else None

    def _text(self, request: GenerateRequest, prompt: str, fault: str | None) -> str:
        options, seed = self._options, request.sampling.seed
        if fault == "empty":
            return ""
        if fault == "nonfinite":
            return "!" * request.sampling.max_tokens
        text = model.wrong_answer(request.messages, seed)
        if model.uniform("right", prompt, seed) < options.accuracy:
            text = self._right(request)
        if model.uniform("drift", self._job.name, prompt, seed) < options.drift:
            text += " That is all."
        if self._again("noise", request) < options.noise:
            text += f" ({int(1e6 * self._again('word', request))})"
        if fault == "loop":
            return model.loop(text, request.sampling.max_tokens)
        if fault == "garble":
            return model.garble(text)
        return f"{text}<|im_end|>\n<|im_start|>user\nAnd what else?" if fault == "role_leak" else text

    def _right(self, request: GenerateRequest) -> str:
        echo = model.right_answer(request.messages)
        item = request.id.split("/")[1] if "/" in request.id else request.id
        known = [prefix for prefix in self._options.answers if item.startswith(prefix)]
        if not known:
            return echo
        said = self._options.answers[max(known, key=len)]
        return said.replace("{echo}", echo).replace("{seed}", str(request.sampling.seed))

    def _again(self, what: str, request: GenerateRequest) -> float:
        """A draw that is new each time: it depends on the session and on how often the request was asked in it."""
        return model.uniform(what, self._job.name, self._ordinal, self._asked[request.id], request.id)

    def _logprobs(self, prompt: str, ids: list[int], fault: str | None) -> tuple[float | None, ...]:
        if fault == "nonfinite":
            return tuple(None for _ in ids)
        found, _, _ = model.scores(prompt, ids, top_k=1, noise=(), noise_nats=0.0, loss_nats=0.0)
        return tuple(float(value) for value in found)


class FakeEngine:
    """The engine plugin. Counts sessions per variant, so that noise differs between them yet repeats in a rerun."""

    name = "fake"
    options = FakeOptions
    lock: str | None = None
    workers: tuple[Path, ...] = ()

    def __init__(self) -> None:
        self._sessions: Counter[str] = Counter()

    def device(self, tool: Tool) -> str:
        """No device: no model runs."""
        return "none"

    @contextmanager
    def open(self, job: ServeJob) -> Iterator[Session]:
        """A session on `job.checkpoint`. Raises StartError where planted, or where there is no such directory."""
        options = FakeOptions.model_validate(job.options.model_dump())
        job.log.parent.mkdir(parents=True, exist_ok=True)
        with job.log.open("a", encoding="utf-8") as log:
            log.write(f"fake engine: serving {job.checkpoint}\n")
        if options.refuse_start or not job.checkpoint.is_dir():
            why = "planted" if options.refuse_start else "no such directory"
            raise StartError(f"the server of {job.name} did not start: {job.checkpoint}: {why}\n  log: {job.log}")
        checkpoint = fake_weights.read(job.checkpoint, job.name)
        ordinal = self._sessions[job.name]
        self._sessions[job.name] += 1
        yield FakeSession(job, options, checkpoint, ordinal)


ENGINE = FakeEngine()
