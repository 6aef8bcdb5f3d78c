"""The whole pipeline on the fake engine: verdicts, caching, resuming, faults. Real store, sets, judge and reports."""

import json
import shutil
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from qgate import pipeline
from qgate.engines.fake import ENGINE
from qgate.errors import EngineError, EvalsetError, ExitCode, RecipeError, StoreError
from qgate.io import artefact, recipe
from qgate.judge.verdict import judge
from qgate.pipeline import Outcome
from qgate.rooms import judgement
from qgate.rooms.outlook import outlook
from qgate.rooms.prepare import prepare
from qgate.schemas.run import Run
from qgate.schemas.verdict import Verdict, VerdictSheet
from tests.unit import checkpoints
from tests.unit.recipes import small, write, write_evalset

NUM_ITEMS = 150


class Watcher:
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.labels: list[str] = []
        self.notes: list[str] = []

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator["Watcher"]:
        self.labels.append(label)
        yield self

    def advance(self, num: int = 1) -> None:
        pass

    def detail(self, text: str) -> None:
        pass

    def note(self, text: str) -> None:
        self.notes.append(text)

    @property
    def starts(self) -> int:
        """How often an engine was started."""
        return sum("starting" in label for label in self.labels)


def item(number: int) -> str:
    """One item: the code of a box is to be quoted, which the fake engine does at its `accuracy`."""
    code = f"QX{7919 * number % 9973}"
    others = " ".join(f"Box {n} stands in hall {n % 7}." for n in range(number, number + 4))
    question = f"{others} The code of crate {number} is {code}. What is the code of crate {number}?"
    return json.dumps(
        {
            "id": f"crate-{number:03}",
            "messages": [{"role": "user", "content": question}],
            "kind": "lookup",
            "language": "en",
            "difficulty": 1,
            "scorer": {"name": "contains_all", "args": {"values": [code]}},
        }
    )


def made(folder: Path, **changes: Any) -> Path:
    """A recipe with two variants on a set of 150 items, its checkpoints and its set beside it."""
    if not (folder / "tiny").exists():
        write_evalset(folder, [item(number) for number in range(NUM_ITEMS)])
    for number, name in enumerate(("model", "good", "bad")):
        if not (folder / name).exists():
            checkpoints.write(folder / name, number)
    variants = {
        "good": {"checkpoint": {"path": "good"}, "precision": "W8A8", "engine_args": {"score_noise_nats": 0.02}},
        "bad": {
            "checkpoint": {"path": "bad"},
            "precision": "W4A16",
            "engine_args": {"loop": 0.6, "score_noise_nats": 1.0},
        },
    }
    criteria = [
        {"metric": "score_loss", "margin": 0.1},
        {"metric": "defect_increase", "margin": 0.1},
        {"metric": "kl_mean", "margin": 0.05},
    ]
    tier = {"default": "good", "allow": ["W8A8", "W4A16"], "engines": ["fake"], "criteria": criteria}
    statistics = {"resamples": 1000}
    base = {"variants": variants, "tiers": {"chat": tier}, "statistics": statistics, **changes}
    return write(folder, small(**base))


@pytest.fixture(autouse=True)
def _fresh_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ENGINE, "_sessions", Counter())


def run(folder: Path, path: Path) -> tuple[Outcome, Watcher]:
    watcher = Watcher()
    return pipeline.run(recipe.load(path), folder / "results", watcher), watcher


def verdict_of(outcome: Outcome, variant: str) -> Verdict:
    (tier,) = outcome.sheet.tiers
    return next(v.verdict for v in tier.variants if v.variant == variant)


def test_a_planted_regression_fails_and_a_sound_variant_passes(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, made(tmp_path))
    assert verdict_of(outcome, "good") is Verdict.PASS
    assert verdict_of(outcome, "bad") is Verdict.FAIL
    assert outcome.sheet.exit_code is ExitCode.PASS
    assert outcome.sheet.tiers[0].serve == "good"


