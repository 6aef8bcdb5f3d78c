import dataclasses
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgate.judge.verdict import judge
from qgate.schemas.evidence import DefectHit, Evidence
from qgate.schemas.verdict import Verdict

from .made import arm, evidence, recipe, row, token_scores

ORDER = [Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS]
SCORE = {"metric": "score_loss", "margin": 0.05}


def scores(num_items: int, rate: float, seed: int = 0, num_seeds: int = 1):
    return (np.random.default_rng(seed).random((num_items, num_seeds)) < rate).astype(float).tolist()


def damaged(base, share: float, seed: int = 1):
    generator = np.random.default_rng(seed)
    return [[0.0 if generator.random() < share else score for score in item] for item in base]


def verdicts(sheet, tier: int = 0):
    return {each.variant: each.verdict for each in sheet.tiers[tier].variants}


def criterion(sheet, variant: str = "w8a8", index: int = 0):
    found = next(each for each in sheet.tiers[0].variants if each.variant == variant)
    return found.criteria[index]


def test_a_planted_regression_fails_and_says_so_with_numbers():
    base = scores(200, 0.7, num_seeds=4)
    sheet = judge(evidence(base, {"w8a8": damaged(base, 0.3)}), recipe([SCORE | {"evalset": "facts"}]), "run")
    tier = sheet.tiers[0]
    assert tier.verdict is Verdict.FAIL
    assert tier.serve == "baseline"
    result = criterion(sheet)
    assert tier.reason.startswith(f"score loss on facts {100 * result.estimate.value:.3g} pp (95 % sure: at least ")
    assert tier.reason.endswith("beyond the margin 5 pp")


def test_a_pair_of_equals_passes_given_enough_items():
    base = scores(200, 0.7)
    sheet = judge(evidence(base, {"w8a8": base}), recipe([SCORE]), "run")
    assert sheet.tiers[0].verdict is Verdict.PASS
    assert sheet.tiers[0].serve == "w8a8"


@pytest.mark.parametrize("num_items", [1, 5, 40])
def test_no_difference_on_few_items_is_not_a_pass(num_items):
    base = [[1.0]] * num_items
    result = criterion(judge(evidence(base, {"w8a8": base}), recipe([SCORE]), "run"))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert 50 <= num_items + result.further_items <= 70


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 1000), st.integers(5, 90), st.floats(0, 0.5), st.integers(1, 3))
def test_a_worse_score_never_improves_a_verdict(seed, num_items, damage, num_seeds):
    base = scores(num_items, 0.8, seed, num_seeds)
    before = damaged(base, damage / 2, seed)
    after = damaged(before, damage, seed + 1)
    criteria = [SCORE, {"metric": "relative_score_loss", "margin": 0.2}]
    sheets = [judge(evidence(base, {"w8a8": each}), recipe(criteria), "run") for each in (before, after)]
    for index in range(2):
        first, second = (ORDER.index(_three(criterion(sheet, index=index).verdict)) for sheet in sheets)
        assert second <= first


def _three(verdict):
    return Verdict.INCONCLUSIVE if verdict in {Verdict.VOID, Verdict.INVALID} else verdict


@settings(max_examples=8, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(0, 100))
def test_order_of_rows_and_of_variants_never_matters(shuffler: random.Random, seed):
    base = scores(60, 0.7, seed, 2)
    made = evidence(base, {"w8a8": damaged(base, 0.02), "awq": damaged(base, 0.2)})
    rows = list(made.rows)
    shuffler.shuffle(rows)
    one = judge(made, recipe([SCORE], ["w8a8", "awq"]), "run")
    other = judge(dataclasses.replace(made, rows=tuple(rows)), recipe([SCORE], ["awq", "w8a8"]), "run")
    for variant in ("baseline", "w8a8", "awq"):
        first, second = (
            next(each for each in sheet.tiers[0].variants if each.variant == variant) for sheet in (one, other)
        )
        assert first == second


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.floats(0, 1), st.sampled_from([None, float("nan")]))
def test_what_is_absent_never_makes_a_pass(seed, share, nothing):
    base = scores(80, 0.8, seed)
    variant = damaged(base, 0.1, seed)
    generator = np.random.default_rng(seed)
    holes = [[nothing if generator.random() < share else score for score in item] for item in variant]
    whole, holed = (judge(evidence(base, {"w8a8": each}), recipe([SCORE]), "run") for each in (variant, holes))
    if criterion(whole).verdict is not Verdict.PASS:
        assert criterion(holed).verdict is not Verdict.PASS
    if share > 0.2:
        assert criterion(holed).verdict is not Verdict.PASS


