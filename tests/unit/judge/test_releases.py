"""What got worse from one run to another: sure only where it is, whatever the number of comparisons."""

from dataclasses import replace
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from qgate.judge.releases import METRICS, Change, compare
from qgate.schemas.evidence import DefectHit, Row
from qgate.schemas.recipe import Statistics
from tests.unit.judge.made import arm

STATISTICS = Statistics(resamples=20_000)
LOOP = DefectHit("repetition_loop", 3)


def scores(seed: int, mean: float, num: int = 200) -> list[list[float]]:
    random = Random(seed)
    return [[float(random.random() < mean)] for _ in range(num)]


def rows(variant: str, seed: int, mean: float, **fields: object) -> list[Row]:
    return arm(variant, scores(seed, mean), **fields)


def named(changes: tuple[Change, ...], metric: str, variant: str = "w8a8", evalset: str = "facts") -> Change:
    (found,) = [c for c in changes if (c.result.metric, c.variant, c.evalset) == (metric, variant, evalset)]
    return found


def test_a_run_against_itself_changes_nothing() -> None:
    same = rows("w8a8", 1, 0.7) + rows("baseline", 1, 0.8)
    changes = compare(same, same, STATISTICS)
    assert [(c.variant, c.result.metric) for c in changes] == [(v, m) for v in ("w8a8", "baseline") for m in METRICS]
    assert not any(change.is_worse or change.is_better for change in changes)
    assert {change.result.estimate.value for change in changes} == {0.0}


def test_a_planted_loss_is_worse_and_a_gain_is_better() -> None:
    low, high = rows("w8a8", 1, 0.4), rows("w8a8", 2, 0.9)
    assert named(compare(high, low, STATISTICS), "score_loss").is_worse
    gain = named(compare(low, high, STATISTICS), "score_loss")
    assert gain.is_better
    assert not gain.is_worse


def test_only_the_set_and_variant_that_got_worse() -> None:
    before = [r for v in ("w8a8", "awq") for s in ("facts", "code") for r in rows(v, 1, 0.9, evalset=s)]
    broken = [replace(r, score=0.0) if (r.variant, r.evalset) == ("awq", "code") else r for r in before]
    worse = [(c.variant, c.evalset, c.result.metric) for c in compare(before, broken, STATISTICS) if c.is_worse]
    assert worse == [("awq", "code", "score_loss")]


def test_new_defects_and_truncation() -> None:
    before = rows("w8a8", 1, 0.9)
    after = [replace(r, defects=(LOOP,)) if n % 4 == 0 else r for n, r in enumerate(before)]
    assert named(compare(before, after, STATISTICS), "defect_increase").is_worse
    cut = [replace(r, status="truncated", finish_reason="length") if n % 4 == 0 else r for n, r in enumerate(before)]
    assert named(compare(before, cut, STATISTICS), "truncation_increase").is_worse


def test_a_defect_that_the_baseline_excuses_is_there_still() -> None:
    """Both baselines loop, so both runs excuse it: nothing changed. If only the later does, something did."""
    clean = rows("w8a8", 1, 0.9)
    excused = [replace(r, excused=("repetition_loop",)) for r in clean]
    assert named(compare(excused, excused, STATISTICS), "defect_increase").result.estimate.value == 0.0
    clean = [replace(r, excused=()) for r in clean]
    assert named(compare(clean, excused, STATISTICS), "defect_increase").is_worse
    shown = [replace(r, defects=(LOOP,), excused=()) for r in clean]
    assert named(compare(excused, shown, STATISTICS), "defect_increase").result.estimate.value == 0.0


def test_answers_that_did_not_come_are_never_better() -> None:
    before = rows("w8a8", 1, 0.5)
    gone = [replace(r, status="error", score=None, text=None) for r in before]
    changes = compare(before, gone, STATISTICS)
    assert not any(change.is_better for change in changes)
    assert named(changes, "score_loss").result.verdict != "PASS"


def test_only_shared_requests_count() -> None:
    before, after = rows("w8a8", 1, 0.9), rows("w8a8", 1, 0.9)[:120] + rows("new", 1, 0.1)
    changes = compare(before, after, STATISTICS)
    assert {change.variant for change in changes} == {"w8a8"}
    assert named(changes, "score_loss").result.estimate.num_items == 120
    assert compare(before, rows("new", 1, 0.1), STATISTICS) == ()


def test_a_repeat_of_a_variant_does_not_count() -> None:
    before = rows("w8a8", 1, 0.9)
    noisy = before + rows("w8a8", 5, 0.1, replicate=1)
    assert named(compare(noisy, noisy, STATISTICS), "score_loss").result.estimate.value == 0.0


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 1000))
def test_order_does_not_matter(seed: int) -> None:
    before, after = rows("w8a8", 1, 0.8), rows("w8a8", 2, 0.6)
    shuffled = [Random(seed).sample(part, len(part)) for part in (before, after)]
    fast = Statistics(resamples=1000)
    assert compare(before, after, fast) == compare(*shuffled, fast)


def test_equal_releases_are_seldom_called_worse() -> None:
    """Twelve comparisons of equal releases at once, forty times: about one false alarm in twenty is allowed."""
    fast, alarms = Statistics(resamples=5000), 0
    for seed in range(40):
        names = [(v, s) for v in ("w8a8", "awq") for s in ("facts", "code")]
        before = [r for n, (v, s) in enumerate(names) for r in rows(v, 10 * seed + n, 0.6, evalset=s)[:80]]
        after = [r for n, (v, s) in enumerate(names) for r in rows(v, 10 * seed + n + 5000, 0.6, evalset=s)[:80]]
        alarms += any(change.is_worse for change in compare(before, after, fast))
    assert alarms <= 5


def test_answers_that_did_not_come_are_no_success() -> None:
    before = rows("w8a8", 1, 0.9)
    gone = {"status": "error", "score": None, "text": None, "finish_reason": None}
    for every, is_unknown in ((1, True), (10, True), (100, False)):
        after = [replace(r, **gone) if n % every == 0 else r for n, r in enumerate(before)]
        for one, other in ((before, after), (after, before)):
            changes = compare(one, other, STATISTICS)
            assert {change.is_unknown for change in changes} == {is_unknown}
            assert not any(change.is_worse for change in changes)