def test_every_report_is_there_and_readable(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, made(tmp_path))
    names = {path.name for path in outcome.folder.iterdir()}
    assert {
        "recipe.yaml",
        "run.json",
        "verdict.json",
        "report.html",
        "junit.xml",
        "summary.md",
        "answers.parquet",
    } <= names
    assert artefact.load(outcome.folder / "verdict.json", VerdictSheet) == outcome.sheet
    assert artefact.load(outcome.folder / "run.json", Run) == outcome.run
    assert not (outcome.folder / "work").exists()
    for path in outcome.folder.glob("*.*"):  # nothing that travels names a folder of this machine
        assert str(tmp_path).encode() not in path.read_bytes(), path.name


def test_the_baseline_under_another_name_is_told(tmp_path: Path) -> None:
    made(tmp_path)
    variants = {"good": {"checkpoint": {"path": "model"}, "precision": "FP16"}}
    tier = {
        "default": "good",
        "allow": ["good"],
        "engines": ["fake"],
        "criteria": [{"metric": "score_loss", "margin": 0.1}],
    }
    outcome, _ = run(tmp_path, made(tmp_path, variants=variants, tiers={"chat": tier}))
    assert "good is the baseline byte for byte: nothing was quantized." in outcome.sheet.findings


def test_the_default_that_fails_fails_the_run(tmp_path: Path) -> None:
    path = made(tmp_path, tiers={"chat": {
        "default": "bad", "allow": ["bad", "good"], "engines": ["fake"],
        "criteria": [{"metric": "defect_increase", "margin": 0.1}],
    }})  # fmt: skip
    outcome, _ = run(tmp_path, path)
    assert outcome.sheet.exit_code is ExitCode.FAIL
    assert outcome.sheet.tiers[0].serve == "good"


def test_a_second_run_starts_nothing_and_says_the_same(tmp_path: Path) -> None:
    path = made(tmp_path)
    first, _ = run(tmp_path, path)
    second, watcher = run(tmp_path, path)
    assert watcher.starts == 0
    assert all(arm.cached for arm in second.run.arms)
    assert second.sheet.tiers == first.sheet.tiers
    assert second.folder != first.folder
    assert (first.sheet.run_id, second.sheet.run_id) == (first.folder.name, second.folder.name)


def test_a_damaged_answer_is_asked_for_again_and_said(tmp_path: Path) -> None:
    path = made(tmp_path)
    first, _ = run(tmp_path, path)
    (arm,) = (arm for arm in first.run.arms if (arm.variant, arm.step) == ("good", "generate"))
    answers = tmp_path / "results/objects/generations" / arm.key / "answers.jsonl"
    answers.write_bytes(answers.read_bytes().replace(b"1", b"7"))
    again, watcher = run(tmp_path, path)
    assert [each.key for each in again.run.arms if not each.cached] == [arm.key]
    assert sum(note.startswith(f"{answers.parent} is damaged") for note in watcher.notes) == 1
    (note,) = again.run.notes
    assert note.startswith(f"objects/generations/{arm.key} is damaged"), "a run's record names no path of this machine"
    assert again.sheet.tiers == first.sheet.tiers
    assert run(tmp_path, path)[0].run.notes == ()


def test_the_same_evidence_is_judged_once_and_another_margin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[str] = []

    def counting(evidence: Any, recipe: Any, run_id: str) -> VerdictSheet:
        judged.append(run_id)
        return judge(evidence, recipe, run_id)

    monkeypatch.setattr(judgement, "judge", counting)
    one, _ = run(tmp_path, made(tmp_path))
    run(tmp_path, made(tmp_path))
    assert len(judged) == 1
    tier = {
        "default": "good",
        "allow": ["good"],
        "engines": ["fake"],
        "criteria": [{"metric": "kl_mean", "margin": 1e-9}],
    }
    other, _ = run(tmp_path, made(tmp_path, tiers={"chat": tier}))
    assert len(judged) == 2
    assert one.sheet.exit_code is not other.sheet.exit_code