def test_rows_that_are_simply_gone_are_missing():
    base = scores(200, 0.9)
    made = evidence(base, {"w8a8": base})
    kept = tuple(each for each in made.rows if each.variant == "baseline" or each.item < "i0150")
    result = criterion(judge(dataclasses.replace(made, rows=kept), recipe([SCORE]), "run"))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "50 of 200" in result.reason


@pytest.mark.parametrize("where", ["nothing", "no variant", "no baseline"])
def test_without_answers_nothing_passes(where):
    base = scores(100, 0.9)
    made = evidence(base, {"w8a8": base})
    keep = {"nothing": (), "no variant": ("baseline",), "no baseline": ("w8a8",)}[where]
    rows = tuple(each for each in made.rows if each.variant in keep)
    sheet = judge(dataclasses.replace(made, rows=rows), recipe([SCORE]), "run")
    assert sheet.tiers[0].verdict is Verdict.INCONCLUSIVE


def test_a_baseline_that_cannot_do_it_is_void_and_a_tier_of_voids_is_inconclusive():
    base = [[0.0]] * 200
    sheet = judge(evidence(base, {"w8a8": base}), recipe([SCORE]), "run")
    assert criterion(sheet).verdict is Verdict.VOID
    assert sheet.tiers[0].verdict is Verdict.INCONCLUSIVE


def test_a_margin_that_the_baseline_could_lose_wholly_never_passes():
    base = scores(300, 0.1)
    sheet = judge(evidence(base, {"w8a8": [[0.0]] * 300}), recipe([SCORE | {"margin": 0.2}]), "run")
    assert criterion(sheet).verdict is Verdict.VOID
    near = judge(evidence(base, {"w8a8": base}), recipe([SCORE | {"margin": 0.09}]), "run")
    assert criterion(near).verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("metric", "broken"),
    [
        ("defect_increase", {"defects": (DefectHit(name="repetition_loop"),)}),
        ("truncation_increase", {"status": "truncated", "finish_reason": "length"}),
    ],
)
def test_a_share_that_cannot_rise_beyond_the_margin_never_passes(metric, broken):
    base = scores(200, 0.8)
    made = evidence(base, {"w8a8": base})

    def spoil(num_whole: int):
        rows = tuple(
            dataclasses.replace(each, **broken) if each.item >= f"i{num_whole:04d}" else each for each in made.rows
        )
        changed = dataclasses.replace(made, rows=rows)
        return criterion(judge(changed, recipe([{"metric": metric, "margin": 0.1}]), "run"))

    assert spoil(0).verdict is Verdict.VOID
    assert spoil(25).verdict is Verdict.INCONCLUSIVE
    assert "could not show" in spoil(25).reason
    assert spoil(100).verdict is Verdict.PASS


def test_a_broken_baseline_and_a_variant_that_is_more_so_are_told_whatever_the_criteria_are():
    base = scores(100, 0.8)
    made = evidence(base, {"w8a8": base})
    loop, salad = ((DefectHit(name=name),) for name in ("repetition_loop", "token_salad"))

    def findings(num_baseline: int, num_variant: int):
        def planted(each):
            num = num_baseline if each.variant == "baseline" else num_variant
            found = salad if each.variant != "baseline" and each.item < "i0002" else loop
            return dataclasses.replace(each, defects=found) if each.item < f"i{num:04d}" else each

        rows = tuple(planted(each) for each in made.rows)
        return [
            f for f in judge(dataclasses.replace(made, rows=rows), recipe([SCORE]), "run").findings if "defects in" in f
        ]

    assert findings(4, 8) == []
    assert findings(30, 30) == ["The baseline itself has defects in 30 of 100 answers (repetition_loop 30)."]
    assert findings(0, 9) == [
        "w8a8 has defects in 9 of 100 answers (repetition_loop 7, token_salad 2), the baseline in 0 of 100."
    ]


