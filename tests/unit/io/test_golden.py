"""Every version of every stored file that was ever written can still be read: one golden file each."""

from pathlib import Path

import pytest

from qgate.io import artefact
from qgate.io.answer_log import read_answers
from qgate.schemas.base import Stored
from qgate.schemas.inspection import Inspection
from qgate.schemas.repro import Repro
from qgate.schemas.run import Run
from qgate.schemas.verdict import Verdict, VerdictSheet

GOLDEN = Path(__file__).parents[2] / "golden" / "artefacts"
KINDS: dict[str, type[Stored]] = {"run": Run, "verdict": VerdictSheet, "repro": Repro, "inspection": Inspection}


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_a_golden_file_for_each_version(kind: str) -> None:
    found = {path.stem for path in GOLDEN.glob(f"{kind}-*.json")}
    assert found == {f"{kind}-{version}" for version in range(1, KINDS[kind].VERSION + 1)}


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.json")), ids=lambda path: path.stem)
def test_it_is_read(path: Path) -> None:
    kind, version = path.stem.split("-")
    value = artefact.load(path, KINDS[kind])
    if int(version) == KINDS[kind].VERSION:  # and written again as it is
        assert artefact.dumps(value) == path.read_text(encoding="utf-8")


def test_what_it_says_is_kept() -> None:
    sheet = artefact.load(GOLDEN / "verdict-1.json", VerdictSheet)
    assert {tier.tier: tier.verdict for tier in sheet.tiers} == {
        "public-chat": Verdict.FAIL,
        "internal-drafts": Verdict.FAIL,
        "evaluation-api": Verdict.PASS,
    }
    assert artefact.load(GOLDEN / "run-1.json", Run).checkpoints["w8a8"].precision == "W8A8"


def test_answers(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_bytes((GOLDEN / "answer-1.jsonl").read_bytes())
    good, bad = read_answers(tmp_path)
    assert (good.text, good.logprobs and good.logprobs[2], good.completion_tokens) == ("It is 19.", None, 7)
    assert (bad.status, bad.attempt, bad.text) == ("error", 3, None)
