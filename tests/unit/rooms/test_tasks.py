"""Sets of lm-eval's tasks through the whole pipeline, on the fake engine and on what lm-eval really asked (golden)."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from qgate import pipeline
from qgate.engines.fake import ENGINE
from qgate.errors import EvalsetError, RecipeError, WorldError
from qgate.io import recipe, task_files
from qgate.ports import Tool
from qgate.rooms import tasks
from qgate.rooms.outlook import outlook
from qgate.rooms.prepare import prepare
from qgate.schemas.answers import TokenScores
from qgate.schemas.evalset import Message
from qgate.schemas.run import Run
from tests.unit import checkpoints
from tests.unit.recipes import small, write, write_evalset
from tests.unit.test_pipeline import Watcher

GOLDEN = Path(__file__).parents[2] / "golden" / "lm_eval"
Lines = list[dict[str, Any]]


def lines(file: Path) -> Lines:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


class LmEval:
    """Stands in for the worker: what it asked is golden, and its scores are the plainest."""

    def __init__(self) -> None:
        self.requests: Lines = []
        self.answers: dict[str, Lines] = {}

    def __call__(self, tool: Tool, request: Mapping[str, Any], work: Path, what: str) -> dict[str, Any]:
        self.requests.append(dict(request))
        output = Path(request["output"])
        if request["action"] == "ask":
            for name in ("requests.jsonl", "docs.jsonl"):
                shutil.copyfile(GOLDEN / name, output / name)
            return dict(json.loads((GOLDEN / "tasks.json").read_text()))
        for name, file in request["arms"].items():
            self.answers[name] = lines(Path(file))
            (output / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in scored(self.answers[name])))
        return {"results": {}, "packages": {}}


def scored(answers: Lines) -> Lines:
    """1 where the target is ranked first or said, else 0."""
    by_item: dict[str, Lines] = {}
    for answer in answers:
        by_item.setdefault(answer["id"].rsplit("/", 1)[0], []).append(answer)
    rows = []
    for doc in lines(GOLDEN / "docs.jsonl"):
        mine = by_item[doc["item"]]
        if doc["options"]:
            values = [-math.inf if answer["logprob"] is None else answer["logprob"] for answer in mine]
            score = float(int(np.argmax(values)) == int(doc["target"]))
        else:
            score = float(doc["target"].lower() in mine[0]["text"].lower())
        rows.append({"item": doc["item"], "score": score, "metrics": {}})
    return rows


@pytest.fixture
def lm_eval(monkeypatch: pytest.MonkeyPatch) -> LmEval:
    stand = LmEval()
    monkeypatch.setattr(tasks, "_run", stand)
    monkeypatch.setattr(ENGINE, "_sessions", Counter())
    return stand


def made(folder: Path, *, bad: Mapping[str, Any] | None = None, **changes: Any) -> Path:
    """A recipe with one set of lm-eval's tasks; `bad`: what the variant's server does wrong."""
    for number, name in enumerate(("model", "w8a8")):
        if not (folder / name).exists():
            checkpoints.write(folder / name, number)
    (folder / "own").mkdir(exist_ok=True)
    (folder / "own" / "velmora.yaml").write_text("group: velmora\n")
    variant = {"checkpoint": {"path": "w8a8"}, "precision": "W8A8", "engine_args": dict(bad or {})}
    use = {"name": "velmora", "lm_eval": {"tasks": ["velmora"], "include_path": "own", "env": "current"}}
    tier = {
        "default": "w8a8", "allow": ["w8a8"], "engines": ["fake"],
        "criteria": [
            {"metric": "score_loss", "margin": 0.3, "evalset": "velmora"},
            {"metric": "defect_increase", "margin": 0.4},
            {"metric": "output_disagreement", "margin": 0.3},
        ],
    }  # fmt: skip
    base: dict[str, Any] = {"variants": {"w8a8": variant}, "evalsets": [use], "tiers": {"chat": tier}}
    return write(folder, small(**{**base, "statistics": {"resamples": 1000}, **changes}))


def run(folder: Path, path: Path) -> tuple[pipeline.Outcome, Watcher]:
    watcher = Watcher()
    return pipeline.run(recipe.load(path), folder / "results", watcher), watcher


def rows_of(outcome: pipeline.Outcome) -> Lines:
    return list(pq.read_table(outcome.folder / "answers.parquet").to_pylist())


def test_the_tasks_enter_the_statistics_like_any_set(tmp_path: Path, lm_eval: LmEval) -> None:
    outcome, _ = run(tmp_path, made(tmp_path))
    rows = rows_of(outcome)
    assert Counter((row["variant"], row["replicate"], row["kind"]) for row in rows) == {
        (variant, replicate, task): num
        for variant, replicate in (("baseline", 0), ("baseline", 1), ("w8a8", 0))
        for task, num in (("velmora_choice", 10), ("velmora_say", 8))
    }
    assert {row["profile"] for row in rows} == {"lm-eval"}
    scores = {row["item"]: row["score"] for row in rows if row["variant"] == "w8a8"}
    assert scores == {row["item"]: row["score"] for row in scored(lm_eval.answers["w8a8-0"])}
    (criterion, *_) = outcome.sheet.tiers[0].variants[-1].criteria
    assert criterion.estimate.num_items == 18
    assert outcome.run.evalsets.keys() == {"velmora@1"}
    assert "lm-eval 0.4.13, velmora_choice version 1.0, 0-shot, acc,none" in outcome.run.notes[0]


def test_what_was_asked_is_what_lm_eval_wrote(tmp_path: Path, lm_eval: LmEval) -> None:
    """The very tokens reach the engine, and the answers are cut where the task says."""
    outcome, _ = run(tmp_path, made(tmp_path))
    steps = prepare(recipe.load(tmp_path / "recipe.yaml"), tmp_path / "results", Watcher())
    assert not steps.plan.generate  # nothing is known before lm-eval was asked
    asked = {request["id"]: request for request in lines(GOLDEN / "requests.jsonl")}
    found = tasks.find_tasks(steps, outcome.run.checkpoints["baseline"].model_copy(update={"path": tmp_path / "model"}))
    for step in found.plan.generate:
        for request in step.requests:
            name = request.id.removeprefix("velmora/").replace("/lm-eval/", "/")
            assert list(request.prompt or ()) == asked[name]["prompt_ids"]
            assert (request.stop, request.sampling.max_tokens) == (("\n",), 12)
    for step in found.plan.rank:
        for given in step.requests:
            name = given.id.removeprefix("velmora/").replace("/lm-eval/", "/")
            assert list(given.prompt or ()) == asked[name]["prompt_ids"]
            assert list(given.completion_ids) == asked[name]["continuation_ids"]


def test_a_second_run_asks_nothing_and_scores_nothing(tmp_path: Path, lm_eval: LmEval) -> None:
    path = made(tmp_path)
    first, _ = run(tmp_path, path)
    num = len(lm_eval.requests)
    assert num == 2  # one to ask, one to score every arm
    second, watcher = run(tmp_path, path)
    assert len(lm_eval.requests) == num
    assert watcher.starts == 0
    assert all(arm.cached for arm in second.run.arms)
    assert rows_of(first) == rows_of(second)


def test_a_changed_task_file_is_asked_anew(tmp_path: Path, lm_eval: LmEval) -> None:
    path = made(tmp_path)
    run(tmp_path, path)
    (tmp_path / "own" / "velmora.yaml").write_text("group: velmora\ntask: []\n")
    run(tmp_path, path)
    assert [request["action"] for request in lm_eval.requests] == ["ask", "score", "ask", "score"]


def test_a_variant_that_ranks_otherwise_and_loops_is_caught(tmp_path: Path, lm_eval: LmEval) -> None:
    outcome, _ = run(tmp_path, made(tmp_path, bad={"score_noise_nats": 9.0, "loop": 1.0}))
    rows = [row for row in rows_of(outcome) if row["variant"] == "w8a8"]
    ranked = [row for row in rows if row["kind"] == "velmora_choice"]
    assert any(row["identical"] is False for row in ranked)
    (said,) = outcome.sheet.tiers[0].variants[-1:]
    increase = next(c for c in said.criteria if c.metric == "defect_increase")
    assert increase.estimate.num_items == 8, "options that are only ranked say nothing of defects"


def test_a_variant_that_fails_on_the_tasks_is_noted_and_the_run_goes_on(tmp_path: Path, lm_eval: LmEval) -> None:
    outcome, _ = run(tmp_path, made(tmp_path, bad={"die_after": 3}))
    assert "ended by SIGKILL" in outcome.run.failures["w8a8"]
    assert set(lm_eval.answers) == {"baseline-0", "baseline-1"}


def test_an_answer_that_did_not_come_has_no_score(tmp_path: Path, lm_eval: LmEval) -> None:
    outcome, _ = run(tmp_path, made(tmp_path, bad={"error": 1.0}))
    rows = [row for row in rows_of(outcome) if (row["variant"], row["kind"]) == ("w8a8", "velmora_say")]
    assert {(row["status"], row["score"]) for row in rows} == {("error", None)}
    said = [answer for answer in lm_eval.answers["w8a8-0"] if answer["id"].startswith("velmora_say")]
    assert {answer["text"] for answer in said} == {""}


def test_a_share_of_the_items_is_repeated_and_the_rest_is_told_as_nothing(tmp_path: Path, lm_eval: LmEval) -> None:
    outcome, _ = run(tmp_path, made(tmp_path, noise_floor={"replicates": 1, "variant_share": 0.5}))
    again = [row for row in rows_of(outcome) if (row["variant"], row["replicate"]) == ("w8a8", 1)]
    assert 0 < len(again) < 18
    assert all(row["identical"] for row in again)
    assert len(lm_eval.answers["w8a8-1"]) == len(lines(GOLDEN / "requests.jsonl"))


def test_the_plan_says_what_is_known(tmp_path: Path, lm_eval: LmEval) -> None:
    path = made(tmp_path)

    def told() -> dict[str, str]:
        found = outlook(prepare(recipe.load(path), tmp_path / "results", Watcher()))
        return {line.label: line.state for line in found if line.kind in {"tasks", "rank"}}

    assert told() == {"velmora": "to build with lm-eval; its steps are known then"}
    run(tmp_path, path)
    assert set(told().values()) == {"stored"}
    assert "w8a8: velmora · options" in told()


def test_a_task_named_in_two_sets_is_refused_with_the_recipe(tmp_path: Path) -> None:
    uses = [{"name": "once", "lm_eval": {"tasks": ["a", "b"]}}, {"name": "again", "lm_eval": {"tasks": ["c", "b"]}}]
    with pytest.raises(RecipeError, match="lm-eval's task 'b' is in 'once' and 'again'"):
        recipe.load(made(tmp_path, evalsets=uses))


def test_a_task_in_two_sets_through_its_group_is_refused_before_anything_is_answered(
    tmp_path: Path, lm_eval: LmEval
) -> None:
    """Eighteen documents under two names would pass as thirty-six."""
    of = {"include_path": "own", "env": "current"}
    group = {"name": "velmora", "lm_eval": {"tasks": ["velmora"], **of}}
    alone = {"name": "again", "lm_eval": {"tasks": ["velmora_say", "velmora_choice"], **of}}
    with pytest.raises(EvalsetError, match="'velmora' and 'again' both hold lm-eval's task velmora_"):
        run(tmp_path, made(tmp_path, evalsets=[group, alone]))
    assert not (tmp_path / "results" / "objects" / "generations").exists()


def test_documents_that_a_set_of_one_s_own_asks_too_are_refused(tmp_path: Path, lm_eval: LmEval) -> None:
    asked = task_files.read(GOLDEN, "key", "velmora", "en").evalset.items[-1]
    mine = {
        "id": "mine", "messages": [message.model_dump(mode="json") for message in asked.messages], "kind": "say",
        "language": "en", "difficulty": 1, "scorer": {"name": "contains_all", "args": {"values": ["March"]}},
    }  # fmt: skip
    write_evalset(tmp_path, [json.dumps(mine)])
    use = {"name": "velmora", "lm_eval": {"tasks": ["velmora"], "include_path": "own", "env": "current"}}
    with pytest.raises(
        EvalsetError, match=r"1 prompt of evaluation set velmora is in another set too: .* tiny/mine asks"
    ):
        run(tmp_path, made(tmp_path, evalsets=[{"name": "./tiny"}, use]))


def test_documents_of_one_set_that_ask_the_same_count_as_one(tmp_path: Path) -> None:
    shutil.copytree(GOLDEN, tmp_path / "tasks")
    docs = lines(GOLDEN / "docs.jsonl")
    docs.append(docs[-1] | {"item": "velmora_say:again"})
    (tmp_path / "tasks" / "docs.jsonl").write_text("".join(json.dumps(doc) + "\n" for doc in docs))
    items = task_files.read(tmp_path / "tasks", "key", "velmora", "en").evalset.items
    assert [item.twin_of for item in items] == [None] * 18 + [docs[-2]["item"]]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ({"lm_eval": {"tasks": ["a", "b"]}}, "what to call these"),
        ({"lm_eval": {"tasks": ["a"]}, "limit": 3}, "lm_eval.limit"),
        ({"lm_eval": {"tasks": []}}, "tasks"),
        ({"lm_eval": {"tasks": ["a"], "metrc": "acc"}}, "metric"),
        ({"name": "../a", "lm_eval": {"tasks": ["a"]}}, "letters, digits"),
        ({}, "give `name`"),
    ],
)
def test_a_use_that_cannot_be_meant_is_refused_by_line(tmp_path: Path, use: dict[str, Any], message: str) -> None:
    with pytest.raises(RecipeError, match=message) as caught:
        recipe.load(made(tmp_path, evalsets=[use]))
    assert "recipe.yaml, line " in caught.value.message


def test_the_one_task_s_name_is_the_set_s_and_the_profile_is_its_own(tmp_path: Path) -> None:
    use = {"lm_eval": {"tasks": ["velmora_say"]}}
    criteria = [{"metric": "score_loss", "margin": 0.1, "evalset": "velmora_say", "profile": "lm-eval"}]
    tier = {"default": "w8a8", "allow": ["w8a8"], "engines": ["fake"], "criteria": criteria}
    loaded = recipe.load(made(tmp_path, evalsets=[use], tiers={"chat": tier}))
    assert loaded.recipe.evalsets[0].name == "velmora_say"
    sampling = {"lm-eval": {"temperature": 0, "max_tokens": 8, "seeds": [0]}}
    with pytest.raises(RecipeError, match="the profile of lm-eval's tasks"):
        recipe.load(made(tmp_path, evalsets=[use], sampling=sampling))


def test_a_slice_that_no_document_is_in_is_refused_before_anything_is_answered(tmp_path: Path, lm_eval: LmEval) -> None:
    criteria = [{"metric": "score_loss", "margin": 0.1, "where": {"kind": "velmora_sing"}}]
    tier = {"default": "w8a8", "allow": ["w8a8"], "engines": ["fake"], "criteria": criteria}
    with pytest.raises(EvalsetError, match="has kind 'velmora_sing'") as caught:
        run(tmp_path, made(tmp_path, tiers={"chat": tier}))
    assert caught.value.advice == "known kind: velmora_choice, velmora_say"
    assert not (tmp_path / "results" / "objects" / "generations").exists()


def test_a_folder_of_tasks_that_is_not_there_is_told(tmp_path: Path, lm_eval: LmEval) -> None:
    path = made(tmp_path)
    shutil.rmtree(tmp_path / "own")
    with pytest.raises(EvalsetError, match=r"no folder .*own with tasks"):
        run(tmp_path, path)


def test_a_refusal_of_lm_eval_s_is_the_user_s_to_mend_and_a_crash_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    monkeypatch.setattr(tasks, "WORKER", worker)
    worker.write_text(
        "import json, pathlib, sys\n"
        "pathlib.Path(sys.argv[2]).write_text(json.dumps({'error': 'no task velmora', 'advice': 'did you mean it?'}))\n"
        "sys.exit(1)\n"
    )
    with pytest.raises(EvalsetError, match="no task velmora") as caught:
        run(tmp_path, made(tmp_path))
    assert caught.value.advice == "did you mean it?"
    worker.write_text("raise SystemExit('boom')\n")
    with pytest.raises(WorldError, match="boom"):
        run(tmp_path, made(tmp_path))


def test_what_lm_eval_wrote_is_read_as_items() -> None:
    found = task_files.read(GOLDEN, "key", "velmora", "en")
    assert len(found.evalset.items) == 18
    choice, say = found.evalset.items[0], found.evalset.items[-1]
    assert (choice.kind, choice.slices, say.kind) == ("velmora_choice", {"group": "velmora"}, "velmora_say")
    assert choice.messages[-1] == Message(role="user", content="Ranked: “at dawn” · “at noon” · “at midnight”")
    assert say.scorer.args == {"metric": "exact_match,last-word", "target": "March"}
    scores = task_files.read_scores(GOLDEN / "scores.jsonl")
    assert scores.keys() == {item.id for item in found.evalset.items}
    assert set(scores.values()) == {0.0, 1.0}


@pytest.mark.parametrize(
    ("logprobs", "top", "expected"),
    [
        ([-1.0, -0.5], [5, 6], {"logprob": -1.5, "is_greedy": True}),
        ([-1.0, -0.5], [5, 9], {"logprob": -1.5, "is_greedy": False}),
        ([-1.0, float("nan")], [5, 6], {"logprob": None, "is_greedy": True}),
    ],
)
def test_a_continuation_s_likelihood(logprobs: list[float], top: list[int], expected: dict[str, Any]) -> None:
    column = np.array(top, dtype=np.int32)[:, None]
    scores = TokenScores(
        "a", np.array([5, 6], dtype=np.int32), np.array(logprobs, dtype=np.float32), column, column.astype(np.float32)
    )
    assert tasks.likelihood(scores) == expected


def test_a_run_with_tasks_is_read_back(tmp_path: Path, lm_eval: LmEval) -> None:
    outcome, _ = run(tmp_path, made(tmp_path))
    said = Run.model_validate_json(json.dumps(outcome.run.model_dump(mode="json")))
    assert {arm.step for arm in said.arms} == {"generate", "rank", "score"}
