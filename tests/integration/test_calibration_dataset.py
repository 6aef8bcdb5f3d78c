"""Calibration texts out of a local dataset, through the worker in the environment `llmcompressor`."""

import json
from pathlib import Path

import pytest

from qgate.errors import QuantizeError
from qgate.rooms.quantize import DATASET_WORKER
from qgate.rooms.working import work_off
from tests.tools import tool_or_skip

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]


def chosen(tmp_path: Path, **said: object) -> list[dict[str, object]]:
    tool = tool_or_skip("llmcompressor")
    data = tmp_path / "data.jsonl"
    rows = [{"prose": f"text {number}" if number else ""} for number in range(9)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    target = tmp_path / "chosen.jsonl"
    request = {
        "dataset": str(data),
        "split": "train",
        "field": "prose",
        "num_samples": 8,
        "seed": 1,
        "output": str(target),
    }
    work_off(tool, DATASET_WORKER, request | said, work=tmp_path / "work", what="reading texts")
    return [json.loads(line) for line in target.read_text().splitlines()]


def test_texts_come_in_the_seed_s_order_and_empty_ones_are_passed_over(tmp_path: Path) -> None:
    found = chosen(tmp_path)
    assert sorted(str(entry["text"]) for entry in found) == [f"text {number}" for number in range(1, 9)]
    assert found == chosen(tmp_path)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"num_samples": 9}, "has 8 texts; calibration.num_samples asks for 9"),
        ({"field": "text"}, "no column 'text'; it has prose"),
        ({"dataset": "/no/such/place"}, "no dataset /no/such/place"),
    ],
)
def test_what_cannot_be_had_is_one_clear_message(tmp_path: Path, said: dict[str, object], message: str) -> None:
    with pytest.raises(QuantizeError, match=message) as caught:
        chosen(tmp_path, **said)
    assert caught.value.advice
