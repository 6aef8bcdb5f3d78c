"""lm-eval itself: its tasks through the worker, through a whole run, and its checkers beside qgate's own."""

from __future__ import annotations

import itertools
import json
import random
import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import yaml

from qgate import pipeline, scorers
from qgate.errors import WorldError
from qgate.io import proc, recipe
from qgate.ports import Tool
from qgate.rooms.tasks import WORKER
from qgate.schemas.verdict import Verdict
from qgate.scorers import checks
from tests.integration.ifeval_cases import CASES, DIFFERENT, TEXTS
from tests.tools import tool_or_skip
from tests.unit.test_pipeline import Watcher

pytestmark = [pytest.mark.heavy, pytest.mark.timeout(1800)]
HERE = Path(__file__).parent
TASKS = HERE / "lm_eval_tasks"


@pytest.fixture(scope="module")
def tool() -> Tool:
    return tool_or_skip("lm-eval")


def work(tool: Tool, model: Path, folder: Path, **said: Any) -> dict[str, Any]:
    """The worker's result; what it writes lies in `folder`."""
    request = {
        "action": "ask", "tasks": ["velmora"], "include_path": str(TASKS), "limit": None, "num_fewshot": None,
        "apply_chat_template": False, "fewshot_as_multiturn": True, "system_instruction": None, "gen_kwargs": {},
        "metric": None, "seed": 1234, "tokenizer": str(model), "max_length": 2048, "output": str(folder),
    }  # fmt: skip
    return proc.run_worker(tool.python, WORKER, request | said, work=folder, what="lm-eval")


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def write_lines(file: Path, rows: list[dict[str, Any]]) -> Path:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def own_task(folder: Path, **changes: Any) -> Path:
    """A folder with velmora_say's data and a task on it, changed."""
    folder.mkdir()
    shutil.copyfile(TASKS / "say.jsonl", folder / "say.jsonl")
    task = yaml.safe_load((TASKS / "velmora_say.yaml").read_text(encoding="utf-8"))
    (folder / "mine.yaml").write_text(yaml.safe_dump(task | {"task": "mine"} | changes), encoding="utf-8")
    return folder


def test_what_lm_eval_asks_is_what_its_hf_model_would_read(tool: Tool, demo_model: Path, tmp_path: Path) -> None:
    """Context and continuation together are the tokens of the whole text; a chat is the checkpoint's template."""
    said = work(tool, demo_model, tmp_path)
    assert said["tasks"]["velmora_choice"]["metric"] == "acc,none"
    asked = lines(tmp_path / "requests.jsonl")
    assert [line["kind"] for line in asked] == ["rank"] * 30 + ["generate"] * 8
    assert len(lines(tmp_path / "docs.jsonl")) == 18
    first = asked[0]
    assert first["messages"][0]["content"].endswith("Question: When does the ferry leave Velmora?\nAnswer:")
    assert (first["continuation"], first["prompt_ids"][-2:], first["continuation_ids"]) == (
        " at dawn", [21350, 42], [418, 16804],
    )  # fmt: skip
    golden = lines(HERE.parent / "golden" / "lm_eval" / "requests.jsonl")
    assert asked == golden
    (tmp_path / "chat").mkdir()
    work(tool, demo_model, tmp_path / "chat", apply_chat_template=True, limit=2, system_instruction="Be brief.")
    turns = lines(tmp_path / "chat" / "requests.jsonl")[0]["messages"]
    assert [turn["role"] for turn in turns] == ["system", "user"]
    assert len(lines(tmp_path / "chat" / "docs.jsonl")) == 4


