import pytest

from qgate.judge.verdict import judge
from qgate.schemas.evidence import Evidence
from tests.unit.judge.made import arm, recipe

CROSSED = "prompt length × temperature"
LENGTHS = (40_000, 30, 200, 1_000)
TEMPERATURES = (1.0, 0.0, 0.3)


def breakdowns(lengths, temperatures):
    rows = []
    for place, (length, temperature) in enumerate((a, b) for a in lengths for b in temperatures):
        where = {"prompt_tokens": length, "temperature": temperature, "profile": f"p{place}"}
        rows += arm("baseline", [[1.0]] * 6, **where)
        rows += arm("w8a8", [[0.0 if length == 1_000 and temperature else 1.0]] * 6, **where)
    made = recipe([{"metric": "score_loss", "margin": 0.1}])
    sheet = judge(
        Evidence(rows=tuple(rows), precisions={"baseline": "FP16", "w8a8": "W8A8"}, engine="vllm"), made, "run"
    )
    return [part for part in sheet.breakdowns if part.axis == CROSSED]


def test_cells_lie_in_order_and_hold_their_own_level():
    part = next(part for part in breakdowns(LENGTHS, TEMPERATURES) if part.metric == "score_loss")
    lengths = ("0–49", "128–255", "512–1023", "32768+")
    assert part.labels == tuple(f"{length} × {warm}" for length in lengths for warm in ("0", "0.3", "1"))
    levels = dict(zip(part.labels, part.variant_values, strict=True))
    assert {label for label, level in levels.items() if level == 0.0} == {"512–1023 × 0.3", "512–1023 × 1"}
    assert set(part.baseline) == {1.0}


@pytest.mark.parametrize(("lengths", "temperatures"), [((30,), TEMPERATURES), (LENGTHS, (0.8,))])
def test_an_axis_that_does_not_vary_is_not_crossed(lengths, temperatures):
    assert breakdowns(lengths, temperatures) == []
