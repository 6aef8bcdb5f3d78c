"""What a hostile statistician would try: evidence that is lopsided, absent, tied, degenerate or cut too fine."""

import dataclasses

import numpy as np
import pytest
from pydantic import ValidationError

from qgate.judge.arms import Arms
from qgate.judge.compare import Case, measure
from qgate.judge.resample import Draws
from qgate.judge.tokens import TokenTable
from qgate.judge.verdict import judge
from qgate.schemas.evidence import Evidence
from qgate.schemas.recipe import TOKEN_METRICS, Criterion, Statistics
from qgate.schemas.verdict import Verdict

from .made import arm, evidence, recipe, row
from .test_verdict import criterion, damaged, scores, verdicts, with_tokens

SCORE = {"metric": "score_loss", "margin": 0.05}
WORST = {"metric": "worst_slice_score_loss", "margin": 0.1, "by": "language"}
MEANS = ("score_loss", "relative_score_loss", "defect_rate", "defect_increase", "truncation_increase", "length_drift",
         "flip_rate", "output_disagreement")  # fmt: skip


def sliced(slices) -> Evidence:
    """`slices`: language to (baseline's scores, variant's scores or None where it has no rows)."""
    rows = []
    for language, (before, after) in slices.items():
        rows += arm("baseline", before, language=language, evalset=f"facts-{language}")
        rows += [] if after is None else arm("w8a8", after, language=language, evalset=f"facts-{language}")
    return Evidence(rows=tuple(rows), engine="vllm")


def judged(made: Evidence, *criteria, index: int = 0):
    return criterion(judge(made, recipe(list(criteria)), "run"), index=index)


@pytest.mark.parametrize("gone", [None, [[None]] * 100, [[float("nan")]] * 100], ids=["no rows", "errors", "no scores"])
def test_a_slice_of_which_the_variant_answered_nothing_is_no_pass(gone):
    right = [[1.0]] * 100
    result = judged(sliced({"en": (right, right), "zh": (right, gone)}), WORST)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "100 of 200 answers in scope are missing" in result.reason


def test_a_slice_of_which_the_baseline_answered_nothing_is_no_pass_and_is_named():
    right = [[1.0]] * 100
    result = judged(sliced({"en": (right, right), "zh": ([[None]] * 2, [[1.0]] * 2)}), WORST)
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "language=zh" in result.reason


@pytest.mark.parametrize("metric", ["score_loss", "relative_score_loss"])
def test_a_baseline_that_cannot_do_the_task_excuses_no_missing_answers(metric):
    """VOID is left out of a tier; what did not come is not."""
    nothing = [[0.0]] * 200
    wanted = {"metric": metric, "margin": 0.1}
    assert judged(evidence(nothing, {"w8a8": nothing}), wanted).verdict is Verdict.VOID
    absent = judged(evidence(nothing, {"w8a8": [[None]] * 200}), wanted)
    assert absent.verdict is Verdict.INCONCLUSIVE
    able = [[1.0]] * 200
    in_a_slice = judged(sliced({"en": (able, able), "th": (nothing, [[None]] * 200)}), WORST)
    assert in_a_slice.verdict is Verdict.INCONCLUSIVE


def test_an_a_a_arm_that_was_asked_for_and_is_absent_leaves_nothing_to_pass():
    base = scores(300, 0.8)
    made = evidence(base, {"w8a8": base})
    alone = dataclasses.replace(made, rows=tuple(each for each in made.rows if not each.replicate))
    sheet = judge(alone, recipe([SCORE]), "run")
    assert verdicts(sheet) == {"baseline": Verdict.INCONCLUSIVE, "w8a8": Verdict.INCONCLUSIVE}
    assert "the A/A arm gave no answers" in sheet.tiers[0].reason


def test_token_scores_that_the_a_a_arm_lacks_leave_nothing_to_pass():
    made = with_tokens(100, 0.01)
    scores = {name: each for name, each in made.token_scores.items() if name != "baseline#1"}
    kl = {"metric": "kl_mean", "margin": 0.5}
    assert judged(made, kl).verdict is Verdict.PASS
    sheet = judge(dataclasses.replace(made, token_scores=scores), recipe([kl]), "run")
    assert criterion(sheet).verdict is Verdict.INVALID
    assert verdicts(sheet)["w8a8"] is Verdict.INCONCLUSIVE


@pytest.mark.parametrize("metric", MEANS)
def test_one_item_passes_nothing(metric):
    for answer in (1.0, 0.0):
        made = evidence([[answer] * 8], {"w8a8": [[answer] * 8]})
        assert judged(made, {"metric": metric, "margin": 0.5}).verdict is not Verdict.PASS


def test_one_item_of_many_tokens_passes_nothing():
    criteria = [{"metric": metric, "margin": 0.9} for metric in sorted(TOKEN_METRICS)]
    sheet = judge(with_tokens(1, 0.0), recipe(criteria), "run")
    assert {each.verdict for each in sheet.tiers[0].variants[1].criteria} == {Verdict.INCONCLUSIVE}