@pytest.mark.parametrize(("num_empty", "judged"), [(50, True), (51, False)])
def test_nothing_is_judged_by_a_baseline_whose_answers_are_mostly_garbage(num_empty, judged):
    """Both arms are equally empty: no defect is new and no probability is another, but nothing was compared."""
    base = scores(100, 0.8)
    made = evidence(base, {"w8a8": base})
    empty = (DefectHit("empty"),)
    rows = tuple(
        dataclasses.replace(
            each,
            text="",
            defects=empty if (each.variant, each.replicate) == ("baseline", 0) else (),
            excused=("empty",),
        )
        if each.item < f"i{num_empty:04d}"
        else each
        for each in made.rows
    )
    sheet = judge(dataclasses.replace(made, rows=rows), recipe([{"metric": "defect_rate", "margin": 0.05}]), "run")
    assert (set(verdicts(sheet).values()) == {Verdict.PASS}) is judged
    assert judged or set(verdicts(sheet).values()) == {Verdict.INCONCLUSIVE}
    assert judged or "51 of 100 answers of the baseline itself to facts are garbage (empty)" in sheet.tiers[0].reason


def test_a_set_on_which_the_baseline_is_garbage_is_not_hidden_among_others():
    base = scores(100, 0.8)
    made = evidence(base, {"w8a8": base})
    empty = (DefectHit("empty"),)
    other = tuple(dataclasses.replace(each, evalset="long", defects=empty) for each in made.rows if each.item < "i0010")
    sheet = judge(dataclasses.replace(made, rows=(*made.rows, *other)), recipe([SCORE]), "run")
    assert set(verdicts(sheet).values()) == {Verdict.INCONCLUSIVE}
    assert "10 of 10 answers of the baseline itself to long are garbage (empty)" in sheet.tiers[0].reason


def test_a_baseline_that_loops_is_no_garbage():
    base = scores(100, 0.8)
    made = evidence(base, {"w8a8": base})
    rows = tuple(dataclasses.replace(each, defects=(DefectHit("repetition_loop"),)) for each in made.rows)
    sheet = judge(dataclasses.replace(made, rows=rows), recipe([SCORE]), "run")
    assert set(verdicts(sheet).values()) == {Verdict.PASS}


def test_a_single_answer_with_nan_in_its_logits_is_told_whatever_the_criteria_are():
    base = scores(100, 0.8)
    made = evidence(base, {"w8a8": base})
    hit = (DefectHit(name="nonfinite_logprob"),)
    rows = tuple(
        dataclasses.replace(each, defects=hit) if (each.variant, each.item) == ("w8a8", "i0003") else each
        for each in made.rows
    )
    found = judge(dataclasses.replace(made, rows=rows), recipe([SCORE]), "run").findings
    assert "w8a8 has NaN or infinity in its logits in 1 of 100 answers (nonfinite_logprob)." in found
    assert not any("NaN" in each for each in judge(made, recipe([SCORE]), "run").findings)


def test_why_answers_did_not_come_is_told_with_the_commonest_reason():
    base = scores(100, 0.8)
    made = evidence(base, {"w8a8": [[None]] * 3 + list(base[3:])})
    said = {"i0000": "HTTP 500: boom", "i0001": "HTTP 429: slow down", "i0002": "HTTP 429: slow down"}
    rows = tuple(
        dataclasses.replace(each, error=said[each.item]) if each.status == "error" else each for each in made.rows
    )
    sheet = judge(dataclasses.replace(made, rows=rows), recipe([SCORE]), "run")
    assert "w8a8 has 3 of 100 answers that did not come (3 error), most often: HTTP 429: slow down" in sheet.findings
    assert {example.where for example in sheet.examples} == {f"no answer: error: {each}" for each in said.values()}


