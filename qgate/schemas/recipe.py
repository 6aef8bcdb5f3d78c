"""The recipe: what a person writes to have quantized variants of one model judged. Data only, touches nothing.

Reading a recipe file, and turning an error into a field, a line and a near match, is `qgate.io.recipe`.
"""

from __future__ import annotations

import re
from math import ceil
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, field_validator, model_validator

from qgate.schemas.base import Frozen
from qgate.schemas.variant import EnvName, Source, Variant

BASELINE = "baseline"
LM_EVAL = "lm-eval"
"""Sampling profile of answers to lm-eval's tasks, which say themselves how they sample."""
REFERENCES = "references"
"""Stands in the place of a sampling profile where right answers are scored, of which nothing is sampled."""

NAME = r"^[a-z0-9][a-z0-9._-]{0,62}$"
Name = Annotated[str, Field(pattern=NAME, description="Lower-case letters, digits, . _ -")]
Metric = Literal[
    "score_loss", "relative_score_loss", "worst_slice_score_loss",
    "defect_rate", "defect_increase", "truncation_increase", "length_drift",
    "flip_rate", "output_disagreement",
    "kl_mean", "kl_p95", "kl_p99", "kl_p999", "top1_disagreement", "probability_drop", "perplexity_increase",
    "garble_nll_increase",
]  # fmt: skip
TOKEN_METRICS = frozenset(
    {"kl_mean", "kl_p95", "kl_p99", "kl_p999", "top1_disagreement", "probability_drop", "perplexity_increase"}
)


class Baseline(Frozen):
    """How the unquantized model is run."""

    dtype: Literal["float16", "bfloat16"] = Field(default="float16", description="Precision of the baseline's weights")


class EngineSpec(Frozen):
    """The engine that serves every checkpoint of this recipe."""

    name: str = Field(default="transformers", description="Engine plugin: vllm, transformers, openai, fake")
    env: EnvName | None = Field(default=None, description="Environment of the engine; default: its own lock")
    options: dict[str, Any] = Field(
        default_factory=dict, description="The engine's own options (`qgate schema --engine NAME`)"
    )
    determinism: Literal["fast", "repeatable"] = Field(
        default="fast",
        description="`repeatable` asks for batch-invariant kernels and a fixed concurrency; it may swap kernels",
    )
    concurrency: int = Field(default=16, ge=1, le=4096, description="Requests in flight per server")
    parallel: Literal["auto"] | Annotated[int, Field(ge=1, le=64)] = Field(
        default=1, description="Servers up at the same time; `auto`: as many as the memory ledger says fit on the GPUs"
    )
    request_timeout_s: float = Field(default=600.0, gt=0, description="Longest wait for one answer")
    stall_timeout_s: float = Field(
        default=300.0, gt=0, description="A server that finishes nothing for so long is hung"
    )


class LmEvalTasks(Frozen):
    """Tasks of lm-eval as an evaluation set: lm-eval writes the prompts and scores the answers, the engine answers."""

    tasks: tuple[str, ...] = Field(min_length=1, description="Names of tasks, groups or tags")
    include_path: Path | None = Field(
        default=None,
        description="Folder with task YAMLs of one's own, relative to the recipe; their data_files are relative to it",
    )
    limit: int | None = Field(default=None, ge=1, description="Only the first so many documents of each task")
    num_fewshot: int | None = Field(default=None, ge=0, description="Examples in each prompt; default: the task's")
    apply_chat_template: bool = Field(default=False, description="Prompts in the checkpoint's chat template")
    fewshot_as_multiturn: bool = Field(default=True, description="In a chat, examples are turns of it")
    system_instruction: str | None = Field(default=None, description="System prompt")
    gen_kwargs: dict[str, Any] = Field(
        default_factory=dict, description="Over the tasks' generation_kwargs, e.g. {max_gen_toks: 64}"
    )
    metric: str | None = Field(
        default=None,
        description="The score, as `acc_norm` or `exact_match,strict-match`; default: each task's first metric",
    )
    language: str = Field(default="und", description="BCP 47 tag of the answers, for the defect detectors")
    max_length: int | None = Field(
        default=None, ge=16, description="Longest prompt and answer in tokens; default: the model's context"
    )
    seed: int = Field(default=1234, ge=0, description="Seed of the choice of examples, and of lm-eval's own draws")
    env: EnvName | None = Field(default=None, description="Environment of lm-eval; default: the lock `lm-eval`")


