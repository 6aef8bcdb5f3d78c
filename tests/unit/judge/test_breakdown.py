import dataclasses

import numpy as np
import pytest

from qgate.judge.axes import PROMPT_LENGTHS, bucket, natural
from qgate.judge.compare import MEAN_TOKEN_METRICS
from qgate.judge.sample import of_tokens
from qgate.judge.tokens import table
from qgate.judge.verdict import judge
from qgate.schemas.evidence import DefectHit, Evidence
from qgate.schemas.recipe import Statistics

from .made import arm, evidence, recipe, token_scores
from .test_verdict import with_tokens

MADE = recipe([{"metric": "score_loss", "margin": 0.05}])
WANTED = MADE.model_copy(update={"statistics": Statistics(resamples=4_000)})  # bounds at alpha / 9 need some


def damaged_when_hot_and_long():
    """Damage only at temperature 1.2 and in prompts from 1k on; the floor is quiet."""
    base, variant = [], []
    for temperature in (0.0, 0.7, 1.2):
        for prompt_tokens in (30, 300, 1500):
            fields = {
                "temperature": temperature,
                "profile": f"t{temperature}",
                "prompt_tokens": prompt_tokens,
                "evalset": f"facts-{prompt_tokens}",
                "completion_tokens": 100,
            }
            good = [[1.0]] * 40
            bad = [[float(item % 2)] for item in range(40)] if temperature == 1.2 and prompt_tokens == 1500 else good
            base += arm("baseline", good, **fields) + arm("baseline", good, replicate=1, **fields)
            for each in arm("w8a8", bad, **fields):
                hurt = each.score == 0
                loop = (DefectHit("repetition_loop", start=5),) if hurt else ()
                changed = {"identical": not hurt, "first_divergence": 70 if hurt else None, "defects": loop}
                variant.append(dataclasses.replace(each, **changed))
    return Evidence(rows=(*base, *variant), engine="vllm")


@pytest.fixture(scope="module")
def sheet():
    return judge(damaged_when_hot_and_long(), WANTED, "run")


def part(sheet, metric, axis):
    return next(each for each in sheet.breakdowns if (each.metric, each.axis) == (metric, axis))


def test_the_first_temperature_and_length_off_the_floor_are_named(sheet):
    hot = part(sheet, "score_loss", "temperature")
    assert (hot.labels, hot.first_departure) == (("0", "0.7", "1.2"), "1.2")
    long = part(sheet, "score_loss", "prompt length")
    assert (long.labels, long.first_departure) == (("0–49", "256–511", "1024–2047"), "1024–2047")
    crossed = part(sheet, "defect_rate", "prompt length × temperature")
    assert crossed.first_departure == "1024–2047 × 1.2"
    assert crossed.variant_values[-1] == pytest.approx(0.5)
    assert crossed.floor[-1] == 0.0


def test_levels_of_all_three_arms_are_shown(sheet):
    hot = part(sheet, "score_loss", "temperature")
    assert hot.baseline == hot.floor == (1.0, 1.0, 1.0)
    assert hot.variant_values == pytest.approx((1.0, 1.0, 1 - 0.5 / 3))
    assert hot.num == (120, 120, 120)


def test_the_position_of_the_first_change_and_of_defects_is_known_without_token_scores(sheet):
    changed = part(sheet, "output_disagreement", "output position")
    assert changed.labels == ("0–15", "16–63", "64–127")
    assert changed.variant_values[:2] == (0.0, 0.0)
    assert changed.first_departure == "64–127"
    loops = part(sheet, "defect_rate", "output position")  # character 5 of 9 in an answer of 100 tokens
    assert [value > 0 for value in loops.variant_values] == [False, True, False]


def test_findings_say_where_it_begins_in_one_line_a_variant(sheet):
    told = [each for each in sheet.findings if "noise floor" in each]
    assert told == [
        "w8a8 leaves the baseline's noise floor: scores from prompt length 1024–2047 and temperature 1.2 on; "
        "defects from prompt length 1024–2047, temperature 1.2 and output position 16–63 on; "
        "changed answers from prompt length 1024–2047, temperature 1.2 and output position 64–127 on."
    ]


def test_what_leaves_the_floor_at_the_first_label_does_so_from_the_start():
    sheet = judge(with_tokens(60, 1.0), WANTED, "run")
    assert "w8a8 leaves the baseline's noise floor: KL from the start." in sheet.findings


def test_nothing_departs_where_nothing_differs():
    base = [[1.0, 0.0]] * 60
    rows = []
    for temperature in (0.0, 1.0):
        fields = {"temperature": temperature, "profile": f"t{temperature:g}"}
        rows += arm("baseline", base, **fields) + arm("baseline", base, replicate=1, **fields)
        rows += arm("w8a8", base, **fields)
    sheet = judge(Evidence(rows=tuple(rows), engine="vllm"), WANTED, "run")
    assert sheet.breakdowns
    assert {each.first_departure for each in sheet.breakdowns} == {None}


