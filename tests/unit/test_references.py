"""Right answers through the whole pipeline on the fake engine: where they come from, who scores them, what is told."""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from qgate.engines.fake import ENGINE
from qgate.errors import EngineError, EvalsetError
from qgate.io import evalset_new, recipe
from qgate.reports import terminal
from qgate.schemas.verdict import CriterionResult, Verdict
from tests.unit import checkpoints
from tests.unit.recipes import small, write, write_evalset
from tests.unit.test_pipeline import Outcome, interrupt, item, run

NUM_ITEMS, NUM_WITHOUT = 75, 5


@pytest.fixture(autouse=True)
def _fresh_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENGINE, "_sessions", Counter())


def without(number: int) -> str:
    """An item of which only a rule is known, so that it has no right answer."""
    rule = {"name": "constraints", "args": {"checks": [{"name": "punctuation:no_comma"}]}}
    return json.dumps(json.loads(item(number)) | {"scorer": rule, "kind": "rule"})


def made(folder: Path, *criteria: dict[str, Any], **changes: Any) -> Path:
    """A recipe with a sound and a damaged variant, which differ from the baseline only where answers are scored."""
    if not (folder / "tiny").exists():
        numbers = range(NUM_ITEMS + NUM_WITHOUT)
        write_evalset(folder, [item(n) if n < NUM_ITEMS else without(n) for n in numbers])
        for number, name in enumerate(("model", "good", "bad")):
            checkpoints.write(folder / name, number)
    variants = {
        name: {"checkpoint": {"path": name}, "precision": "W8A8", "engine_args": {"score_noise_nats": noise}}
        for name, noise in (("good", 0.02), ("bad", 1.0))
    }
    asked = criteria or ({"metric": "kl_mean", "margin": 0.05, "of": "references"},)
    tier = {"default": "good", "allow": ["W8A8"], "engines": ["fake"], "criteria": list(asked)}
    base = {"variants": variants, "tiers": {"chat": tier}, "statistics": {"resamples": 1000}}
    return write(folder, small(**(base | changes)))


def criterion(outcome: Outcome, variant: str) -> CriterionResult:
    (found,) = next(each.criteria for each in outcome.sheet.tiers[0].variants if each.variant == variant)
    return found


def test_a_damaged_variant_fails_and_a_sound_one_passes(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, made(tmp_path))
    assert criterion(outcome, "good").verdict is Verdict.PASS
    assert criterion(outcome, "bad").verdict is Verdict.FAIL
    assert criterion(outcome, "good").estimate.num_items == NUM_ITEMS, "the others have no right answer"
    assert criterion(outcome, "baseline").estimate.value == pytest.approx(0.0, abs=1e-6)
    arms = [(arm.variant, arm.replicate, arm.num_answers) for arm in outcome.run.arms if arm.profile == "references"]
    assert arms == [(*arm, NUM_ITEMS) for arm in (("baseline", 0), ("baseline", 1), ("good", 0), ("bad", 0))]
    assert {arm.step for arm in outcome.run.arms if arm.profile == "references"} == {"score"}
    assert all(arm.completion_tokens >= NUM_ITEMS for arm in outcome.run.arms if arm.profile == "references")


def test_every_report_tells_them_apart(tmp_path: Path) -> None:
    own = {"metric": "kl_mean", "margin": 0.05}
    outcome, _ = run(tmp_path, made(tmp_path, own, own | {"of": "references"}))
    pages = {name: (outcome.folder / name).read_text() for name in ("report.html", "junit.xml", "summary.md")}
    assert all("references · all sets" in page for page in pages.values())
    assert "Perplexity, references" in pages["report.html"]
    assert "KL, references" in pages["summary.md"]
    assert "mean KL of the references" in (outcome.folder / "evidence.intoto.json").read_text()
    console = Console(width=100, no_color=True)
    with console.capture() as shown:
        console.print(terminal.render(outcome.run, outcome.sheet))
    assert "ref KL" in shown.get()
    assert "of the references" in shown.get().replace("\n", " ")


