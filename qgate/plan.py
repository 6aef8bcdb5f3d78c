"""A recipe and its loaded sets in, every step out. Pure.

model ─▶ baseline ─┬▶ generate (set × profile × replicate) ─▶ score: own answers, as the reference for the rest
                   └▶ quantize ─▶ variant ─▶ generate ─▶ score: the baseline's answers, teacher-forced
and the baseline scores each variant's answers, which shows garble without knowing its language. Right answers are
scored by every checkpoint where items have them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, TypeVar

from qgate.crosscheck import evalset_name
from qgate.schemas.answers import GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.evalset import Evalset, Item
from qgate.schemas.recipe import BASELINE, REFERENCES, EvalsetUse, Recipe, SamplingProfile

Asked = TypeVar("Asked", GenerateRequest, ScoreRequest)


@dataclass(frozen=True)
class GenerateStep:
    """One arm on one set with one profile: `requests` in, as many answers out."""

    kind: ClassVar[str] = "generate"

    variant: str
    evalset: str
    profile: str
    replicate: int
    requests: tuple[GenerateRequest, ...]

    @property
    def label(self) -> str:
        """For progress bars and messages."""
        again = f" again ({self.replicate})" if self.replicate else ""
        return f"{self.variant}: {self.evalset} · {self.profile}{again}"


@dataclass(frozen=True)
class RankStep:
    """One arm on a set's given continuations, options or right answers: `requests` in, as many token scores out."""

    variant: str
    evalset: str
    profile: str
    replicate: int
    requests: tuple[ScoreRequest, ...]

    @property
    def kind(self) -> str:
        """What is done: options are ranked, right answers (REFERENCES is their profile) are scored."""
        return "score" if self.profile == REFERENCES else "rank"

    @property
    def label(self) -> str:
        """For progress bars and messages."""
        again = f" again ({self.replicate})" if self.replicate else ""
        return f"{self.variant}: {self.evalset} · {REFERENCES if self.kind == 'score' else 'options'}{again}"


@dataclass(frozen=True)
class ScoreStep:
    """The answers of `source` (variant, replicate), teacher-forced through `variant`."""

    kind: ClassVar[str] = "score"

    variant: str
    source: tuple[str, int]
    evalset: str
    profile: str
    replicate: int
    top_k: int
    max_items: int | None

    @property
    def of_baseline(self) -> bool:
        """Whether the baseline's answers are scored: what variants are compared on. Else: others' under the baseline."""
        return self.source == (BASELINE, 0)

    @property
    def label(self) -> str:
        """For progress bars and messages."""
        again = f" again ({self.replicate})" if self.replicate else ""
        whose = f"{self.source[0]}'s answers" + (" of the A/A arm" if self.source == (BASELINE, 1) else "")
        return f"{self.variant}: scoring{again} {whose} · {self.evalset} · {self.profile}"


@dataclass(frozen=True)
class Plan:
    """Every step of a run, in the order in which one server at a time would do them."""

    generate: tuple[GenerateStep, ...]
    score: tuple[ScoreStep, ...]
    rank: tuple[RankStep, ...] = ()
    references: tuple[RankStep, ...] = ()

    def __add__(self, other: Plan) -> Plan:
        return Plan(*(getattr(self, part.name) + getattr(other, part.name) for part in fields(self)))

    @property
    def given(self) -> tuple[RankStep, ...]:
        """All steps on continuations that are there before anything is answered."""
        return (*self.rank, *self.references)

    def asked_of(self, variant: str) -> list[GenerateStep | RankStep]:
        """The steps of one checkpoint that need no other's answers."""
        steps: tuple[GenerateStep | RankStep, ...] = (*self.generate, *self.given)
        return [step for step in steps if step.variant == variant]

    def score_for(self, variant: str, *, own: bool) -> list[ScoreStep]:
        """Score steps of one checkpoint: over the baseline's answers (`own`), or over the other variants'."""
        return [s for s in self.score if s.variant == variant and s.of_baseline == own]


def plan(recipe: Recipe, evalsets: Mapping[str, Evalset]) -> Plan:
    """All steps of `recipe` but those of lm-eval's tasks (qgate.plan_tasks); `evalsets` maps a use's `name` to the loaded cut."""
    generate: list[GenerateStep] = []
    score: list[ScoreStep] = []
    references: list[RankStep] = []
    for use in recipe.evalsets:
        if use.lm_eval is not None:
            continue
        for profile in use.profiles or tuple(recipe.sampling):
            requests = requests_of(evalsets[use.name], use, profile, recipe)
            name = evalsets[use.name].name
            generate += [
                GenerateStep(arm, name, profile, number, asked) for arm, number, asked in arms_of(recipe, requests)
            ]
            score += scores_of(recipe, evalset_name(use.name), profile)
        references += _references_of(recipe, evalsets[use.name])
    return Plan(tuple(generate), tuple(score), references=tuple(references))


