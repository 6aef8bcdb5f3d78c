"""Judges the committed answers of results/h200/demo-vllm again, with judge and recipe of this checkout: rejudged.md.

The machine's own verdict (verdict.json, report.html, …) stands as it was written. It counted `truncation` into
`defect_increase`, which is seen only beside the baseline and so counted one way; the judge has been corrected since, and
the criteria of recipes/demo-vllm.yaml now hold the relative loss. Token scores are not kept in a run's folder, so the
token criteria are taken over from verdict.json.

    python results/h200/rejudge.py
"""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import yaml

from qgate.io import artefact
from qgate.judge.verdict import judge
from qgate.reports.table import read
from qgate.schemas.evidence import Evidence
from qgate.schemas.recipe import TOKEN_METRICS, Recipe
from qgate.schemas.run import Run
from qgate.schemas.verdict import CriterionResult, Verdict, VerdictSheet

RUN = Path(__file__).parent / "demo-vllm"
RECIPE = Path(__file__).parents[2] / "recipes" / "demo-vllm.yaml"


def line(tier: str, variant: str, result: CriterionResult, source: str) -> str:
    """One criterion as a row of the table."""
    bounds = " to ".join(
        "—" if value is None else f"{value:.4f}" for value in (result.estimate.low, result.estimate.high)
    )
    value = "—" if result.estimate.value is None else f"{result.estimate.value:.4f}"
    floor = "—" if result.floor is None or result.floor.value is None else f"{result.floor.value:.4f}"
    return f"| {tier} | {variant} | {result.metric} | {value} | {bounds} | {floor} | {result.margin:g} | {result.verdict} | {source} |"


def measured(told: VerdictSheet) -> dict[tuple[str, str], CriterionResult]:
    """The token criteria that the machine measured, by variant and metric."""
    return {
        (variant.variant, result.metric): result
        for tier in told.tiers
        for variant in tier.variants
        for result in variant.criteria
        if result.metric in TOKEN_METRICS
    }


def said(sheet: VerdictSheet) -> list[str]:
    """Why what the answers settle did not pass, and the findings that need no token scores, as the judge words them."""
    reasons = {
        f"- {variant.variant} for {tier.tier}: {result.reason}": None
        for tier in sheet.tiers
        for variant in tier.variants
        for result in variant.criteria
        if result.metric not in TOKEN_METRICS and result.verdict is not Verdict.PASS
    }
    findings = [f"- {finding}" for finding in sheet.findings if "token scores" not in finding]
    return ["## Why not", "", *reasons, "", "## Findings", "", *findings]


def main() -> None:
    """Judge and write."""
    recipe = Recipe.model_validate(yaml.safe_load(RECIPE.read_text(encoding="utf-8")))
    run, told = artefact.load(RUN / "run.json", Run), artefact.load(RUN / "verdict.json", VerdictSheet)
    rows = read(pq.read_table(RUN / "answers.parquet"))
    precisions = {name: checkpoint.precision for name, checkpoint in run.checkpoints.items()}
    sheet = judge(Evidence(rows=tuple(rows), precisions=precisions, engine=told.engine), recipe, run.run_id)
    tokens, lines = measured(told), []
    for tier in sheet.tiers:
        for variant in tier.variants:
            for result in variant.criteria:
                if result.metric in TOKEN_METRICS:
                    lines.append(
                        line(tier.tier, variant.variant, tokens[variant.variant, result.metric], "verdict.json")
                    )
                else:
                    lines.append(line(tier.tier, variant.variant, result, "answers.parquet"))
    head = "| tier | variant | metric | harm | 95 % bounds | A/A floor | margin | verdict | from |\n|---|---|---|---|---|---|---|---|---|\n"
    text = (
        f"# {run.run_id}, judged again\n\nMade by `python results/h200/rejudge.py`.\n\n{head}"
        + "\n".join([*lines, "", *said(sheet)])
        + "\n"
    )
    (RUN.parent / "rejudged.md").write_text(text, encoding="utf-8")


main()