def test_answers_that_did_not_come_are_no_sound_ones_in_the_summary():
    base = scores(100, 0.8)
    made = evidence(base, {"w8a8": [[None]] * 60 + list(base[60:]), "dead": [[None]] * 100})
    loop = (DefectHit(name="repetition_loop"),)
    rows = tuple(
        dataclasses.replace(each, defects=loop) if each.variant == "w8a8" and each.status == "ok" else each
        for each in made.rows
    )
    found = judge(dataclasses.replace(made, rows=rows), recipe([SCORE], ["w8a8", "dead"]), "run").summary
    assert (found["baseline"]["defect_share"], found["w8a8"]["defect_share"]) == (0.0, 1.0)
    assert (found["dead"]["defect_share"], found["dead"]["median_latency_s"]) == (None, None)


def test_an_engine_noisier_than_the_margin_makes_the_criterion_invalid():
    base = scores(300, 0.8)
    made = evidence(base, {"w8a8": base}, floor=damaged(base, 0.3))
    sheet = judge(made, recipe([SCORE]), "run")
    assert criterion(sheet).verdict is Verdict.INVALID
    assert "determinism: repeatable" in criterion(sheet).reason
    assert verdicts(sheet) == {"baseline": Verdict.INCONCLUSIVE, "w8a8": Verdict.INCONCLUSIVE}


def test_changed_answers_are_judged_over_the_floor():
    base = [[1.0]] * 400
    made = evidence(base, {"w8a8": base})
    flips = {"baseline": 0.3, "w8a8": 0.35}
    generator = np.random.default_rng(0)
    rows = tuple(
        each
        if each.identical is None
        else dataclasses.replace(each, identical=generator.random() > flips[each.variant], first_divergence=None)
        for each in made.rows
    )
    wanted = recipe(
        [{"metric": "output_disagreement", "margin": 0.15}, {"metric": "output_disagreement", "margin": 0.8}]
    )
    sheet = judge(dataclasses.replace(made, rows=rows), wanted, "run")
    result = criterion(sheet)
    assert result.verdict is Verdict.PASS
    assert result.floor.value == pytest.approx(0.3, abs=0.06)
    assert result.estimate.value == pytest.approx(0.05, abs=0.08)
    assert criterion(sheet, index=1).verdict is Verdict.INVALID  # 30 % floor leaves no room for 80 % over it
    assert "a narrower margin" in criterion(sheet, index=1).reason


def test_defects_of_the_variant_count_and_excused_ones_do_not():
    base = arm("baseline", [[1.0]] * 200) + arm("baseline", [[1.0]] * 200, replicate=1)
    loop = (DefectHit("repetition_loop", 10),)
    variant = [
        dataclasses.replace(each, defects=loop if index % 5 == 0 else ())
        for index, each in enumerate(arm("w8a8", [[1.0]] * 200))
    ]
    made = Evidence(rows=(*base, *variant), engine="vllm")
    criteria = [
        {"metric": "defect_rate", "margin": 0.05},
        {"metric": "defect_increase", "margin": 0.05},
        {"metric": "defect_rate", "margin": 0.05, "defects": ["mojibake"]},
    ]
    sheet = judge(made, recipe(criteria), "run")
    assert [criterion(sheet, index=index).verdict for index in range(3)] == [Verdict.FAIL, Verdict.FAIL, Verdict.PASS]


def test_a_baseline_with_defects_is_no_credit_for_a_variant_that_was_not_looked_at():
    loop = (DefectHit("repetition_loop", 10),)
    base = [dataclasses.replace(each, defects=loop) for each in arm("baseline", [[1.0]] * 100)]
    unknown = arm("w8a8", [[1.0]] * 100)
    known = [dataclasses.replace(each, excused=()) for each in unknown]
    wanted = recipe([{"metric": "defect_increase", "margin": 0.05}])
    values = [
        criterion(judge(Evidence(rows=(*base, *rows), engine="vllm"), wanted, "run")).estimate.value
        for rows in (unknown, known)
    ]
    assert values == [0.0, -1.0]


