import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qgate.judge.tokens import kl_lower_bound, table

from .made import row, token_scores

VOCABULARY = 60


def arms(seed: int, top_k: int, shift: float, positions: int = 12):
    generator = np.random.default_rng(seed)
    base = generator.normal(0, 3, (positions, VOCABULARY))
    other = base + generator.normal(0, shift, base.shape)
    ids = generator.integers(0, VOCABULARY, positions)
    here = row()
    return base, other, token_scores(here, base, ids, top_k), token_scores(here, other, ids, top_k)


def softmax(logits):
    powers = np.exp(logits - logits.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def true_kl(base, other):
    p, q = softmax(base), softmax(other)
    return (p * np.log(p / q)).sum(-1)


@settings(max_examples=60)
@given(st.integers(0, 10_000), st.sampled_from([1, 5, 20]), st.floats(0, 6))
def test_the_bound_never_exceeds_the_divergence(seed, top_k, shift):
    base, other, p, q = arms(seed, top_k, shift)
    bound, covered = kl_lower_bound(p, q)
    assert (bound <= true_kl(base, other) + 1e-4).all()
    assert (bound >= 0).all()
    assert ((covered >= 0) & (covered <= 1 + 1e-5)).all()


def test_with_the_whole_vocabulary_the_bound_is_the_divergence():
    base, other, p, q = arms(1, VOCABULARY, 1.0)
    bound, covered = kl_lower_bound(p, q)
    assert bound == pytest.approx(true_kl(base, other), abs=1e-4)
    assert covered == pytest.approx(1.0, abs=1e-4)


def test_longer_lists_come_closer():
    means = []
    for top_k in (1, 5, 10, 20):
        _, _, p, q = arms(2, top_k, 1.0, positions=400)
        means.append(kl_lower_bound(p, q)[0].mean())
    assert means == sorted(means)


def test_equal_arms_have_no_harm():
    _, _, p, _ = arms(3, 20, 1.0)
    found = table([row()], {p.id: p}, {p.id: p})
    assert found.kl == pytest.approx(0, abs=1e-6)
    assert not found.disagree.any()
    assert not found.drop.any()
    assert not found.log_drop.any()


def test_harms_at_the_token_are_differences_of_its_probability():
    base, other, p, q = arms(4, 20, 2.0)
    found = table([row()], {p.id: p}, {p.id: q})
    at = (np.arange(12), p.token_ids)
    assert found.drop == pytest.approx(softmax(base)[at] - softmax(other)[at], abs=1e-5)
    assert found.log_drop == pytest.approx(np.log(softmax(base)[at] / softmax(other)[at]), abs=1e-4)
    assert (found.disagree == (base.argmax(-1) != other.argmax(-1))).all()


@pytest.mark.parametrize("bad", [np.nan, -9999.0, -np.inf])
def test_what_is_not_finite_is_kept_as_a_finding(bad):
    _, _, p, q = arms(5, 20, 1.0)
    q.logprobs[3] = bad
    found = table([row()], {p.id: p}, {p.id: q})
    assert found.num_not_finite == 1
    assert np.isnan(found.kl[3])
    assert np.isnan(found.disagree[3])


def test_other_tokens_are_not_compared():
    _, _, p, q = arms(6, 20, 1.0)
    q.token_ids[0] = (q.token_ids[0] + 1) % VOCABULARY
    assert table([row()], {p.id: p}, {p.id: q}) is None


def test_answers_that_one_arm_did_not_score_are_expected_all_the_same():
    _, _, p, q = arms(7, 20, 1.0)
    other = row(item=1)
    _, _, p2, _ = arms(8, 20, 1.0)
    found = table([row(), other], {p.id: p, "facts/i0001/warm/0": p2}, {p.id: q})
    assert (len(found.rows), found.num_expected) == (1, 2)


def test_many_answers_at_once_are_the_same_as_one_by_one(monkeypatch):
    """Blocks of answers, also where the lists' lengths differ between them."""
    rows, base, other = [], {}, {}
    for item, top_k in enumerate((20, 20, 5, 20)):
        here = row(item=item)
        _, _, p, q = arms(item, top_k, 1.0)
        key = "/".join(map(str, here.pair))
        rows, base, other = [*rows, here], base | {key: p}, other | {key: q}
    monkeypatch.setattr("qgate.judge.tokens.BLOCK_POSITIONS", 20)
    together = table(rows, base, other)
    one_by_one = [table([here], base, other) for here in rows]
    assert together.kl == pytest.approx(np.concatenate([each.kl for each in one_by_one]))
    assert together.log_drop == pytest.approx(np.concatenate([each.log_drop for each in one_by_one]))
    assert list(together.answer) == list(np.repeat(range(4), 12))
    assert list(together.position) == list(range(12)) * 4


@pytest.mark.parametrize("which", [0, 1])
def test_a_position_without_a_list_is_no_agreement(which):
    _, _, p, q = arms(9, 20, 1.0)
    (p, q)[which].top_logprobs[2] = -np.inf
    found = table([row()], {p.id: p}, {p.id: q})
    assert np.isnan(found.kl[2])
    assert found.num_not_finite == 1