def test_without_a_criterion_the_figures_are_there(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, made(tmp_path, {"metric": "score_loss", "margin": 0.3}))
    assert outcome.sheet.summary["good"]["reference_num_answers"] == NUM_ITEMS
    assert "KL, references" in (outcome.folder / "summary.md").read_text()


def test_a_second_run_scores_nothing_and_another_answer_scores_only_itself(tmp_path: Path) -> None:
    path = made(tmp_path)
    run(tmp_path, path)
    again, watcher = run(tmp_path, path)
    assert watcher.starts == 0
    assert all(arm.cached for arm in again.run.arms)
    lines = (tmp_path / "tiny" / "items.jsonl").read_text().splitlines()
    shutil.rmtree(tmp_path / "tiny")
    write_evalset(tmp_path, [json.dumps(json.loads(line) | {"reference": "None of them."}) for line in lines])
    changed, _ = run(tmp_path, path)
    assert {(arm.step, arm.profile) for arm in changed.run.arms if not arm.cached} == {("score", "references")}
    assert criterion(changed, "good").estimate.num_items == NUM_ITEMS + NUM_WITHOUT


def test_turned_off_they_are_neither_scored_nor_shown(tmp_path: Path) -> None:
    path = made(tmp_path, {"metric": "kl_mean", "margin": 0.05}, token_evidence={"references": False})
    outcome, _ = run(tmp_path, path)
    assert not [arm for arm in outcome.run.arms if arm.profile == "references"]
    assert "references" not in (outcome.folder / "summary.md").read_text()


def test_an_interrupted_step_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path)
    asked = interrupt(monkeypatch, "score", 30)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, path)
    outcome, _ = run(tmp_path, path)
    assert asked[:2] == [NUM_ITEMS, NUM_ITEMS - 30]
    assert criterion(outcome, "good").verdict is Verdict.PASS


def test_an_engine_that_cannot_score_says_so_and_needs_no_scores_where_they_are_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Any, requests: Any) -> Iterator[Any]:
        raise EngineError("the server cannot score given answers: it is not vLLM")

    monkeypatch.setattr("qgate.engines.fake.FakeSession.score", refuse)
    with pytest.raises(EngineError, match="cannot score given answers"):
        run(tmp_path, made(tmp_path))
    path = made(tmp_path, {"metric": "score_loss", "margin": 0.3}, token_evidence={"enabled": False})
    assert criterion(run(tmp_path, path)[0], "good").verdict is Verdict.PASS


def test_a_criterion_on_what_has_no_right_answer_is_refused(tmp_path: Path) -> None:
    rules = {"metric": "kl_mean", "margin": 0.05, "of": "references", "where": {"kind": "rule"}}
    with pytest.raises(
        EvalsetError, match=re.escape("criteria[0].where: no right answer that would be scored has kind")
    ):
        run(tmp_path, made(tmp_path, rules))
    shutil.rmtree(tmp_path / "tiny")
    write_evalset(tmp_path, [without(number) for number in range(5)])
    with pytest.raises(EvalsetError, match=re.escape("criteria[0].of: no item that would be asked has a right answer")):
        run(tmp_path, made(tmp_path))


def test_imported_questions_bring_theirs(tmp_path: Path) -> None:
    questions = [
        {
            "prompt": "Which lamp?",
            "answer": ["green", "lamp"],
            "scorer": "contains_all",
            "reference": "The green lamp.",
        },
        {"prompt": "What colour?", "answer": "green", "scorer": "exact"},
    ]
    source = tmp_path / "in.jsonl"
    source.write_text("".join(json.dumps(question) + "\n" for question in questions), encoding="utf-8")
    evalset_new.new(tmp_path / "tiny", source, description="d", license_id="LicenseRef-own")
    for number, name in enumerate(("model", "w8a8")):
        checkpoints.write(tmp_path / name, number)
    loaded = recipe.load(write(tmp_path, small()))
    assert loaded.recipe.token_evidence.references
    outcome, _ = run(tmp_path, write(tmp_path, small()))
    assert {arm.num_answers for arm in outcome.run.arms if arm.profile == "references"} == {2}
