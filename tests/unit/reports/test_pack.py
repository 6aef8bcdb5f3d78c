import base64
import json
import zlib
from dataclasses import replace

import pytest

from qgate.reports import pack
from qgate.reports.bundle import ReportBundle
from qgate.schemas.evidence import DefectHit
from tests.unit.reports import sample

BUNDLE = sample.bundle(240)


def unpacked(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


def with_rows(rows, requests=None) -> ReportBundle:
    return replace(BUNDLE, rows=tuple(rows), requests=BUNDLE.requests if requests is None else requests)


def test_every_answer_beside_its_baseline():
    packed = pack.pack(BUNDLE)
    data = unpacked(packed.answers)
    others = [row for row in BUNDLE.rows if (row.variant, row.replicate) != ("baseline", 0)]
    assert packed.num_answers == len(others) == len(data["rows"]["arm"])
    assert packed.num_left_out == packed.num_requests_left_out == 0
    by_key = {(row.variant, row.replicate, *row.pair): row for row in BUNDLE.rows}
    texts = [text for text, _ in data["texts"]] + [None]
    for place, pair_place in enumerate(data["rows"]["pair"]):
        pair = data["pairs"][pair_place]
        words = data["words"]
        key = (words[pair["evalset"]], pair["item"], words[pair["profile"]], pair["seed"])
        row = by_key[(*data["arms"][data["rows"]["arm"][place]], *key)]
        assert texts[data["rows"]["text"][place]] == row.text
        assert data["rows"]["score"][place] == row.score
        assert texts[pair["base"]["text"]] == by_key["baseline", 0, *key].text
        found = [(words[name], start) for name, start, _ in data["rows"]["defects"][place]]
        assert found == [(hit.name, hit.start) for hit in row.defects]


def test_the_status_of_an_answer_that_did_not_come_says_why():
    lost = replace(BUNDLE.rows[-1], status="error", score=None, text=None, error="HTTP 429: slow down")
    data = unpacked(pack.pack(with_rows([lost])).answers)
    assert [data["words"][place] for place in data["rows"]["status"]] == ["error: HTTP 429: slow down"]


def test_each_text_is_stored_once():
    data = unpacked(pack.pack(BUNDLE).answers)
    texts = [text for text, _ in data["texts"]]
    assert len(texts) == len(set(texts)) < len(BUNDLE.rows)


def test_worst_comes_first():
    data = unpacked(pack.pack(BUNDLE).answers)
    flags = [bool(hits) for hits in data["rows"]["defects"]]
    assert flags == sorted(flags, reverse=True)
    assert flags[0]


def test_damage_orders_defects_absence_loss_and_distance():
    reference = next(row for row in BUNDLE.rows if row.variant == "baseline" and row.score == 1.0)
    same = replace(reference, variant="w8a8", similarity=1.0)
    distant = replace(same, similarity=0.2)
    lost = replace(distant, score=0.0)
    absent = replace(same, score=None, text=None, similarity=None)
    defect = replace(same, defects=(DefectHit("mojibake"),))
    values = [pack.damage(row, reference) for row in (same, distant, lost, absent, defect)]
    assert values == sorted(values)
    assert len(set(values)) == 5


def test_the_order_of_rows_does_not_matter():
    assert pack.pack(with_rows(reversed(BUNDLE.rows))).answers == pack.pack(BUNDLE).answers


def test_a_full_file_leaves_out_the_least_damaged(monkeypatch):
    whole = unpacked(pack.pack(BUNDLE).answers)
    monkeypatch.setattr(pack, "MAX_ANSWERS_BYTES", 6_000)
    packed = pack.pack(BUNDLE)
    assert len(packed.answers) <= 6_000
    assert 0 < packed.num_answers < len(whole["rows"]["arm"])
    assert packed.num_answers + packed.num_left_out == len(whole["rows"]["arm"])
    assert unpacked(packed.answers)["rows"]["score"] == whole["rows"]["score"][: packed.num_answers]


def test_requests_too_large_for_the_file_are_counted(monkeypatch):
    monkeypatch.setattr(pack, "MAX_REQUESTS_BYTES", 900)
    packed = pack.pack(BUNDLE)
    assert len(packed.requests) <= 900
    assert packed.num_requests_left_out == len(BUNDLE.requests) - len(unpacked(packed.requests)["index"]) > 0


def test_requests_are_whole():
    data = unpacked(pack.pack(BUNDLE).requests)
    for name, (prompt, sampling, seed) in data["index"].items():
        request = BUNDLE.requests[name]
        assert data["prompts"][prompt] == [message.model_dump() for message in request.messages]
        assert data["samplings"][sampling] | {"seed": seed} == request.sampling.model_dump()


def test_a_huge_text_is_cut_and_its_length_kept():
    huge = replace(BUNDLE.rows[2], text="x" * 300_000)
    data = unpacked(pack.pack(with_rows([BUNDLE.rows[0], huge])).answers)
    assert [len(text) for text, length in data["texts"] if length == 300_000] == [pack.MAX_TEXT_CHARACTERS]


@pytest.mark.parametrize("rows", [[], BUNDLE.rows[:1], BUNDLE.rows[2:3]])
def test_none_the_baseline_alone_or_no_baseline(rows):
    data = unpacked(pack.pack(with_rows(rows, {})).answers)
    assert len(data["rows"]["arm"]) == sum(row.variant != "baseline" for row in rows)
    assert all(pair["base"] is None for pair in data["pairs"])


def test_numbers_that_json_lacks_become_null():
    row = replace(BUNDLE.rows[2], score=float("nan"), similarity=float("inf"), text="a\ud800")
    data = unpacked(pack.pack(with_rows([row], {})).answers)
    assert data["rows"]["score"] == [None]
    assert data["rows"]["sim"] == [None]
    assert data["texts"][0][0] == "a\ud800"