def test_length_drift_counts_either_way():
    wanted = recipe([{"metric": "length_drift", "margin": 0.1}])
    for tokens in (10, 40):
        rows = arm("baseline", [[1.0]] * 100) + arm("w8a8", [[1.0]] * 100, completion_tokens=tokens)
        result = criterion(judge(Evidence(rows=tuple(rows), engine="vllm"), wanted, "run"))
        assert result.verdict is Verdict.FAIL
        assert result.estimate.value == pytest.approx(0.5)


def test_the_worst_slice_is_found_and_fewer_slices_are_not_corrected_for_more():
    rows = []
    for language, lost in (("en", 0.0), ("zh", 0.4), ("ja", 0.0)):
        base = [[1.0]] * 150
        name = f"facts-{language}"
        rows += arm("baseline", base, language=language, evalset=name)
        rows += arm("w8a8", damaged(base, lost), language=language, evalset=name)
    wanted = recipe([{"metric": "worst_slice_score_loss", "margin": 0.1, "by": "language"}])
    result = criterion(judge(Evidence(rows=tuple(rows), engine="vllm"), wanted, "run"))
    assert result.verdict is Verdict.FAIL
    assert result.details["worst"] == "zh"
    assert "(language=zh)" in result.reason
    assert result.estimate.low < result.details["slices"]["zh"]["low"]


def test_a_slice_that_the_baseline_cannot_do_is_named_and_left_out():
    rows = []
    for language, score in (("en", 1.0), ("th", 0.0)):
        for name in ("baseline", "w8a8"):
            rows += arm(name, [[score]] * 150, language=language, evalset=f"facts-{language}")
    wanted = recipe([{"metric": "worst_slice_score_loss", "margin": 0.1, "by": "language"}])
    result = criterion(judge(Evidence(rows=tuple(rows), engine="vllm"), wanted, "run"))
    assert result.verdict is Verdict.PASS
    assert result.flags == ("void slice th",)
    assert list(result.details["slices"]) == ["en"]


def test_an_implausible_gain_is_flagged_and_passes():
    base = scores(300, 0.4)
    sheet = judge(evidence(base, {"w8a8": [[1.0]] * 300}), recipe([SCORE]), "run")
    assert criterion(sheet).verdict is Verdict.PASS
    assert criterion(sheet).flags == ("implausible gain",)


def test_twins_of_an_item_are_one_item():
    rows = [
        row(name, item, family=f"i{item % 50:04d}", score=1.0) for name in ("baseline", "w8a8") for item in range(200)
    ]
    result = criterion(judge(Evidence(rows=tuple(rows), engine="vllm"), recipe([SCORE]), "run"))
    assert (result.estimate.num_items, result.estimate.num_pairs) == (50, 200)


def with_tokens(num_items: int, noise: float, bad=None, *, spread: float = 3.0, vocabulary: int = 30):
    generator = np.random.default_rng(0)
    base = [[1.0]] * num_items
    made = evidence(base, {"w8a8": base})
    arms = {"baseline": {}, "baseline#1": {}, "w8a8": {}}
    for here in (each for each in made.rows if each.variant == "baseline" and each.replicate == 0):
        logits = generator.normal(0, spread, (12, vocabulary))
        ids = logits.argmax(-1)  # as a greedy baseline writes
        for name, extra in (("baseline", 0.0), ("baseline#1", 0.0), ("w8a8", noise)):
            scored = token_scores(here, logits + generator.normal(0, 1, logits.shape) * extra, ids)
            arms[name][scored.id] = scored
    if bad is not None:
        next(iter(arms["w8a8"].values())).logprobs[0] = bad
    return dataclasses.replace(made, token_scores=arms)


TOKEN_CRITERIA = [
    {"metric": metric, "margin": margin}
    for metric, margin in {
        "kl_mean": 0.05,
        "kl_p95": 0.2,
        "kl_p99": 0.5,
        "top1_disagreement": 0.1,
        "probability_drop": 0.05,
        "perplexity_increase": 0.1,
    }.items()
]


def test_token_criteria_pass_small_noise_and_fail_large():
    for noise, wanted in ((0.02, Verdict.PASS), (3.0, Verdict.FAIL)):
        sheet = judge(with_tokens(360, noise), recipe(TOKEN_CRITERIA), "run")
        assert {each.metric: each.verdict for each in sheet.tiers[0].variants[1].criteria} == dict.fromkeys(
            (each["metric"] for each in TOKEN_CRITERIA), wanted
        )