def test_token_metrics_are_read_by_position():
    sheet = judge(with_tokens(60, 1.0), WANTED, "run")
    kl = part(sheet, "kl_mean", "output position")
    assert kl.labels == ("0–15",)
    assert kl.first_departure == "0–15"
    assert kl.floor == pytest.approx((0.0,), abs=1e-6)


def test_answer_length_is_that_of_the_reference_whatever_a_variant_made_of_it():
    short = {"evalset": "short", "completion_tokens": 100}
    rows = [
        *arm("baseline", [[1.0]] * 20, **short),
        *arm("baseline", [[1.0]] * 20, evalset="long", completion_tokens=300),
        *arm("w8a8", [[0.0]] * 20, **{**short, "completion_tokens": 600}),
        *arm("w8a8", [[1.0]] * 20, evalset="long", completion_tokens=10),
    ]
    found = part(judge(Evidence(rows=tuple(rows), engine="vllm"), WANTED, "run"), "score_loss", "answer length")
    assert found.labels == ("64–127", "256–511")
    assert found.variant_values == (0.0, 1.0)


def test_token_metrics_are_read_along_the_items_own_axes():
    """KL grows with the length of the prompt; the means are those of the positions, item by item."""
    generator = np.random.default_rng(5)
    made = evidence([[1.0, 1.0]] * 40, {"w8a8": [[1.0, 1.0]] * 40})
    rows = tuple(dataclasses.replace(each, prompt_tokens=30 if int(each.item[1:]) < 20 else 300) for each in made.rows)
    arms = {"baseline": {}, "baseline#1": {}, "w8a8": {}}
    for here in (each for each in rows if each.variant == "baseline" and each.replicate == 0):
        logits = generator.normal(0, 3, (int(generator.integers(3, 20)), 30))
        for name, extra in (
            ("baseline", 0.0),
            ("baseline#1", 0.05),
            ("w8a8", 0.05 if here.prompt_tokens == 30 else 1.0),
        ):
            scored = token_scores(here, logits + generator.normal(0, 1, logits.shape) * extra, logits.argmax(-1))
            arms[name][scored.id] = scored
    sheet = judge(dataclasses.replace(made, rows=rows, token_scores=arms), WANTED, "run")
    kl = part(sheet, "kl_mean", "prompt length")
    assert (kl.labels, kl.num, kl.first_departure) == (("0–49", "256–511"), (20, 20), "256–511")
    reference = [each for each in rows if each.variant == "baseline" and each.replicate == 0]
    tokens = table(reference, arms["baseline"], arms["w8a8"])
    for metric, (harms_of, support) in MEAN_TOKEN_METRICS.items():
        for label, value in zip(kl.labels, part(sheet, metric, "prompt length").variant_values, strict=True):
            inside = np.array([bucket(each.prompt_tokens, PROMPT_LENGTHS) == label for each in tokens.rows])
            mean = of_tokens(tokens, harms_of(tokens), inside, support).value
            assert value == pytest.approx(np.expm1(mean) if metric == "perplexity_increase" else mean)
    assert "w8a8 leaves the baseline's noise floor: KL from prompt length 256–511 on." in sheet.findings


def test_a_token_metric_that_no_position_has_is_left_out():
    made = evidence([[1.0]] * 20, {"w8a8": [[1.0]] * 20})
    rows = tuple(dataclasses.replace(each, prompt_tokens=30 if int(each.item[1:]) < 10 else 300) for each in made.rows)
    reference = [each for each in rows if each.variant == "baseline" and each.replicate == 0]
    plain = [token_scores(each, np.zeros((4, 30)), np.arange(4), top_k=0) for each in reference]
    arms = {name: {scored.id: scored for scored in plain} for name in ("baseline", "w8a8")}
    found = judge(dataclasses.replace(made, rows=rows, token_scores=arms), WANTED, "run").breakdowns
    by_length = {each.metric for each in found if each.axis == "prompt length"}
    assert "probability_drop" in by_length
    assert not by_length & {"kl_mean", "top1_disagreement"}


def test_labels_stand_in_natural_order():
    labels = ["1k", "512", "16k", "2k", "none", "4096+", "64–127"]
    assert sorted(labels, key=natural) == ["64–127", "512", "1k", "2k", "4096+", "16k", "none"]
    assert [bucket(value, (0, 16, 64)) for value in (0, 15, 16, 64, 10**6)] == ["0–15", "0–15", "16–63", "64+", "64+"]
    assert np.isfinite(natural("0.8")[0])
