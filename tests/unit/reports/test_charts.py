import altair
import pytest

from qgate.reports.chart import colours
from qgate.reports.cost import cost_charts
from qgate.reports.damage import damage_charts
from qgate.schemas.verdict import Breakdown
from tests.unit.reports import sample

SHEET = sample.sheet()
ALL = [*cost_charts(SHEET, sample.PRECISION), *damage_charts(SHEET, sample.PRECISION)]


@pytest.mark.parametrize("chart", ALL, ids=lambda chart: chart.id)
def test_altair_accepts_the_specification(chart):
    """Altair validates against Vega-Lite's JSON schema; the same specification comes back out."""
    again = altair.Chart.from_dict(chart.spec, validate=True).to_dict()
    assert again["$schema"].startswith("https://vega.github.io/schema/vega-lite/v6")
    assert all(len(row) == len(chart.head) for row in chart.rows)
    assert chart.rows


def test_ids_are_unique():
    assert len({chart.id for chart in ALL}) == len(ALL)


def test_what_matters_most_comes_first_and_the_rest_is_folded():
    damage = damage_charts(SHEET, sample.PRECISION)
    assert [chart.title for chart in damage[:3]] == [
        "KL from the baseline by output position",
        "Top-1 disagreement by output position",
        "Score by prompt length",
    ]
    odd = Breakdown(
        variant="gptq", metric="length_drift", axis="difficulty", labels=("1", "2"), baseline=(0.0, 0.0),
        variant_values=(0.1, None), num=(3, 4),
    )  # fmt: skip
    folded = damage_charts(SHEET.model_copy(update={"breakdowns": (odd, *SHEET.breakdowns)}), sample.PRECISION)
    assert [chart.title for chart in folded if not chart.primary] == ["Length drift by difficulty"]
    assert folded[-1].rows == (
        ("gptq (W4A16)", "1", "10.0 %", "0.0 %", "—", "3"),
        ("gptq (W4A16)", "2", "—", "0.0 %", "—", "4"),
    )


def test_a_variant_has_one_colour_everywhere():
    known = {f"{name} ({sample.PRECISION[name]})": colour for name, colour in colours(SHEET).items()}
    known["FP16"] = known.pop("baseline (FP16)")
    assert len(set(known.values())) == len(known) == 4
    scales = [
        layer["encoding"]["color"]["scale"]
        for chart in ALL
        for layer in chart.spec.get("layer", [])
        if "color" in layer["encoding"]
    ]
    assert len(scales) >= 10
    for scale in scales:
        assert [known[name] for name in scale["domain"]] == scale["range"]


def test_order_of_variants_is_the_sheets():
    for chart in damage_charts(SHEET, sample.PRECISION):
        assert list(dict.fromkeys(row[0] for row in chart.rows)) == ["w8a8 (W8A8)", "awq (W4A16)", "gptq (W4A16)"]


def test_only_known_figures_are_drawn():
    summary = {
        "w8a8": {"mean_score": 0.5, "bits_per_weight": None},
        "awq": {"mean_score": None, "bits_per_weight": 4.1},
    }
    assert cost_charts(SHEET.model_copy(update={"summary": summary}), sample.PRECISION) == []


def test_a_cell_of_the_heat_map_is_strong_where_it_is_worse():
    (score, rate) = [chart for chart in ALL if "×" in chart.title]
    for chart in (score, rate):
        values = [value for value in chart.spec["data"]["values"] if value["name"] == "gptq (W4A16)"]
        harms = [value["harm"] for value in values]
        assert harms == sorted(harms)
        assert harms[0] > 0


def test_axes_name_their_units():
    encoding = next(chart for chart in ALL if chart.title == "KL from the baseline by output position").spec["layer"][
        -1
    ]
    assert encoding["encoding"]["x"]["title"] == "output position (tokens)"
    assert encoding["encoding"]["y"]["title"] == "KL from the baseline (nats)"
    crossed = next(chart.spec["spec"] for chart in ALL if "facet" in chart.spec)
    across = {label.split(" × ")[0] for part in SHEET.breakdowns if " × " in part.axis for label in part.labels}
    assert crossed["layer"][0]["encoding"]["x"]["title"] == "prompt length (tokens)"
    assert crossed["width"] >= 50 * len(across)
