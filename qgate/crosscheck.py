"""A recipe in, what its parts say against each other out. Pure; needs no plugin and no disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from qgate.judge.criteria import ONE_SIDED, metric_of
from qgate.judge.defects import DEFECTS, nonfinite_logprob
from qgate.schemas.recipe import BASELINE, LM_EVAL, REFERENCES, TOKEN_METRICS, Criterion, Recipe, Tier
from qgate.schemas.variant import GgufSource
from qgate.wording import near_or_known

PRECISIONS = frozenset(
    {
        "FP32", "FP16", "BF16", "FP8", "W8A8", "W8A16", "W4A16", "W3A16", "W2A16", "W4A8", "W4A4", "NVFP4", "MXFP4",
    }
)  # fmt: skip

Location = tuple[str | int, ...]


@dataclass(frozen=True)
class Problem:
    """One thing wrong in a recipe: the field's path, what is wrong, and the fix where there is one."""

    location: Location
    message: str
    advice: str | None = None


def crosscheck(recipe: Recipe) -> list[Problem]:
    """Everything wrong that no single field shows: unknown names, tiers that cannot be judged."""
    return [*_variants(recipe), *_evalsets(recipe), *(p for name in recipe.tiers for p in _tier(recipe, name))]


def evalset_name(use: str) -> str:
    """`long-text` for `long-text@1`, the folder's name for a path."""
    return use.rstrip("/").rsplit("/", 1)[-1].split("@", 1)[0]


def _variants(recipe: Recipe) -> Iterator[Problem]:
    for name, variant in recipe.variants.items():
        if name == BASELINE:
            yield Problem(("variants", name), "`baseline` is the unquantized model's name", "choose another name")
        if isinstance(variant.checkpoint, GgufSource):
            yield Problem(
                ("variants", name, "checkpoint"), "a GGUF file is no variant for these engines", "give `path` or `hub`"
            )
        stated = variant.precision
        if stated is not None and not PRECISIONS.issuperset(stated.split("+")):
            yield _unknown(("variants", name, "precision"), "precision", stated, sorted(PRECISIONS))


def _evalsets(recipe: Recipe) -> Iterator[Problem]:
    seen: set[str] = set()
    for taken, what in ((LM_EVAL, "lm-eval's tasks"), (REFERENCES, "right answers")):
        if taken in recipe.sampling:
            yield Problem(("sampling", taken), f"`{taken}` is the profile of {what}", "choose another name")
    for index, use in enumerate(recipe.evalsets):
        name = evalset_name(use.name)
        if name in seen:
            yield Problem(("evalsets", index, "name"), f"the evalset {name!r} is listed twice", "keep one of them")
        seen.add(name)
        for number, profile in enumerate(use.profiles or ()):
            if profile in (use.profiles or ())[:number]:
                yield Problem(("evalsets", index, "profiles", number), f"{profile!r} stands here twice", "keep one")
            if profile not in recipe.sampling:
                yield _unknown(
                    ("evalsets", index, "profiles", number), "sampling profile", profile, list(recipe.sampling)
                )


def _tier(recipe: Recipe, name: str) -> Iterator[Problem]:
    tier, at = recipe.tiers[name], ("tiers", name)
    known = [BASELINE, *recipe.variants]
    for index, allowed in enumerate(tier.allow):
        if allowed not in known and allowed not in PRECISIONS:
            yield _unknown((*at, "allow", index), "variant or precision", allowed, [*known, *sorted(PRECISIONS)])
    for field, value in (("default", tier.default), ("fallback", tier.fallback)):
        if value is not None and value not in known:
            yield _unknown((*at, field), "variant", value, known)
    if tier.default in known and not _may_be_allowed(recipe, tier):
        yield Problem((*at, "default"), f"{tier.default!r} is not among `allow`", f"add {tier.default!r} to `allow`")
    for index, criterion in enumerate(tier.criteria):
        yield from _criterion(recipe, criterion, (*at, "criteria", index))


def _may_be_allowed(recipe: Recipe, tier: Tier) -> bool:
    """Whether `allow` admits the default, as far as can be told before precisions are read from checkpoints."""
    if tier.default == BASELINE or tier.default in tier.allow:
        return True
    stated = recipe.variants[tier.default].precision
    return bool(PRECISIONS & set(tier.allow)) if stated is None else stated in tier.allow


def _criterion(recipe: Recipe, criterion: Criterion, at: Location) -> Iterator[Problem]:
    sets = [evalset_name(use.name) for use in recipe.evalsets]
    if criterion.evalset is not None and criterion.evalset not in sets:
        yield _unknown((*at, "evalset"), "evalset of this recipe", criterion.evalset, sets)
    profiles = [*recipe.sampling, *([LM_EVAL] if any(use.lm_eval for use in recipe.evalsets) else [])]
    if criterion.profile is not None and criterion.profile not in profiles:
        yield _unknown((*at, "profile"), "sampling profile", criterion.profile, profiles)
    greatest = _greatest(criterion)
    if criterion.margin >= greatest:
        message = f"{criterion.metric} is at most {greatest:g}, so a margin of {criterion.margin:g} could never fail"
        yield Problem((*at, "margin"), message, "write two points as 0.02, not as 2")
    for index, defect in enumerate(criterion.defects or ()):
        if defect not in DEFECTS:
            yield _unknown((*at, "defects", index), "defect", defect, sorted(DEFECTS))
    if set(criterion.defects or ()) == {nonfinite_logprob.NAME} and not recipe.token_evidence.generation_logprobs:
        message = (
            f"`{nonfinite_logprob.NAME}` is seen only where answers are asked with log-probabilities; they are off"
        )
        yield Problem((*at, "defects"), message, "set `token_evidence.generation_logprobs: true` or drop the criterion")
    if criterion.metric == "defect_increase" and ONE_SIDED.intersection(criterion.defects or ()):
        message = "`truncation` is seen only beside the baseline, so its rise would be counted one way"
        yield Problem((*at, "defects"), message, "use the metric truncation_increase, which counts both ways")
    needs_tokens = criterion.metric in TOKEN_METRICS or criterion.metric == "garble_nll_increase"
    if needs_tokens and not recipe.token_evidence.enabled:
        message = f"{criterion.metric} needs token evidence, which is off"
        yield Problem((*at, "metric"), message, "set `token_evidence.enabled: true` or drop the criterion")
    elif criterion.of == REFERENCES and not recipe.token_evidence.references:
        message = "right answers are not scored: `token_evidence.references` is off"
        yield Problem((*at, "of"), message, "set it to true or drop the criterion")
    elif criterion.metric == "garble_nll_increase" and not recipe.token_evidence.garble:
        message = "garble_nll_increase needs the variants' answers scored under the baseline, which is off"
        yield Problem((*at, "metric"), message, "set `token_evidence.garble: true` or drop the criterion")


def _greatest(criterion: Criterion) -> float:
    """The largest that the harm can be."""
    if criterion.metric in TOKEN_METRICS:
        return 1.0 if criterion.metric in {"top1_disagreement", "probability_drop"} else inf
    return metric_of(criterion.metric).support.greatest


def _unknown(location: Location, what: str, value: str, known: list[str]) -> Problem:
    return Problem(location, f"no {what} named {value!r}", near_or_known(value, known))
