"""Criteria of right answers: judged as those of the baseline's own answers are, and apart from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import expm1
from typing import Any

import numpy as np
import pytest

from qgate.judge.verdict import judge
from qgate.schemas.answers import ScoreRequest, TokenScores
from qgate.schemas.evalset import Message
from qgate.schemas.evidence import Evidence, Row
from qgate.schemas.recipe import REFERENCES
from qgate.schemas.verdict import CriterionResult, Verdict, VerdictSheet
from tests.unit.judge.made import arm, recipe, token_scores

NUM_ITEMS, NUM_SEEDS, NUM_TOKENS = 120, 2, 5
ARMS = ("baseline", "baseline#1", "w8a8")
Scores = dict[str, TokenScores]


def scored(rows: list[Row], noise: float = 0.0) -> Scores:
    """The same logits for the same answer, but for a deviation of `noise` nats."""
    found = {}
    for number, row in enumerate(rows):
        rng = np.random.default_rng(number)
        logits, ids = rng.normal(size=(NUM_TOKENS, 40)), rng.integers(0, 40, NUM_TOKENS)
        found[row.request_id] = token_scores(row, logits + noise * rng.normal(size=logits.shape), ids)
    return found


def made(noise: Mapping[str, float], own: Mapping[str, float] | None = None) -> Evidence:
    """`noise` of each arm on right answers, `own` on the baseline's."""
    right = [[1.0] * NUM_SEEDS] * NUM_ITEMS
    baseline = arm("baseline", right)
    asked = [replace(row, profile=REFERENCES) for row in baseline if row.seed == 0]
    return Evidence(
        rows=(*baseline, *arm("baseline", right, replicate=1), *arm("w8a8", right)),
        token_scores={name: scored(baseline, (own or {}).get(name, 0.0)) for name in ARMS},
        reference_scores={name: scored(asked, noise.get(name, 0.0)) for name in ARMS},
        engine="vllm",
    )


def judged(evidence: Evidence, **fields: Any) -> tuple[CriterionResult, VerdictSheet]:
    """The criterion of right answers for w8a8."""
    sheet = judge(evidence, recipe([{"metric": "kl_mean", "margin": 0.05, "of": REFERENCES, **fields}]), "run")
    (variant,) = [each for each in sheet.tiers[0].variants if each.variant == "w8a8"]
    return variant.criteria[0], sheet


def test_damage_to_right_answers_fails_their_criterion_and_no_other() -> None:
    evidence = made({"w8a8": 1.5})
    found, _ = judged(evidence)
    assert found.verdict is Verdict.FAIL
    assert found.scope == "references · all sets"
    assert found.reason.startswith("mean KL of the references ")
    assert judged(evidence, of="answers")[0].verdict is Verdict.PASS
    other = made({}, own={"w8a8": 1.5})
    assert judged(other)[0].verdict is Verdict.PASS
    assert judged(other, of="answers")[0].verdict is Verdict.FAIL


def test_an_item_counts_once_however_many_seeds_it_has() -> None:
    found, _ = judged(made({"w8a8": 0.01}))
    assert (found.estimate.num_items, found.estimate.num_pairs) == (NUM_ITEMS, NUM_ITEMS * NUM_TOKENS)


@pytest.mark.parametrize(
    ("metric", "margin"),
    [("kl_p95", 2.0), ("top1_disagreement", 0.9), ("probability_drop", 0.5), ("perplexity_increase", 3.0)],
)
def test_every_token_metric_has_an_estimate_and_a_floor(metric: str, margin: float) -> None:
    found, _ = judged(made({"w8a8": 0.3}), metric=metric, margin=margin)
    assert found.verdict is Verdict.PASS
    assert found.floor is not None
    assert found.floor.value == pytest.approx(0.0, abs=1e-6)
    assert found.estimate.value is not None


def test_the_rise_of_the_perplexity_is_that_of_means_over_items() -> None:
    evidence = made({"w8a8": 0.3})
    found, sheet = judged(evidence, metric="perplexity_increase", margin=1.0)
    base, other = (evidence.reference_scores[name] for name in ("baseline", "w8a8"))
    drop = float(np.mean([np.mean(base[key].logprobs - other[key].logprobs, dtype=np.float64) for key in base]))
    assert found.estimate.value == pytest.approx(expm1(drop))
    assert sheet.summary["w8a8"]["reference_ln_perplexity_ratio"] == pytest.approx(drop)
    assert sheet.summary["w8a8"]["reference_num_answers"] == NUM_ITEMS
    assert sheet.summary["w8a8"]["ln_perplexity_ratio"] == pytest.approx(0.0, abs=1e-6)