def test_a_changed_checkpoint_does_only_its_own_steps_again(tmp_path: Path) -> None:
    path = made(tmp_path)
    run(tmp_path, path)
    weights = tmp_path / "good" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x07")
    again, _ = run(tmp_path, path)
    done = {arm.variant for arm in again.run.arms if not arm.cached}
    assert done == {"good", "baseline"}  # the baseline scores the new answers
    assert {arm.step for arm in again.run.arms if not arm.cached and arm.variant == "baseline"} == {"score"}


def interrupt(monkeypatch: pytest.MonkeyPatch, verb: str, after: int) -> list[int]:
    """Interrupts the session's first `verb` (generate, score) after so many results; how many each was asked for."""
    asked: list[int] = []
    session_of = ENGINE.open

    @contextmanager
    def counting(job: Any) -> Iterator[Any]:
        with session_of(job) as session:
            work = getattr(session, verb)

            def stopping(requests: Any) -> Iterator[Any]:
                wanted = list(requests)
                asked.append(len(wanted))
                for number, result in enumerate(work(wanted)):
                    if len(asked) == 1 and number == after:
                        raise KeyboardInterrupt
                    yield result

            setattr(session, verb, stopping)
            yield session

    monkeypatch.setattr(type(ENGINE), "open", lambda self, job: counting(job))
    return asked


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path)
    asked = interrupt(monkeypatch, "generate", 50)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, path)
    total = asked[0]
    run(tmp_path, path)
    assert asked[1] == total - 50


def test_a_server_that_dies_is_started_once_more(tmp_path: Path) -> None:
    variants = {"good": {"checkpoint": {"path": "good"}, "engine_args": {"die_after": 30, "die_times": 1}}}
    outcome, watcher = run(tmp_path, made(tmp_path, variants=variants, tiers={"chat": {
        "default": "good", "allow": ["good"], "engines": ["fake"], "criteria": [{"metric": "defect_rate", "margin": 0.9}],
    }}))  # fmt: skip
    assert any("once more" in note for note in watcher.notes)
    assert not outcome.run.failures
    assert outcome.sheet.exit_code is ExitCode.PASS


