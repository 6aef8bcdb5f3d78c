"""What the self-test makes of checkpoints that were damaged on purpose: it sees damage, and it can fail."""

import csv
import io
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.stats import beta, binom

from qgate.judge.criteria import Support
from qgate.judge.resample import Draws
from qgate.judge.selftest import damaged, needs, order
from qgate.judge.selftest.damage_report import alarms, needed_table, order_table, page, wrong_order
from qgate.judge.selftest.damaged import examine
from qgate.judge.selftest.order import Alike
from qgate.judge.selftest.series import Series
from qgate.judge.selftest.spread import between_items
from qgate.judge.tokens import TokenTable
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import Criterion, Statistics
from tests.unit.judge.made import arm

STATISTICS = Statistics(resamples=1_000)
LEVELS = {"noise-1": 0.01, "noise-2": 0.02, "noise-3": 0.04}
NUM_ITEMS, NUM_TOKENS = 120, 30


@pytest.fixture(autouse=True, scope="module")
def few_repetitions() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module, name, number in (
            (needs, "NUM_SETS", 100), (needs, "SIZES", needs.SIZES[needs.SIZES < 150]), (order, "PERMUTATIONS", 2_000),
            (order, "NUM_PARTS", 100), (order, "PART_SIZES", (50,)), (damaged, "RESAMPLES", 500),
            (damaged, "MOST_ITEMS", 150),
        ):  # fmt: skip
            patch.setattr(module, name, number)
        yield


def rows_of(losses: dict[str, float]) -> tuple[Row, ...]:
    """A baseline that is right, a second run that differs twice, and variants that lose a share of the items."""
    generator = np.random.default_rng(3)
    right = [[1.0]] * NUM_ITEMS
    again = [[0.0 if item < 2 else 1.0] for item in range(NUM_ITEMS)]
    rows = arm("baseline", right) + arm("baseline", again, replicate=1)
    for name, share in losses.items():
        rows += arm(name, [[float(generator.random() >= share)] for _ in range(NUM_ITEMS)])
    return tuple(rows)


def tokens_of(rows: tuple[Row, ...], kl: dict[str, float]) -> dict[str, TokenTable]:
    reference = tuple(row for row in rows if row.variant == "baseline" and row.replicate == 0)
    generator = np.random.default_rng(4)
    answer = np.repeat(np.arange(len(reference)), NUM_TOKENS)
    zeros = np.zeros(answer.size)

    def table(mean: float) -> TokenTable:
        return TokenTable(
            rows=reference,
            answer=answer,
            position=np.tile(np.arange(NUM_TOKENS), len(reference)),
            kl=mean * generator.exponential(size=answer.size),
            disagree=(generator.random(answer.size) < mean).astype(np.float64),
            drop=zeros,
            log_drop=zeros,
            covered=zeros,
            num_expected=len(reference),
        )

    return {name: table(mean) for name, mean in kl.items()}


@pytest.fixture(scope="module")
def growing() -> damaged.Damaged:
    """Damage that takes more of the score and of the tokens at each level."""
    rows = rows_of({"noise-1": 0.1, "noise-2": 0.2, "noise-3": 0.5})
    tokens = tokens_of(rows, {"baseline#1": 0.0, "noise-1": 0.01, "noise-2": 0.05, "noise-3": 0.2})
    return examine(rows, tokens, LEVELS, STATISTICS)


def test_damage_is_seen_with_fewer_items_the_more_there_is(growing: damaged.Damaged) -> None:
    seen = {
        metric: [need.see for need in growing.needs if need.series.criterion.metric == metric]
        for metric in ("score_loss", "kl_mean")
    }
    assert None not in seen["score_loss"]
    assert sorted(set(map(int, seen["score_loss"])), reverse=True) == seen["score_loss"]  # type: ignore[arg-type]
    assert seen["kl_mean"] == [5, 5, 5]


def test_damage_in_order_is_found_in_order(growing: damaged.Damaged) -> None:
    assert {row.verdicts[0.04] for row in growing.verdicts if row.name.startswith(("score", "kl"))} == {"FAIL"}
    assert not wrong_order(growing, 0.05)
    assert not alarms(growing, 0.05)
    assert all(each.p_rise < 0.02 for each in growing.ordered if each.series.criterion.metric == "score_loss")


