"""Rows of documents whose options are ranked: what is picked, what agrees, and what they say nothing of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from qgate.judge.arms import Arms
from qgate.judge.criteria import metric_of
from qgate.judge.harms import read
from qgate.judge.observe import Place
from qgate.judge.ranked import Ranking, ranked
from qgate.schemas.answers import Sampling, TokenScores
from qgate.schemas.evalset import Item, Message, ScorerUse
from qgate.schemas.evidence import Evidence, Row

ITEM = Item(
    id="task:1", messages=(Message(role="user", content="Which?"),), kind="task", language="en", difficulty=3,
    scorer=ScorerUse(name="lm-eval"), slices={"group": "g"},
)  # fmt: skip
SAMPLING = Sampling(
    temperature=0.0, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
    frequency_penalty=0.0, max_tokens=1, seed=0,
)  # fmt: skip


def scores(*logprobs: float, greedy: bool = True) -> TokenScores:
    ids = np.arange(len(logprobs), dtype=np.int32)
    top = (ids if greedy else ids + 1)[:, None]
    return TokenScores("a", ids, np.array(logprobs, dtype=np.float32), top, top.astype(np.float32))


def ranking(*totals: float) -> Ranking:
    return Ranking(tuple(f" option {n}" for n in range(len(totals))), tuple(scores(total) for total in totals))


def row(found: Ranking, beside: Ranking | None = None, score: float | None = 1.0, variant: str = "w8a8") -> Row:
    return ranked(Place(variant, 0, "set", "lm-eval", ITEM, SAMPLING), 7, found, beside, score)


def test_the_likeliest_option_is_the_answer() -> None:
    found = row(ranking(-3.0, -1.0, -2.0), ranking(-1.0, -3.0, -2.0))
    assert (found.text, found.status, found.score, found.identical, found.similarity) == (
        "option 1",
        "ok",
        1.0,
        False,
        0,
    )
    assert (found.prompt_tokens, found.completion_tokens, found.defects, found.written) == (7, None, (), False)
    assert row(ranking(-3.0, -1.0), ranking(-9.0, -2.0)).identical is True
    assert row(ranking(-3.0, -1.0)).identical is None


@pytest.mark.parametrize(("greedy", "text"), [(True, "yes"), (False, "no")])
def test_a_single_option_is_said_or_not(greedy: bool, text: str) -> None:
    assert Ranking((" dawn",), (scores(-1.0, -0.5, greedy=greedy),)).picked == text


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), float("inf")])
def test_a_number_that_is_not_finite_is_an_answer_that_did_not_come(bad: float) -> None:
    found = row(ranking(-3.0, bad), ranking(-3.0, -1.0))
    assert (found.status, found.score, found.text, found.identical) == ("error", None, None, None)


def test_what_is_only_ranked_says_nothing_of_defects_lengths_and_limits() -> None:
    before, after = row(ranking(-1.0, -2.0), variant="baseline"), row(ranking(-2.0, -1.0), ranking(-1.0, -2.0), 0.0)
    laid = Arms.of(Evidence(rows=(before, after))).pairs("w8a8")
    for metric in ("defect_rate", "defect_increase", "truncation_increase", "length_drift", "garble_nll_increase"):
        harms = read(laid, metric_of(metric))
        assert np.isnan(harms.harm).all()
        assert not harms.expected.any()
        assert not harms.missing.any()
        assert harms.sample().num_items == 0
    for metric in ("score_loss", "flip_rate", "output_disagreement"):
        assert read(laid, metric_of(metric)).harm.tolist() == [1.0]
    gone = Arms.of(Evidence(rows=(before, replace(after, status="error", score=None, text=None, identical=None))))
    assert read(gone.pairs("w8a8"), metric_of("score_loss")).missing.all()