def arms_of(recipe: Recipe, requests: tuple[Asked, ...]) -> list[tuple[str, int, tuple[Asked, ...]]]:
    """(variant, replicate, its requests): the baseline and its repeats, each variant and the share of its repeat."""
    if not requests:
        return []
    floor = recipe.noise_floor
    again = sample(requests, floor.variant_share)
    arms = [(BASELINE, replicate, requests) for replicate in range(1 + floor.replicates)]
    for name in recipe.variants:
        arms.append((name, 0, requests))
        if again:
            arms.append((name, 1, again))
    return arms


def scores_of(recipe: Recipe, evalset: str, profile: str) -> list[ScoreStep]:
    """Who scores whose answers on one set with one profile."""
    evidence = recipe.token_evidence
    if not evidence.enabled:
        return []
    arms = _scoring_arms(recipe)
    steps = [
        ScoreStep(variant, (BASELINE, 0), evalset, profile, replicate, evidence.top_k, evidence.max_items)
        for variant, replicate in arms
    ]
    foreign = arms[1:] if evidence.garble else []
    steps += [ScoreStep(BASELINE, source, evalset, profile, 0, 0, evidence.max_items) for source in foreign]
    return steps


def _scoring_arms(recipe: Recipe) -> list[tuple[str, int]]:
    """(variant, replicate): the baseline, its A/A repeat where there is one, each variant."""
    own = range(1 + min(1, recipe.noise_floor.replicates))
    return [*((BASELINE, replicate) for replicate in own), *((variant, 0) for variant in recipe.variants)]


def _references_of(recipe: Recipe, evalset: Evalset) -> list[RankStep]:
    """Who scores the right answers of a set: one for each item that has one, whatever the seeds and profiles."""
    evidence = recipe.token_evidence
    requests = {
        f"{evalset.name}/{item.id}/{REFERENCES}/0": (item.messages, item.reference)
        for item in evalset.items
        if item.reference is not None and evidence.enabled and evidence.references
    }
    kept = first_items(requests, evidence.max_items)
    asked = tuple(
        ScoreRequest(id=key, messages=messages, completion=text, top_k=evidence.top_k)
        for key, (messages, text) in requests.items()
        if key in kept
    )
    return [RankStep(arm, evalset.name, REFERENCES, n, asked) for arm, n in _scoring_arms(recipe) if asked]


def requests_of(evalset: Evalset, use: EvalsetUse, profile: str, recipe: Recipe) -> tuple[GenerateRequest, ...]:
    """One request per item and seed; the id is `evalset/item/profile/seed`."""
    sampling = recipe.sampling[profile]
    return tuple(
        GenerateRequest(
            id=f"{evalset.name}/{item.id}/{profile}/{seed}",
            messages=item.messages,
            sampling=_effective(sampling, item, use, seed),
            logprobs=recipe.token_evidence.generation_logprobs,
        )
        for item in evalset.items
        for seed in sampling.seeds
    )


def _effective(profile: SamplingProfile, item: Item, use: EvalsetUse, seed: int) -> Sampling:
    longest = item.max_tokens or use.max_tokens or profile.max_tokens
    if use.max_tokens is not None:
        longest = min(longest, use.max_tokens)
    return Sampling(**profile.model_dump(exclude={"seeds", "max_tokens"}), max_tokens=longest, seed=seed)


def sample(requests: Iterable[Asked], share: float) -> tuple[Asked, ...]:
    """About `share` of the items with all their seeds: an item is in by its id's hash, whatever else is in the set."""
    return tuple(request for request in requests if _rank(item_of(request.id)) < share)


def first_items(ids: Iterable[str], max_items: int | None) -> set[str]:
    """The request ids of at most `max_items` items, chosen by the hash of the item's id."""
    wanted = list(ids)
    items = sorted({item_of(request) for request in wanted}, key=_rank)
    kept = set(items if max_items is None else items[:max_items])
    return {request for request in wanted if item_of(request) in kept}


def item_of(request_id: str) -> str:
    """`evalset/item` of a request's id `evalset/item/profile/seed`."""
    return request_id.rsplit("/", 2)[0]


def _rank(item: str) -> float:
    """A fixed number in [0, 1) from the item's name."""
    return int.from_bytes(hashlib.sha256(item.encode()).digest()[:8], "big") / 2**64