class EvalsetUse(Frozen):
    """An evaluation set, or a cut of it."""

    name: str = Field(
        default="",
        description="`long-text@1`, or a path (relative to the recipe) to a directory with evalset.yaml; with `lm_eval` "
        "what to call the set, default: its one task",
    )
    lm_eval: LmEvalTasks | None = Field(default=None, description="Tasks of lm-eval instead of a set of items")
    limit: int | None = Field(
        default=None, ge=1, description="Only so many items, spread evenly over kinds and languages"
    )
    where: dict[str, Annotated[tuple[str, ...], Field(min_length=1)]] = Field(
        default_factory=dict, description="Only items whose slice has one of these values, e.g. {length: [1k, 2k]}"
    )
    max_tokens: int | None = Field(default=None, ge=1, description="Overrides the profile's max_tokens for this set")
    profiles: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="Only these sampling profiles; default: all"
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if not self.name and self.lm_eval is not None and len(self.lm_eval.tasks) == 1:
            object.__setattr__(self, "name", self.lm_eval.tasks[0])  # a set of one task is called like it
        if not self.name:
            raise ValueError("give `name`: a set's, or what to call these `lm_eval` tasks")
        if self.lm_eval is not None:
            if self.limit or self.where or self.max_tokens or self.profiles:
                raise ValueError("lm-eval's tasks are cut by `lm_eval.limit` and sampled by `lm_eval.gen_kwargs`")
            if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", self.name):
                raise ValueError("the `name` of lm-eval tasks is letters, digits, dots, hyphens and underscores")
        return self


class SamplingProfile(Frozen):
    """Sampling of every answer. Each field is sent with each request: no hidden default decides."""

    temperature: float = Field(ge=0, le=5, description="0 is greedy")
    top_p: float = Field(default=1.0, gt=0, le=1, description="Nucleus mass")
    top_k: int = Field(default=-1, ge=-1, description="-1 is off")
    min_p: float = Field(default=0.0, ge=0, le=1, description="0 is off")
    repetition_penalty: float = Field(default=1.0, gt=0, description="1 is off")
    presence_penalty: float = Field(default=0.0, ge=-2, le=2, description="0 is off")
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2, description="0 is off")
    max_tokens: int = Field(ge=1, le=131_072, description="Longest answer in tokens")
    seeds: tuple[Annotated[int, Field(ge=0, lt=2**63)], ...] = Field(
        min_length=1, description="One answer per item and seed; vLLM takes a negative one as none"
    )

    @model_validator(mode="after")
    def _distinct_seeds(self) -> Self:
        if len(set(self.seeds)) != len(self.seeds):
            raise ValueError("`seeds` has the same seed twice")
        if self.temperature == 0 and len(self.seeds) > 1:
            raise ValueError("greedy sampling (temperature 0) ignores the seed: give one seed")
        return self


class Criterion(Frozen):
    """One condition of a tier. Every metric is a harm: 0 is none, `margin` is the most that is accepted."""

    metric: Metric = Field(description="What is measured; docs/method.md defines each")
    margin: float = Field(
        description="Largest acceptable harm, in the metric's unit (shares as 0.02, not 2)", ge=0, allow_inf_nan=False
    )
    evalset: str | None = Field(
        default=None, description="Only this set (name without version); default: all sets pooled"
    )
    profile: str | None = Field(default=None, description="Only this sampling profile; default: all profiles pooled")
    of: Literal["answers", "references"] = Field(
        default="answers", description="For token metrics: the baseline's own answers, or the items' right answers"
    )
    where: dict[str, str] = Field(default_factory=dict, description="Only this slice, e.g. {language: zh}")
    by: str | None = Field(default=None, description="For worst_slice_score_loss: the slice key, e.g. `language`")
    defects: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="For defect metrics: only these defects; default: all"
    )

    @model_validator(mode="after")
    def _fields_fit(self) -> Self:
        if (self.metric == "worst_slice_score_loss") != (self.by is not None):
            raise ValueError("`by` goes with the metric worst_slice_score_loss, and only with it")
        if self.defects is not None and self.metric not in {"defect_rate", "defect_increase"}:
            raise ValueError("`defects` goes with defect_rate and defect_increase only")
        if self.of == REFERENCES and self.metric not in TOKEN_METRICS:
            raise ValueError(f"`of: references` goes with token metrics only: {', '.join(sorted(TOKEN_METRICS))}")
        if self.of == REFERENCES and (self.profile is not None or {"profile", "temperature"} & self.where.keys()):
            raise ValueError(
                "a right answer is scored once, however answers are sampled: leave profile and temperature out"
            )
        return self