def test_lm_eval_s_own_figures_are_the_means_of_the_scores(tool: Tool, demo_model: Path, tmp_path: Path) -> None:
    work(tool, demo_model, tmp_path)
    chance = random.Random(7)
    docs = {doc["item"]: doc for doc in lines(tmp_path / "docs.jsonl")}
    answers = {"good": [], "noisy": []}
    for request in lines(tmp_path / "requests.jsonl"):
        doc = docs[request["item"]]
        if request["kind"] == "rank":
            right = request["continuation"] == doc["options"][int(doc["target"])]
            good = {"logprob": -1.0 if right else -9.0, "is_greedy": right}
            noisy = {"logprob": -chance.random(), "is_greedy": False}
        else:
            good = {"text": f" It is {doc['target']}.\nAnd so on"}
            noisy = {"text": chance.choice([doc["target"], "", "no idea"])}
        answers["good"].append({"id": request["id"], **good})
        answers["noisy"].append({"id": request["id"], **noisy})
    files = {name: str(write_lines(tmp_path / f"{name}-answers.jsonl", rows)) for name, rows in answers.items()}
    said = work(
        tool, demo_model, tmp_path, action="score", arms=files, requests=str(tmp_path / "requests.jsonl")
    )  # fmt: skip
    for name in files:
        scores = {row["item"]: row["score"] for row in lines(tmp_path / f"{name}.jsonl")}
        for task, metric in (("velmora_choice", "acc,none"), ("velmora_say", "exact_match,last-word")):
            mine = [score for item, score in scores.items() if item.startswith(task)]
            assert said["results"][name][task][metric] == pytest.approx(np.mean(mine))
    assert all(row["score"] == 1.0 for row in lines(tmp_path / "good.jsonl"))
    changed = [{**line, "args_sha256": "0" * 64} for line in lines(tmp_path / "requests.jsonl")]
    other = write_lines(tmp_path / "changed.jsonl", changed)
    with pytest.raises(WorldError, match="asks otherwise than when its requests were made"):
        work(tool, demo_model, tmp_path, action="score", arms=files, requests=str(other))


def test_one_continuation_after_several_contexts_is_told_by_the_contexts(
    tool: Tool, demo_model: Path, tmp_path: Path
) -> None:
    """As winogrande asks; and requests that only weigh others (mutual information) are no options."""
    rows = [{"a": 0, "rest": "won the race.", "both": ["Mira outran Ilse so Mira", "Mira outran Ilse so Ilse"]}]
    changes = {
        "output_type": "multiple_choice", "doc_to_text": "a", "doc_to_choice": "both", "doc_to_target": "rest",
        "metric_list": [{"metric": "acc"}], "filter_list": None, "generation_kwargs": None,
    }  # fmt: skip
    own = own_task(tmp_path / "own", **changes)
    write_lines(own / "say.jsonl", rows)
    work(tool, demo_model, tmp_path, tasks=["mine"], include_path=str(own))
    (doc,) = lines(tmp_path / "docs.jsonl")
    assert doc["options"] == rows[0]["both"]
    mutual = own_task(tmp_path / "mutual", **changes | {
        "doc_to_text": "Who won?", "doc_to_target": "a", "metric_list": [{"metric": "acc"}, {"metric": "acc_mutual_info"}],
    })  # fmt: skip
    write_lines(mutual / "say.jsonl", rows)
    work(tool, demo_model, tmp_path, tasks=["mine"], include_path=str(mutual))
    (doc,) = lines(tmp_path / "docs.jsonl")
    assert doc["options"] == [f" {option}" for option in rows[0]["both"]]
    assert len(lines(tmp_path / "requests.jsonl")) == 4