def test_items_weigh_the_same_whatever_their_number_of_seeds():
    base = [[1.0] * (1 if item < 50 else 8) for item in range(100)]
    lost_where_few = [[0.0] if item < 50 else [1.0] * 8 for item in range(100)]
    result = judged(evidence(base, {"w8a8": lost_where_few}), SCORE)
    assert (result.estimate.value, result.estimate.num_items, result.estimate.num_pairs) == (0.5, 100, 450)


@pytest.mark.parametrize("metric", ["kl_mean", "kl_p95", "top1_disagreement", "perplexity_increase"])
def test_one_item_with_most_of_the_tokens_decides_nothing(metric):
    """150 answers of 10 tokens and one that loops for 20,000: whichever of both is bad, the 150 items are what counts."""

    def found(short: float, endless: float):
        sizes = [20_000, *[10] * 150]
        answer = np.repeat(np.arange(151), sizes)
        harm = np.where(answer == 0, endless, short) * np.random.default_rng(0).uniform(0.9, 1.1, answer.size)
        table = TokenTable(
            tuple(row(item=item) for item in range(151)), answer, np.concatenate([np.arange(size) for size in sizes]),
            kl=harm, disagree=harm, drop=harm, log_drop=harm, covered=harm * 0, num_expected=151,
        )  # fmt: skip
        case = Case(Arms.of(Evidence(rows=table.rows)), {"w8a8": table}, 0.05, Draws(1_000, 1, 151))
        return measure(case, Criterion(metric=metric, margin=0.1), "w8a8").estimate

    assert found(short=0.5, endless=0.0).low > 0.2
    assert found(short=0.0, endless=0.5).high < 0.1


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), float("nan"), 2.0, -1.0])
def test_a_score_that_is_none_is_missing_and_never_a_gain(score):
    right = [[1.0]] * 300
    few, many = ([[score]] * count + right[count:] for count in (5, 10))
    result = judged(evidence(right, {"w8a8": few}), SCORE)
    assert result.estimate.value == pytest.approx(5 / 300)
    assert judged(evidence(right, {"w8a8": many}), SCORE).verdict is Verdict.INCONCLUSIVE
    assert judged(evidence(many, {"w8a8": right}, floor=right), SCORE).verdict is not Verdict.PASS


def test_a_harm_on_the_margin_is_not_settled_and_a_bound_on_it_passes():
    base, lost = [[1.0]] * 200, [[0.0]] * 10 + [[1.0]] * 190
    made = evidence(base, {"w8a8": lost})
    tie = judged(made, SCORE)
    assert (tie.estimate.value, tie.verdict, tie.further_items) == (0.05, Verdict.INCONCLUSIVE, None)
    assert judged(made, SCORE | {"margin": tie.estimate.high}).verdict is Verdict.PASS
    assert judged(made, SCORE | {"margin": tie.estimate.low}).verdict is Verdict.INCONCLUSIVE


def test_identical_arms_never_pass_a_margin_of_nothing_and_never_fail():
    base = scores(300, 0.8, num_seeds=2)
    criteria = [{"metric": metric, "margin": 0.0} for metric in MEANS if metric != "output_disagreement"]
    sheet = judge(evidence(base, {"w8a8": base}), recipe(criteria), "run")
    assert {each.verdict for each in sheet.tiers[0].variants[1].criteria} == {Verdict.INCONCLUSIVE}


@pytest.mark.parametrize("margin", [-0.01, float("nan"), float("inf")])
def test_a_margin_that_is_negative_or_no_number_is_refused(margin):
    with pytest.raises(ValidationError):
        Criterion(metric="score_loss", margin=margin)


def test_an_alpha_that_the_draws_cannot_show_is_refused():
    with pytest.raises(ValidationError, match="takes 20,000 resamples at least"):
        Statistics(alpha=0.001)
    assert Statistics(alpha=0.001, resamples=20_000).alpha == 0.001


def test_an_engine_noisier_than_a_slice_can_bear_is_invalid_there():
    base = scores(300, 0.9)
    made = evidence(base, {"w8a8": base}, floor=damaged(base, 0.5))
    assert judged(made, WORST).verdict is Verdict.INVALID


def test_one_lost_slice_fails_among_hundreds_and_hundreds_of_noisy_ones_do_not():
    """Bonferroni's alpha is so small here that the draws of one bound would not show it: more are made."""
    generator = np.random.default_rng(0)

    def noisy():
        base = generator.random((20, 1)) < 0.8
        return base.astype(float).tolist(), (base ^ (generator.random((20, 1)) < 0.1)).astype(float).tolist()

    slices = {f"l{number:03d}": noisy() for number in range(200)}

    def found(more):
        made = sliced(slices | more)
        case = Case(Arms.of(made), {}, 0.05, Draws(1_000, 1, 4_020))
        return measure(case, Criterion(**WORST), "w8a8")

    assert -1 < found({}).estimate.low <= WORST["margin"]
    result = found({"lost": ([[1.0]] * 20, [[0.0]] * 20)})
    assert result.details["worst"] == "lost"
    assert result.estimate.low > WORST["margin"]