def test_token_criteria_need_enough_items_to_have_seen_a_rare_fault():
    sheet = judge(with_tokens(40, 0.01), recipe([{"metric": "kl_mean", "margin": 0.5}]), "run")
    assert criterion(sheet).verdict is Verdict.INCONCLUSIVE
    assert "too few to have seen a rare fault" in criterion(sheet).reason
    assert criterion(sheet).further_items == 72 - 40
    few = criterion(judge(with_tokens(3, 0.01), recipe([{"metric": "kl_mean", "margin": 0.05}]), "run"))
    assert "is not settled" in few.reason
    assert few.further_items >= 72 - 3


def test_a_share_of_tokens_needs_the_items_that_could_each_be_wholly_bad():
    """Where 2 % of tokens may differ, one item in fifty may do so in all of its tokens: 149 items without one exclude it."""
    made = recipe([{"metric": "top1_disagreement", "margin": 0.02}])
    few, enough = (criterion(judge(with_tokens(num_items, 0.0), made, "run")) for num_items in (140, 150))
    assert (few.verdict, few.further_items) == (Verdict.INCONCLUSIVE, 9)
    assert enough.verdict is Verdict.PASS


def test_a_quantile_of_which_too_few_items_say_nothing_names_how_many_do():
    result = criterion(judge(with_tokens(100, 0.01), recipe([{"metric": "kl_p99", "margin": 0.5}]), "run"))
    assert (result.verdict, result.estimate.high) == (Verdict.INCONCLUSIVE, None)
    assert result.further_items == 299 - 100
    failed = criterion(judge(with_tokens(100, 3.0), recipe([{"metric": "kl_p99", "margin": 0.5}]), "run"))
    assert failed.verdict is Verdict.FAIL


@pytest.mark.parametrize("bad", [float("nan"), -9999.0])
def test_a_single_score_that_is_not_finite_takes_a_pass_away(bad):
    sheet = judge(with_tokens(100, 0.01, bad), recipe([{"metric": "kl_mean", "margin": 0.5}]), "run")
    assert criterion(sheet).verdict is Verdict.INCONCLUSIVE
    assert any("not finite" in each for each in sheet.findings)


def test_a_bound_on_kl_from_little_of_the_probability_passes_nothing():
    flat = with_tokens(100, 0.1, spread=0.1, vocabulary=2_000)
    found = criterion(judge(flat, recipe([{"metric": "kl_mean", "margin": 0.5}]), "run"))
    assert found.estimate.high < 0.5
    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.reason.startswith("mean KL 0.0")
    assert "is the bound from 0." in found.reason
    other = criterion(judge(flat, recipe([{"metric": "probability_drop", "margin": 0.5}]), "run"))
    assert other.verdict is Verdict.PASS


KL_ALONE = ({"metric": "kl_mean", "margin": 0.5},)


def changed(made, which, **fields):
    """The evidence with other fields in the rows that `which` picks."""
    rows = tuple(dataclasses.replace(each, **fields) if which(each) else each for each in made.rows)
    return dataclasses.replace(made, rows=rows)


@pytest.mark.parametrize(
    ("silent", "wanted"),
    [
        ("w8a8", recipe(KL_ALONE)),
        ("baseline", recipe(KL_ALONE)),
        ("baseline", recipe([], default="baseline", allow=["baseline"])),
    ],
)
def test_an_arm_none_of_whose_answers_came_passes_nothing(silent, wanted):
    """Every text could be scored: it is only asking that fails, by chat."""
    made = changed(with_tokens(100, 0.01), lambda each: each.variant == silent, status="error", text=None, score=None)
    tier = judge(made, wanted, "run").tiers[0]
    assert (tier.verdict, tier.reason) == (Verdict.INCONCLUSIVE, f"{silent} gave no answers")