@pytest.mark.parametrize(
    ("task", "said", "expected"),
    [
        ({}, {"tasks": ["mune"]}, ("no task, group or tag 'mune'", "mine")),
        ({}, {"metric": "accuracy"}, ("has no metric 'accuracy'", "exact_match,last-word")),
        ({"metric_list": [{"metric": "bleu"}]}, {}, ("bleu,last-word, which is no mean over documents", "leave the task")),
        ({"generation_kwargs": {"num_beams": 4}}, {}, ("that no engine is told: num_beams", "known: until")),
        ({"output_type": "loglikelihood_rolling", "metric_list": [{"metric": "byte_perplexity"}], "filter_list": None,
          "doc_to_text": "", "doc_to_target": "{{context}}"}, {}, ("measures perplexity", "token_evidence")),
        ({}, {"max_length": 16, "gen_kwargs": {"max_gen_toks": 16}}, ("leaves no room in 16 tokens", "gen_kwargs")),
        ({"dataset_kwargs": {"data_files": {"test": "gone.jsonl"}}}, {}, ("data cannot be had", "include_path")),
        ({"dataset_path": "nobody/nothing", "dataset_kwargs": None}, {}, ("data cannot be had", "HF_HOME")),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_one_clear_message(
    tool: Tool, demo_model: Path, tmp_path: Path, task: dict[str, Any], said: dict[str, Any], expected: tuple[str, str]
) -> None:
    own = own_task(tmp_path / "own", **task)
    with pytest.raises(WorldError, match=expected[0]) as caught:
        work(tool, demo_model, tmp_path, **{"tasks": ["mine"], "include_path": str(own), **said})
    assert expected[1] in str(caught.value.advice)


def damage(source: Path, target: Path) -> None:
    """A copy of a checkpoint with every fourth block's MLP zeroed: it still writes, but knows less."""
    shutil.copytree(source, target)
    weights = target / "model.safetensors"
    data = bytearray(weights.read_bytes())
    (size,) = struct.unpack("<Q", data[:8])
    for name, tensor in json.loads(data[8 : 8 + size]).items():
        parts = name.split(".")
        if name.endswith("mlp.down_proj.weight") and int(parts[2]) % 4 == 0:
            start, end = (8 + size + offset for offset in tensor["data_offsets"])
            data[start:end] = bytes(end - start)
    weights.write_bytes(data)


def test_a_local_task_through_a_whole_run(tool: Tool, demo_model: Path, tmp_path: Path) -> None:
    """Baseline and a damaged variant on the reference engine: the verdict rests on lm-eval's scores."""
    damage(demo_model, tmp_path / "damaged")
    tier = {
        "default": "damaged", "allow": ["damaged"], "engines": ["transformers"],
        "criteria": [
            {"metric": "score_loss", "margin": 0.02, "evalset": "velmora"},
            {"metric": "worst_slice_score_loss", "margin": 0.1, "by": "kind", "evalset": "velmora"},
            {"metric": "kl_mean", "margin": 0.05, "evalset": "velmora"},
        ],
    }  # fmt: skip
    written = {
        "qgate": 1,
        "name": "velmora",
        "model": {"path": str(demo_model)},
        "variants": {"damaged": {"checkpoint": {"path": str(tmp_path / "damaged")}, "precision": "W8A8"}},
        "engine": {"name": "transformers", "concurrency": 16},
        "evalsets": [{"name": "velmora", "lm_eval": {"tasks": ["velmora"], "include_path": str(TASKS)}}],
        "sampling": {"greedy": {"temperature": 0, "max_tokens": 8, "seeds": [0]}},
        "token_evidence": {"garble": False},
        "statistics": {"resamples": 1000},
        "tiers": {"chat": tier},
    }
    path = tmp_path / "recipe.yaml"
    path.write_text(yaml.safe_dump(written), encoding="utf-8")
    outcome = pipeline.run(recipe.load(path), tmp_path / "results", Watcher())
    rows = pq.read_table(outcome.folder / "answers.parquet").to_pylist()
    means = {
        (variant, replicate): np.mean([row["score"] for row in rows if (row["variant"], row["replicate"]) == arm])
        for arm in {(row["variant"], row["replicate"]) for row in rows}
        for variant, replicate in [arm]
    }
    assert means["baseline", 0] == means["baseline", 1] > means["damaged", 0]
    assert outcome.sheet.tiers[0].verdict is Verdict.FAIL
    (judged,) = [each for each in outcome.sheet.tiers[0].variants if each.variant == "damaged"]
    assert all(each.scope.startswith("velmora") for each in judged.criteria)
    assert all(each.estimate.num_items in {8, 18} for each in judged.criteria)
    watcher = Watcher()
    again = pipeline.run(recipe.load(path), tmp_path / "results", watcher)
    assert watcher.starts == 0
    assert again.sheet.tiers == outcome.sheet.tiers


@pytest.fixture(scope="module")
def asked_of_lm_eval(tool: Tool, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """What IFEval's checkers and the library rouge-score say, in lm-eval's environment."""
    folder = tmp_path_factory.mktemp("check")
    request = {"ifeval": [[case[0], case[1], text] for case, text in PAIRS], "rouge": ROUGE}
    return proc.run_worker(tool.python, HERE / "lm_eval_check.py", request, work=folder, what="lm-eval's checkers")


PAIRS = list(itertools.product(CASES, TEXTS))
CHANCE = random.Random(3)
WORDS = ("lamp", "tower", "oil", "keeper", "the", "stands", "burns", "old", "green", "in")
ROUGE = [
    [kind, " ".join(CHANCE.choices(WORDS, k=CHANCE.randint(1, 14))), " ".join(CHANCE.choices(WORDS, k=9))]
    for kind in ("rouge1", "rouge2", "rougeL")
    for _ in range(40)
]


def test_qgate_s_checks_agree_with_ifeval_s_but_where_it_is_said(asked_of_lm_eval: dict[str, list[Any]]) -> None:
    differing = {
        (case[0], text)
        for (case, text), theirs in zip(PAIRS, asked_of_lm_eval["ifeval"], strict=True)
        if checks.find(case[2])(text, case[3], "en") != theirs
    }
    assert differing == DIFFERENT.keys()
    assert len(PAIRS) == 357


def test_rouge_is_the_library_rouge_score_s(asked_of_lm_eval: dict[str, list[Any]]) -> None:
    mine = [scorers.load("rouge")(answer, {"values": [said], "kind": kind}, "en") for kind, answer, said in ROUGE]
    assert mine == pytest.approx(asked_of_lm_eval["rouge"])
    assert 0.0 < min(filter(None, mine)) < max(mine)


def test_a_group_may_name_tasks_of_lm_eval_s_own(
    tool: Tool, demo_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then they are known, and their data are looked for on the hub."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    own = own_task(tmp_path / "own")
    (own / "both.yaml").write_text("group: both\ntask: [mine, arc_easy]\n", encoding="utf-8")
    with pytest.raises(WorldError, match=r"data cannot be had.*ai2_arc"):
        work(tool, demo_model, tmp_path, tasks=["both"], include_path=str(own))


def test_ifeval_scores_without_a_network(tool: Tool, demo_model: Path, tmp_path: Path) -> None:
    """Its sentence counts need nltk's model, which the environment brings; its corpus metric is refused by name."""
    own = {"tasks": ["house_ifeval"], "include_path": str(HERE / "lm_eval_ifeval"), "apply_chat_template": True}
    said = work(tool, demo_model, tmp_path, **own)
    assert said["tasks"]["house_ifeval"]["metric"] == "prompt_level_strict_acc,none"
    texts = ("A lamp is a light. It stands on a table. It needs oil.", "A tower, tall and grey.", "NASA and BBC.")
    asked = lines(tmp_path / "requests.jsonl")
    answers = [{"id": request["id"], "text": text} for request, text in zip(asked, texts, strict=True)]
    arms = {"mine": str(write_lines(tmp_path / "answers.jsonl", answers))}
    work(tool, demo_model, tmp_path, action="score", arms=arms, requests=str(tmp_path / "requests.jsonl"), **own)
    assert [row["score"] for row in lines(tmp_path / "mine.jsonl")] == [1.0, 0.0, 1.0]
    with pytest.raises(WorldError, match="inst_level_strict_acc,none, which is no mean over documents"):
        work(tool, demo_model, tmp_path, metric="inst_level_strict_acc", **own)
