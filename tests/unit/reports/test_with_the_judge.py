"""The judge's own sheet, not a sample of one, through every report: the seam that samples cannot hold."""

from dataclasses import replace

import pytest
from rich.console import Console

from qgate.judge.verdict import judge
from qgate.reports import annotations, html, junit, markdown, terminal
from qgate.schemas.evidence import Evidence
from tests.unit.reports import sample

BY_THE_PIPELINE = {"precision", "bits_per_weight", "weight_bytes", "tokens_per_s"}
ONLY_WITH_TOKEN_SCORES = {"kl_mean", "top1_agreement", "reference_kl_mean", "reference_ln_perplexity_ratio"}


@pytest.fixture(scope="module")
def judged():
    bundle = sample.bundle(60)
    statistics = bundle.recipe.statistics.model_copy(update={"resamples": 1_000})
    recipe = bundle.recipe.model_copy(update={"statistics": statistics})
    evidence = Evidence(rows=tuple(bundle.rows), precisions=sample.PRECISION, engine="transformers")
    return replace(bundle, sheet=judge(evidence, recipe, bundle.run.run_id), recipe=recipe)


def test_every_report_takes_it(judged):
    run, sheet = judged.run, judged.sheet
    console = Console(width=80, no_color=True)
    with console.capture() as capture:
        console.print(terminal.render(run, sheet))
    texts = [capture.get(), markdown.render(run, sheet), annotations.render(run, sheet), html.render(judged)]
    for tier in sheet.tiers:
        assert all(tier.tier in text for text in (*texts, junit.render(run, sheet)))


def test_the_figures_that_reports_show_are_figures_that_it_gives(judged):
    wanted = {key for _, key, _ in terminal._COST} | {"mean_score_by_evalset", "identical_share", "num_answers"}
    for name in ("baseline", "w8a8"):
        assert wanted - BY_THE_PIPELINE - ONLY_WITH_TOKEN_SCORES <= set(judged.sheet.summary[name])


def test_its_breakdowns_are_drawn(judged):
    assert {"prompt length", "temperature", "prompt length × temperature"} <= {
        part.axis for part in judged.sheet.breakdowns
    }
    assert html.render(judged).count('<figure class="chart"') >= len(
        {(part.axis, part.metric) for part in judged.sheet.breakdowns}
    )