def test_the_number_of_items_is_where_the_power_is() -> None:
    """One loss in five and no gains: at n items the bound is Clopper–Pearson's, so the power is a binomial sum."""
    losses = (np.arange(500) % 5 == 0).astype(np.float64)
    found = Series(
        Criterion(metric="score_loss", margin=0.1), (0.0, 0.01), np.array([losses * 0, losses]), Support(0, 1),
    )  # fmt: skip
    [need] = needs.needs(found, STATISTICS, Draws(2_000, 1, 150), np.random.default_rng(0))
    assert need.see is not None
    assert 7 <= need.see <= 9  # with one loss the lower bound is above 0, and 0.8**n is 0.2 between 7 and 8
    sizes = np.arange(20, 150)
    lost = [next(k for k in range(n) if beta.ppf(0.05, k, n - k + 1) > 0.1) for n in sizes]
    exact = next(n for n, k in zip(sizes, lost, strict=True) if binom.sf(k - 1, n, 0.2) >= 0.8)
    assert need.settle is not None
    assert 0.85 * exact <= need.settle <= 1.15 * exact


def test_more_damage_that_looks_better_is_found_out() -> None:
    rows = rows_of({"noise-1": 0.5, "noise-2": 0.2, "noise-3": 0.0})
    found = examine(rows, {}, LEVELS, STATISTICS)
    wrong = wrong_order(found, 0.05)
    assert {(gain.lower, gain.higher) for gain in wrong} >= {(0.01, 0.02), (0.02, 0.04), (0.01, 0.04)}
    told = page(found, 0.05, "qgate selftest", "made-up answers.")
    assert f"**{len(wrong)}** have less harm" in told
    assert "score_loss on facts: 0.04 below 0.02" in told
    assert (
        "better at some level than at a lower one for 2 of 6 criteria: score_loss on facts, flip_rate on facts" in told
    )
    contradicted = [each.contradicted for each in found.ordered if each.series.criterion.metric == "score_loss"]
    assert max(contradicted[0].values()) > 0.9


def test_equal_levels_are_not_called_disordered() -> None:
    rows = rows_of({"noise-1": 0.3, "noise-2": 0.3, "noise-3": 0.3})
    assert not wrong_order(examine(rows, {}, LEVELS, STATISTICS), 0.05)


def test_an_arm_that_fails_against_itself_is_an_alarm() -> None:
    found = Series(Criterion(metric="score_loss", margin=0.05), (0.0, 0.1), np.zeros((2, 50)), Support(-1, 1))
    none = damaged.Damaged((), (), (), (), (Alike(found, 50, 2_000, 0, 100),), {})
    loud = damaged.Damaged((), (), (), (), (Alike(found, 50, 2_000, 0, 140),), {})
    assert not alarms(none, 0.05)
    assert alarms(loud, 0.05)
    assert "140 FAIL" in page(loud, 0.05, "qgate selftest", "made-up answers.")


def test_an_arm_without_token_scores_is_left_out_of_token_metrics() -> None:
    rows = rows_of(dict.fromkeys(LEVELS, 0.3))
    tokens = tokens_of(rows, {"baseline#1": 0.0, "noise-1": 0.01, "noise-2": 0.05})
    found = examine(rows, tokens, LEVELS, STATISTICS)
    assert not [need for need in found.needs if need.series.criterion.metric == "kl_mean"]
    assert [row.verdicts[0.04] for row in found.verdicts if row.name.startswith("kl_mean")] == ["INCONCLUSIVE"]


@pytest.mark.parametrize("share", [0.0, 0.2, 0.7])
def test_the_spread_between_items_is_found(share: float) -> None:
    generator = np.random.default_rng(5)
    rows = tuple(row for row in rows_of({}) if row.replicate == 0)
    counts = generator.integers(5, 60, len(rows))
    answer = np.repeat(np.arange(len(rows)), counts)
    between, within = generator.standard_normal(len(rows)), generator.standard_normal(answer.size)
    kl = np.exp(2 * (np.sqrt(share) * between[answer] + np.sqrt(1 - share) * within))
    table = TokenTable(rows, answer, answer, kl, kl, kl, kl, kl, len(rows))
    assert between_items(table) == pytest.approx(share, abs=0.1)
    few, ones = answer[:3], np.ones(3)
    assert between_items(TokenTable(rows[:1], few, few, ones, ones, ones, ones, ones, 1)) is None


def test_the_tables_hold_every_level_and_pair(growing: damaged.Damaged) -> None:
    needed = list(csv.DictReader(io.StringIO(needed_table(growing))))
    assert {line["level"] for line in needed if line["metric"] == "score_loss"} == {"0.01", "0.02", "0.04"}
    pairs = list(csv.DictReader(io.StringIO(order_table(growing))))
    assert len([line for line in pairs if line["metric"] == "flip_rate"]) == 6