@pytest.mark.parametrize("silent", ["w8a8", "baseline"])
@pytest.mark.parametrize(("num_absent", "verdict"), [(2, Verdict.PASS), (3, Verdict.INCONCLUSIVE)])
def test_a_token_criterion_misses_the_answers_that_did_not_come(silent, num_absent, verdict):
    absent = {f"i{number:04d}" for number in range(num_absent)}
    made = changed(
        with_tokens(100, 0.01),
        lambda each: each.variant == silent and each.item in absent,
        status="error", text=None, score=None,
    )  # fmt: skip
    result = criterion(judge(made, recipe(KL_ALONE), "run"))
    assert _three(result.verdict) is verdict
    assert verdict is Verdict.PASS or "3 of 100" in result.reason


def test_options_that_are_only_ranked_do_not_hide_answers_that_did_not_come():
    made = changed(
        with_tokens(100, 0.01),
        lambda each: each.variant == "w8a8" and each.item < "i0003",
        status="error", text=None, score=None,
    )  # fmt: skip
    ranked = tuple(
        dataclasses.replace(each, evalset="choice", item=f"{each.item}-{number}", written=False)
        for each in made.rows
        for number in range(5)
    )
    result = criterion(judge(dataclasses.replace(made, rows=(*made.rows, *ranked)), recipe(KL_ALONE), "run"))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "3 of 100 answers in scope are missing" in result.reason


def test_scores_that_are_missing_are_counted_in_the_scope_of_the_criterion():
    """Three of fifty scores of one set are too many, though of all hundred and fifty they are two in a hundred."""
    made = with_tokens(150, 0.01)
    made = changed(made, lambda each: each.item < "i0050", language="zh")
    lost = {key for key in made.token_scores["w8a8"] if "/i000" in key and key.split("/")[1] < "i0003"}
    kept = {key: value for key, value in made.token_scores["w8a8"].items() if key not in lost}
    made = dataclasses.replace(made, token_scores=dict(made.token_scores) | {"w8a8": kept})
    wanted = [KL_ALONE[0] | {"where": {"language": language}} for language in ("zh", "en")]
    sheet = judge(made, recipe([*wanted, *KL_ALONE]), "run")
    assert [criterion(sheet, index=index).verdict for index in range(3)] == [
        Verdict.INCONCLUSIVE, Verdict.PASS, Verdict.PASS,
    ]  # fmt: skip
    assert "3 of 50 answers in scope are missing" in criterion(sheet).reason


@pytest.mark.parametrize(("num_empty", "verdict"), [(50, Verdict.PASS), (51, Verdict.INCONCLUSIVE)])
def test_a_variant_whose_answers_are_mostly_garbage_passes_nothing(num_empty, verdict):
    """Its probabilities are the baseline's, and no criterion looks at what it wrote."""
    hit = (DefectHit("empty"),)
    made = changed(
        with_tokens(100, 0.01),
        lambda each: each.variant == "w8a8" and each.item < f"i{num_empty:04d}",
        text="", defects=hit,
    )  # fmt: skip
    sheet = judge(made, recipe(KL_ALONE), "run")
    assert sheet.tiers[0].verdict is verdict
    assert verdict is Verdict.PASS or "51 of 100 answers of w8a8 to facts are garbage (empty)" in sheet.tiers[0].reason


def test_token_criteria_without_token_scores_are_inconclusive():
    base = [[1.0]] * 100
    sheet = judge(evidence(base, {"w8a8": base}), recipe([{"metric": "kl_mean", "margin": 0.5}]), "run")
    assert sheet.tiers[0].verdict is Verdict.INCONCLUSIVE


def test_a_tier_that_must_stay_fp16_passes_for_the_baseline():
    base = scores(100, 0.9)
    wanted = recipe([], default="baseline", allow=["baseline"])
    sheet = judge(evidence(base, {"w8a8": base}), wanted, "run")
    tier = sheet.tiers[0]
    assert (tier.verdict, tier.serve) == (Verdict.PASS, "baseline")
    refused = next(each for each in tier.variants if each.variant == "w8a8")
    assert not refused.allowed
    assert refused.reason == "this interface must stay FP16"