class Tier(Frozen):
    """A serving interface and what it may serve."""

    description: str = Field(default="", description="Who calls this interface, and what for")
    default: str = Field(description="The variant that it is meant to serve, or `baseline`")
    allow: tuple[str, ...] = Field(min_length=1, description="Variants or precisions (W4A16) that it may serve")
    fallback: str | None = Field(
        default=BASELINE, description="What it serves when nothing allowed passes; null: nothing"
    )
    engines: tuple[str, ...] = Field(default=("vllm",), min_length=1, description="Engines whose numbers it accepts")
    criteria: tuple[Criterion, ...] = Field(
        default=(), description="All must pass; empty only where baseline alone is allowed"
    )

    @model_validator(mode="after")
    def _criteria_unless_baseline(self) -> Self:
        if not self.criteria and set(self.allow) != {BASELINE}:
            raise ValueError("a tier that allows a quantized variant needs `criteria`; without them nothing is judged")
        return self


class NoiseFloor(Frozen):
    """The A/A arm: the same checkpoint run again, so that every difference is read over the engine's own noise."""

    replicates: int = Field(default=1, ge=0, le=8, description="Times the baseline is run again with the same seeds")
    concurrency: int | None = Field(
        default=None, ge=1, description="Concurrency of the A/A runs; default: the engine's"
    )
    variant_share: float = Field(
        default=0.0, ge=0, le=1, description="Share of items on which each variant is run again"
    )


class TokenEvidence(Frozen):
    """Teacher-forced scoring: the baseline's own answers, and right answers where there are any, through each variant."""

    enabled: bool = Field(default=True, description="Off saves about a tenth of the time and voids the token metrics")
    top_k: int = Field(default=20, ge=1, le=20, description="Logprobs kept per position (vLLM serves at most 20)")
    max_items: int | None = Field(
        default=None, ge=1, description="Only so many answers of each set and profile are scored"
    )
    references: bool = Field(
        default=True,
        description="Score right answers too, once for each item that has one (`reference`, or what its scorer is told)",
    )
    garble: bool = Field(
        default=True,
        description="Score each variant's own answers under the baseline too: garble shows in any language; about as much again",
    )
    generation_logprobs: bool = Field(
        default=False, description="Keep the log-probability of each sampled token too (vLLM: 2.5 times slower)"
    )


class Statistics(Frozen):
    """How sure a verdict must be."""

    alpha: float = Field(default=0.05, gt=0, lt=0.5, description="One-sided error of a PASS at the margin")
    power: float = Field(default=0.8, gt=0.5, lt=1, description="Power that `further items` is computed for")
    resamples: int = Field(default=10_000, ge=1_000, le=1_000_000, description="Bootstrap resamples")
    seed: int = Field(default=20_260_101, ge=0, description="Seed of the resampling")

    @model_validator(mode="after")
    def _draws_suffice(self) -> Self:
        if self.resamples * self.alpha < 20:
            raise ValueError(f"alpha {self.alpha:g} takes {ceil(20 / self.alpha):,} resamples at least")
        return self


class Recipe(Frozen):
    """A model, the variants to make of it, the sets and sampling they are run on, and the tiers that judge them."""

    qgate: Literal[1] = Field(description="Version of the recipe format")
    name: Name = Field(description="Name of the recipe; part of the run's id")
    description: str = Field(default="", description="One line for the report")
    model: Source = Field(description="The model before quantization")
    baseline: Baseline = Field(default_factory=Baseline, description="How the unquantized model is run")
    variants: dict[Name, Variant] = Field(min_length=1, description="Quantized variants by name")
    engine: EngineSpec = Field(default_factory=EngineSpec, description="The engine that serves every checkpoint")
    evalsets: tuple[EvalsetUse, ...] = Field(min_length=1, description="Fixed evaluation sets")
    sampling: dict[Name, SamplingProfile] = Field(min_length=1, description="Sampling profiles by name")
    noise_floor: NoiseFloor = Field(default_factory=NoiseFloor, description="The A/A arm")
    token_evidence: TokenEvidence = Field(default_factory=TokenEvidence, description="Teacher-forced scoring")
    statistics: Statistics = Field(default_factory=Statistics, description="How sure a verdict must be")
    tiers: dict[Name, Tier] = Field(min_length=1, description="Serving interfaces by name")

    @field_validator("evalsets")
    @classmethod
    def _tasks_apart(cls, uses: tuple[EvalsetUse, ...]) -> tuple[EvalsetUse, ...]:
        seen: dict[str, str] = {}
        for use in uses:
            for task in () if use.lm_eval is None else use.lm_eval.tasks:
                if task in seen:
                    raise ValueError(
                        f"lm-eval's task {task!r} is in {seen[task]!r} and {use.name!r}: it is no more evidence"
                    )
                seen[task] = use.name
        return uses