def test_a_baseline_that_does_not_repeat_itself_is_too_noisy() -> None:
    found, _ = judged(made({"baseline#1": 1.5, "w8a8": 1.5}))
    assert found.verdict is Verdict.INVALID
    assert "the baseline against itself has mean KL of the references" in found.reason


def changed(evidence: Evidence, how: Callable[[TokenScores], TokenScores], *arms: str, each: int = 10) -> Evidence:
    """The evidence with one right answer in `each` changed in these arms."""
    scores = {name: dict(found) for name, found in evidence.reference_scores.items()}
    for name in arms:
        for key in list(scores[name])[::each]:
            scores[name][key] = how(scores[name][key])
    return replace(evidence, reference_scores=scores)


def other_tokens(scores: TokenScores) -> TokenScores:
    return replace(scores, token_ids=scores.token_ids + 1)


def nothing(scores: TokenScores) -> TokenScores:
    return TokenScores.none(ScoreRequest(id=scores.id, messages=(Message(role="user", content="?"),), completion=""))


def test_other_tokens_are_missing_and_told() -> None:
    found, sheet = judged(changed(made({}), other_tokens, "w8a8"))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.startswith("12 of 120 references in scope are missing")
    assert (
        "w8a8 reads 12 of 120 right answers as other tokens than the baseline: its tokenizer differs." in sheet.findings
    )


def test_right_answers_that_nobody_can_score_are_missing_and_told() -> None:
    found, sheet = judged(changed(made({}), nothing, *ARMS))
    assert found.verdict is Verdict.INVALID
    assert found.reason.startswith("the A/A arm lacks 12 of 120 to compare")
    for name in ARMS:
        said = (
            f"{name} cannot score 12 of 120 right answers: they have no token or too many, or its server scores none."
        )
        assert said in sheet.findings
    assert not any("other tokens" in said for said in sheet.findings)


def nan(scores: TokenScores) -> TokenScores:
    return replace(scores, logprobs=np.full_like(scores.logprobs, np.nan))


def test_one_nan_takes_a_pass_away_and_is_told() -> None:
    found, sheet = judged(changed(made({}), nan, "w8a8", each=NUM_ITEMS))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "w8a8 gave 5 token scores of right answers that are not finite numbers." in sheet.findings


@pytest.mark.parametrize("each", [10, 1])
def test_a_variant_that_has_no_number_where_the_baseline_has_one_each_time_fails(each: int) -> None:
    found, _ = judged(changed(made({}), nan, "w8a8", each=each))
    assert found.verdict is Verdict.FAIL
    assert found.reason.startswith(f"{600 // each} of 600 token scores are not finite numbers")
    both, _ = judged(changed(made({}), nan, "w8a8", "baseline#1", each=each))
    assert both.verdict is not Verdict.FAIL, "the engine may be what gives none"


def test_of_a_baseline_that_was_not_scored_again_nobody_says_that_it_has_numbers() -> None:
    evidence = changed(made({}), nan, "w8a8", each=1)
    scores = {name: found for name, found in evidence.reference_scores.items() if name != "baseline#1"}
    found, _ = judged(replace(evidence, reference_scores=scores))
    assert found.verdict is Verdict.INCONCLUSIVE


def test_without_scores_of_right_answers_nothing_is_passed() -> None:
    found, sheet = judged(replace(made({}), reference_scores={}))
    assert found.verdict is Verdict.INCONCLUSIVE
    assert not any(name.startswith("reference_") for name in sheet.summary["w8a8"])


def test_they_are_broken_down_along_axes_of_their_own() -> None:
    evidence = made({"w8a8": 0.2})
    rows = tuple(replace(row, language="zh" if int(row.item[1:]) % 2 else "en") for row in evidence.rows)
    found, sheet = judged(replace(evidence, rows=rows), where={"language": "zh"})
    assert found.estimate.num_items == NUM_ITEMS / 2
    parts = {part.axis: part for part in sheet.breakdowns if part.metric == "kl_mean"}
    assert parts["language · references"].labels == ("en", "zh")
    assert parts["language · references"].num == (NUM_ITEMS / 2, NUM_ITEMS / 2)
    assert parts["language"].variant_values != parts["language · references"].variant_values
    assert not any("temperature" in axis or "profile" in axis for axis in parts if axis.endswith("references"))