@pytest.mark.parametrize(("margins", "said"), [([0.1], "agrees with itself"), ([0.1, 1e-6], "within 1 of 2 margins")])
def test_the_baseline_is_said_to_agree_with_itself_only_where_every_margin_is_settled(margins, said):
    base = scores(100, 0.9)
    noise = [[1 - value for value in item] if number in {3, 50} else item for number, item in enumerate(base)]
    wanted = recipe(
        [{"metric": "score_loss", "margin": margin} for margin in margins], default="baseline", allow=["baseline"]
    )
    tier = judge(evidence(base, {"w8a8": base}, floor=noise), wanted, "run").tiers[0]
    assert tier.verdict is Verdict.PASS
    assert said in tier.reason


def test_an_allowed_precision_allows_its_variants_and_the_first_that_passes_is_served():
    base = scores(200, 0.9)
    bad = damaged(base, 0.4)
    made = evidence(base, {"awq": bad, "gptq": base, "w8a8": base})
    made = dataclasses.replace(made, precisions=dict(made.precisions) | {"awq": "W4A16", "gptq": "W4A16"})
    wanted = recipe([SCORE], ["awq", "gptq", "w8a8"], default="awq", allow=["W4A16"])
    tier = judge(made, wanted, "run").tiers[0]
    assert (tier.verdict, tier.serve) == (Verdict.FAIL, "gptq")
    assert {each.variant: each.allowed for each in tier.variants} == {
        "baseline": True, "awq": True, "gptq": True, "w8a8": False,
    }  # fmt: skip


def test_without_a_fallback_nothing_is_served():
    base = scores(200, 0.9)
    tier = judge(evidence(base, {"w8a8": damaged(base, 0.4)}), recipe([SCORE], fallback=None), "run").tiers[0]
    assert tier.serve is None


def test_numbers_of_an_engine_that_a_tier_does_not_accept_decide_nothing():
    base = scores(200, 0.9)
    made = dataclasses.replace(evidence(base, {"w8a8": damaged(base, 0.4)}), engine="transformers")
    sheet = judge(made, recipe([SCORE]), "run")
    assert set(verdicts(sheet).values()) == {Verdict.INCONCLUSIVE}
    assert "accepts vllm" in sheet.tiers[0].reason
    assert criterion(sheet).verdict is Verdict.FAIL  # still shown


def test_a_variant_that_could_not_be_run_is_inconclusive_with_the_reason():
    base = scores(200, 0.9)
    died = "the server died\n  log: x.log\n    Killed"
    made = dataclasses.replace(evidence(base, {"w8a8": base}), invalid={"w8a8": died})
    sheet = judge(made, recipe([SCORE]), "run")
    assert sheet.tiers[0].verdict is Verdict.INCONCLUSIVE
    assert "the server died" in sheet.tiers[0].reason
    assert "\n" not in sheet.tiers[0].reason
    assert any("x.log" in each for each in sheet.findings)


def test_without_an_a_a_arm_the_sheet_says_so():
    base = scores(200, 0.9)
    rows = tuple(arm("baseline", base) + arm("w8a8", base))
    sheet = judge(Evidence(rows=rows, engine="vllm"), recipe([SCORE]), "run")
    assert any("no A/A arm" in each for each in sheet.findings)
    assert verdicts(sheet)["baseline"] is Verdict.INCONCLUSIVE  # the recipe asked for one


def test_a_variant_that_does_not_repeat_itself_is_a_finding():
    base = scores(50, 0.9)
    made = evidence(base, {"w8a8": base})
    again = arm("w8a8", base, replicate=1, identical=False)
    sheet = judge(dataclasses.replace(made, rows=(*made.rows, *again)), recipe([SCORE]), "run")
    assert (
        "Asked twice, w8a8 gives the same answer to 0 of 50 requests: its kernels do not repeat themselves."
        in sheet.findings
    )


def test_the_sheet_survives_json():
    base = scores(60, 0.9)
    sheet = judge(with_tokens(80, 0.5), recipe([SCORE, *TOKEN_CRITERIA]), "run")
    assert type(sheet).model_validate_json(sheet.model_dump_json()) == sheet
    assert judge(evidence(base, {"w8a8": base}), recipe([SCORE]), "run").run_id == "run"