def test_each_start_has_an_empty_work_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The baseline is served twice when one server is up at a time: what the first start left must not be read."""
    folders: list[Path] = []
    open_engine = ENGINE.open

    @contextmanager
    def littering(job: Any) -> Iterator[Any]:
        assert not list(job.work.iterdir())
        (job.work / "left").write_text("behind")
        folders.append(job.work)
        with open_engine(job) as session:
            yield session

    monkeypatch.setattr(type(ENGINE), "open", lambda self, job: littering(job))
    run(tmp_path, made(tmp_path))
    assert len(folders) == len(set(folders)) == 4


@pytest.mark.parametrize("fault", [{"die_after": 30}, {"refuse_start": True}, {"hang_after": 10}])
def test_a_variant_that_cannot_be_run_is_inconclusive(tmp_path: Path, fault: dict[str, Any]) -> None:
    variants = {"good": {"checkpoint": {"path": "good"}, "engine_args": fault}}
    outcome, _ = run(tmp_path, made(tmp_path, variants=variants, engine={"name": "fake", "stall_timeout_s": 0.3}, tiers={"chat": {
        "default": "good", "allow": ["good"], "engines": ["fake"], "criteria": [{"metric": "defect_rate", "margin": 0.9}],
    }}))  # fmt: skip
    assert verdict_of(outcome, "good") is Verdict.INCONCLUSIVE
    assert outcome.sheet.exit_code is ExitCode.INCONCLUSIVE
    assert "good" in outcome.run.failures


def test_without_a_baseline_there_is_no_verdict(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        run(tmp_path, made(tmp_path, engine={"name": "fake", "options": {"refuse_start": True}}))


def test_another_chat_template_is_not_compared(tmp_path: Path) -> None:
    variants = {"good": {"checkpoint": {"path": "good"}, "engine_args": {"template_drift": True}}}
    outcome, _ = run(tmp_path, made(tmp_path, variants=variants, tiers={"chat": {
        "default": "good", "allow": ["good"], "engines": ["fake"], "criteria": [{"metric": "defect_rate", "margin": 0.9}],
    }}))  # fmt: skip
    assert verdict_of(outcome, "good") is Verdict.INCONCLUSIVE
    assert "chat template" in str(outcome.sheet.model_dump())


def test_an_engine_that_the_tier_does_not_accept(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, made(tmp_path, tiers={"chat": {
        "default": "good", "allow": ["good"], "engines": ["vllm"], "criteria": [{"metric": "score_loss", "margin": 0.9}],
    }}))  # fmt: skip
    assert outcome.sheet.exit_code is ExitCode.INCONCLUSIVE


def test_side_by_side_says_what_one_at_a_time_says(tmp_path: Path) -> None:
    one, _ = run(tmp_path / "a", _in(tmp_path / "a", parallel=1))
    many, _ = run(tmp_path / "b", _in(tmp_path / "b", parallel=3))
    assert one.sheet.tiers == many.sheet.tiers


def test_side_by_side_a_broken_baseline_ends_the_run(tmp_path: Path) -> None:
    engine = {"name": "fake", "parallel": 3, "options": {"refuse_start": True}}
    with pytest.raises(EngineError):
        run(tmp_path, made(tmp_path, engine=engine))


def _in(folder: Path, parallel: int) -> Path:
    folder.mkdir()
    return made(folder, engine={"name": "fake", "parallel": parallel})


def test_a_noise_floor_under_another_load(tmp_path: Path) -> None:
    outcome, watcher = run(
        tmp_path, made(tmp_path, noise_floor={"replicates": 1, "concurrency": 3, "variant_share": 0.3})
    )
    again = [arm for arm in outcome.run.arms if arm.replicate == 1 and arm.step == "generate"]
    assert {arm.variant for arm in again} == {"baseline", "good", "bad"}
    shares = {arm.variant: arm.num_answers for arm in again}
    assert 0 < shares["good"] < shares["baseline"]
    assert watcher.starts >= 4


def test_two_runs_at_once_do_each_step_once(tmp_path: Path) -> None:
    path = made(tmp_path, engine={"name": "fake", "options": {"latency_s": 0.01}})
    outcomes: list[tuple[Outcome, Watcher]] = []
    threads = [threading.Thread(target=lambda: outcomes.append(run(tmp_path, path))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (one, _), (other, _) = outcomes
    assert one.sheet.tiers == other.sheet.tiers
    assert one.folder != other.folder
    made_by_one = {arm.key for arm in one.run.arms if not arm.cached}
    made_by_other = {arm.key for arm in other.run.arms if not arm.cached}
    keys = {arm.key for arm in one.run.arms}
    assert keys == {arm.key for arm in other.run.arms}
    assert made_by_one | made_by_other == keys


def test_the_plan_tells_what_is_stored(tmp_path: Path) -> None:
    path = made(tmp_path)
    prepared = prepare(recipe.load(path), tmp_path / "results", Watcher())
    before = outlook(prepared)
    assert {line.state for line in before if line.kind == "generate"} == {"to do"}
    run(tmp_path, path)
    assert {line.state for line in outlook(prepared)} == {"stored", "at hand"}


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        ({"metric": "score_loss", "where": {"language": "zh"}}, r"criteria\[0\]\.where: .* language 'zh'"),
        ({"metric": "score_loss", "where": {"depth": "end"}}, r"criteria\[0\]\.where: .* depth 'end'"),
        ({"metric": "worst_slice_score_loss", "by": "lang"}, r"criteria\[0\]\.by: .* slice 'lang'"),
    ],
)
def test_a_slice_that_no_item_is_in_is_refused_before_anything_runs(
    tmp_path: Path, criterion: dict[str, Any], said: str
) -> None:
    path = made(tmp_path, tiers__chat__criteria=[criterion | {"margin": 0.1}])
    with pytest.raises(EvalsetError, match=said):
        prepare(recipe.load(path), tmp_path / "results", Watcher())


def test_a_folder_called_otherwise_than_its_set_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = made(tmp_path)
    (tmp_path / "tiny").rename(tmp_path / "mine")
    path.write_text(path.read_text().replace("./tiny", "./mine"))
    with pytest.raises(EvalsetError, match=r"folder of evaluation set './mine' holds a set called 'tiny'"):
        prepare(recipe.load(path), tmp_path / "results", Watcher())


def test_one_set_under_two_names_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = made(tmp_path, evalsets=[{"name": "./tiny"}, {"name": "./copy"}])
    shutil.copytree(tmp_path / "tiny", tmp_path / "copy")
    manifest = tmp_path / "copy" / "evalset.yaml"
    manifest.write_text(manifest.read_text().replace("name: tiny", "name: copy"))
    with pytest.raises(EvalsetError, match=r"'./tiny' and './copy' are the same bytes"):
        prepare(recipe.load(path), tmp_path / "results", Watcher())


def test_sets_that_ask_the_same_are_refused_before_anything_runs(tmp_path: Path) -> None:
    """Eight copies of twelve items, under other ids, would pass as ninety-six."""
    path = made(tmp_path, evalsets=[{"name": "./tiny"}, {"name": "./copy"}])
    lines = [json.dumps(json.loads(item(number)) | {"id": f"copy-{number}"}) for number in (7, 8, NUM_ITEMS + 1)]
    write_evalset(tmp_path, lines, name="copy")
    with pytest.raises(EvalsetError) as caught:
        prepare(recipe.load(path), tmp_path / "results", Watcher())
    said = "2 prompts of evaluation set copy are in another set too: copy/copy-7 asks what tiny/crate-007 asks"
    assert said in caught.value.message


class Meddler(Watcher):
    """Writes into a checkpoint when a task of that label begins."""

    def __init__(self, label: str, file: Path) -> None:
        super().__init__()
        self._label, self._file = label, file

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator["Watcher"]:
        with super().task(label, total, done):
            if label == self._label:
                self._file.write_bytes(self._file.read_bytes() + b" ")
            yield self


@pytest.mark.parametrize(
    ("label", "options"),
    [
        ("good: starting fake", {}),
        ("good: tiny · greedy", {}),
        ("good: tiny · greedy", {"die_after": 30, "die_times": 1}),
    ],
)
def test_a_checkpoint_that_changes_while_it_is_judged_is_not_judged(
    tmp_path: Path, label: str, options: dict[str, int]
) -> None:
    """Its answers would be stored, and promoted, as those of the bytes that were hashed."""
    variants = {"good": {"checkpoint": {"path": "good"}, "precision": "W8A8", "engine_args": options}}
    path = made(tmp_path, variants=variants)
    config = tmp_path / "good" / "config.json"
    before = config.read_bytes()
    outcome = pipeline.run(recipe.load(path), tmp_path / "results", Meddler(label, config))
    assert verdict_of(outcome, "good") is Verdict.INCONCLUSIVE
    assert "good changed while it was judged: config.json is not what was hashed" in outcome.run.failures["good"]
    assert not list((tmp_path / "results" / "objects").rglob("*.part"))
    config.write_bytes(before)
    again, watched = run(tmp_path, path)
    assert verdict_of(again, "good") is Verdict.PASS
    assert "good: tiny · greedy" in watched.labels, "what the other bytes answered was not kept"


def test_repeatable_answers_are_not_asked_of_an_engine_that_ignores_it(tmp_path: Path) -> None:
    path = made(tmp_path, engine__determinism="repeatable")
    with pytest.raises(RecipeError, match=r"the engine fake has no batch-invariant kernels here"):
        prepare(recipe.load(path), tmp_path / "results", Watcher())


def test_results_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "results").write_text("a file where the folder should be")
    with pytest.raises(StoreError):
        run(tmp_path, made(tmp_path))


def test_a_file_or_a_dangling_link_in_the_place_of_the_runs_is_an_error_and_no_endless_search(tmp_path: Path) -> None:
    path = made(tmp_path)
    (tmp_path / "results").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StoreError, match="cannot write"):
        run(tmp_path, path)
    (tmp_path / "results").unlink()
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "runs").write_text("a file where the folder should be")
    with pytest.raises(StoreError, match="cannot write"):
        run(tmp_path, path)
