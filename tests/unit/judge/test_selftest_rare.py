import numpy as np
import pytest

from qgate.judge.selftest import rare
from qgate.judge.tokens import table
from qgate.schemas.recipe import Criterion, Statistics

from .made import evidence, recipe, token_scores

CAP = Criterion(metric="defect_rate", margin=0.01, defects=("token_salad",))
LENIENT = Criterion(metric="defect_increase", margin=0.2)
RELATIVE = Criterion(metric="relative_score_loss", margin=0.02)
KL = Criterion(metric="kl_mean", margin=0.1)
LEFT_OUT = (
    Criterion(metric="worst_slice_score_loss", margin=0.1, by="kind"),
    Criterion(metric="kl_p95", margin=0.1),
    Criterion(metric="score_loss", margin=0.1, evalset="facts"),
)


@pytest.fixture(scope="module")
def found():
    made = evidence([[1.0]] * 320, {})
    generator = np.random.default_rng(0)
    reference = [each for each in made.rows if not each.replicate][:90]
    scores = {each.request_id: token_scores(each, generator.normal(0, 3, (4, 20)), np.arange(4)) for each in reference}
    tokens = {"baseline#1": table(reference, scores, scores)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rare, "NUM_RUNS", 200)
        yield rare.missed(made.rows, tokens, [CAP, LENIENT, RELATIVE, KL, *LEFT_OUT, CAP], Statistics(resamples=1_000))


def test_each_mean_over_all_sets_is_asked_once_with_the_items_that_have_it(found):
    assert [(each.criterion, each.num_items) for each in found] == [
        (CAP, 320),
        (LENIENT, 320),
        (RELATIVE, 320),
        (KL, 90),
    ]


def test_a_cap_misses_less_garbage_the_more_there_is_and_a_lenient_rise_misses_all(found):
    cap, lenient, relative, kl = (list(each.passes.values()) for each in found)
    assert cap[0] > 0.1  # where no item happens to be hit
    assert sorted(cap, reverse=True) == cap
    assert cap[2:] == [0.0, 0.0]
    assert lenient == [1.0] * 4
    assert relative[0] > relative[2] >= relative[3] == 0.0  # all that a garbled answer had is lost
    assert kl[0] == pytest.approx(0.995**90, abs=0.1)  # passes just where none of its items is hit
    assert kl[3] <= 0.03


def test_a_tier_is_told_by_its_strictest_criterion(found):
    made = recipe([each.model_dump(exclude_none=True) for each in (LENIENT, CAP)])
    text = rare.page(found, {"mine": made}, "qgate selftest", "made-up answers.")
    assert "| mine | chat | defect_rate 0.01 (token_salad) |" in text
    assert "| kl_mean 0.1 | 90 |" in text
