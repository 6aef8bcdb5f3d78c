"""lm-eval's tasks: what they ask in, as steps of the plan; what was answered in, lm-eval's scores out.

Runs lm-eval's worker, once to ask and once to score all arms that are not scored yet; touches the store. The engine
answers in between like any other set's requests, so the answers are kept, resumed and compared in the same way.

objects/lm_eval_tasks/<key>/    requests.jsonl docs.jsonl tasks.json
objects/lm_eval_scores/<key>/   scores.jsonl: lm-eval's score and metrics of each document under one arm
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from qgate.crosscheck import evalset_name
from qgate.errors import EvalsetError, WorldError
from qgate.io import artefact, checkpoint, proc, scripts, task_files
from qgate.io.evalset_items import check_apart
from qgate.io.files import sha256_file
from qgate.io.score_log import read_scores
from qgate.io.task_files import REQUESTS, TASKS, AskedTasks
from qgate.keys import task_scores_key, tasks_key
from qgate.plan_tasks import plan_tasks, task_request_id
from qgate.ports import Tool
from qgate.rooms.arms import Arm
from qgate.rooms.prepare import Prepared, check_scopes, requests_by_id
from qgate.rooms.work import Work
from qgate.schemas.answers import TokenScores
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import BASELINE, LM_EVAL, EvalsetUse, LmEvalTasks
from qgate.schemas.tasks import TaskSet

ASKED, SCORED = "lm_eval_tasks", "lm_eval_scores"
SCORES = "scores.jsonl"
WORKER = Path(__file__).resolve().parent.parent / "workers" / "lmeval_run.py"
NOT_TOKENIZER = (".safetensors", ".gguf", ".bin", "config.json", "recipe.yaml", ".md")
DEFAULT_LENGTH = 2048
"""lm-eval's own, where a model does not say its context."""


def obtain_tasks(prepared: Prepared, baseline: Checkpoint) -> Prepared:
    """The same with the steps of every set of lm-eval's tasks in its plan. Raises EvalsetError, EnvError, WorldError."""
    uses = [use for use in prepared.loaded.recipe.evalsets if use.lm_eval is not None]
    return with_tasks(prepared, {use.name: _asked(prepared, use, baseline) for use in uses}) if uses else prepared


def find_tasks(prepared: Prepared, baseline: Checkpoint) -> Prepared:
    """The same with the steps of those sets of lm-eval's tasks that are stored; nothing is made."""
    found = {}
    for use in prepared.loaded.recipe.evalsets:
        if use.lm_eval is not None:
            key = _key(prepared, use.lm_eval, baseline, _tool(prepared, use.lm_eval))
            if (folder := prepared.store.find(ASKED, key)) is not None:
                found[use.name] = task_files.read(folder, key, use.name, use.lm_eval.language)
    return with_tasks(prepared, found) if found else prepared


def with_tasks(prepared: Prepared, tasks: Mapping[str, AskedTasks]) -> Prepared:
    """The same with these sets and their steps.

    Raises EvalsetError for a criterion on a slice that is in none, and for sets of which one asks what another asks.
    """
    recipe = prepared.loaded.recipe
    sets = {**prepared.evalsets, **{name: each.evalset for name, each in tasks.items()}}
    names = [evalset_name(use.name) for use in recipe.evalsets]
    sets = {name: sets[name] for name in names if name in sets}
    _check_tasks_apart(tasks)
    check_apart(sets.values())
    check_scopes(recipe, sets, complete=len(sets) == len(names))
    steps = prepared.plan
    for name, each in tasks.items():
        steps += plan_tasks(recipe, name, each.requests)
    bench = replace(prepared.bench, requests=requests_by_id(steps))
    return replace(prepared, evalsets=sets, plan=steps, bench=bench, tasks=dict(tasks))


def _check_tasks_apart(tasks: Mapping[str, AskedTasks]) -> None:
    """Refuse one task in two sets, through a group or with other examples in its prompts. Raises EvalsetError."""
    seen: dict[str, str] = {}
    for name, each in tasks.items():
        for task in each.facts.tasks:
            if task in seen:
                raise EvalsetError(
                    f"the evaluation sets {seen[task]!r} and {name!r} both hold lm-eval's task {task}",
                    advice="leave it out of one of them: the same documents twice are no more evidence",
                )
            seen[task] = name


def _asked(prepared: Prepared, use: EvalsetUse, baseline: Checkpoint) -> AskedTasks:
    spec = use.lm_eval
    assert spec is not None
    tool = _tool(prepared, spec)
    key = _key(prepared, spec, baseline, tool)

    def make(folder: Path) -> None:
        request = _request(spec, baseline, "ask", folder)
        with prepared.bench.watcher.task(f"{use.name}: building lm-eval's tasks", None):
            said = _run(tool, request, prepared.folder / "work" / f"{use.name}-ask", f"lm-eval ({use.name})")
        facts = {name: said[name] for name in ("tasks", "num_truncated", "packages")}
        artefact.save(folder / TASKS, TaskSet.model_validate(facts))

    return task_files.read(prepared.store.obtain(ASKED, key, make), key, use.name, spec.language)


def _tool(prepared: Prepared, spec: LmEvalTasks) -> Tool:
    return prepared.find_tool(spec.env or LM_EVAL)


def _key(prepared: Prepared, spec: LmEvalTasks, baseline: Checkpoint, tool: Tool) -> str:
    asked = spec.model_dump(mode="json", exclude={"env", "include_path", "language"})
    return tasks_key(
        asked | {"max_length": _max_length(spec, baseline)},
        files=_own_files(spec),
        tokenizer=tokenizer_files(baseline),
        tool=tool.identity,
        worker=scripts.sha256(WORKER),
    )


def tokenizer_files(found: Checkpoint) -> dict[str, str]:
    """Hash of every file of a checkpoint that may decide how a text becomes tokens, the chat template included."""
    return {name: record.sha256 for name, record in found.files.items() if not name.endswith(NOT_TOKENIZER)}


def _own_files(spec: LmEvalTasks) -> dict[str, str]:
    """Hash of every file beside the user's own tasks. Raises EvalsetError."""
    own = spec.include_path
    if own is None:
        return {}
    if not own.is_dir():
        raise EvalsetError(f"no folder {own} with tasks", advice="lm_eval.include_path is relative to the recipe")
    files = (file for file in sorted(own.rglob("*")) if file.is_file() and "__pycache__" not in file.parts)
    return {file.relative_to(own).as_posix(): sha256_file(file) for file in files}


def _max_length(spec: LmEvalTasks, baseline: Checkpoint) -> int:
    config = checkpoint.read_config(baseline.path)
    text = config.get("text_config") if isinstance(config.get("text_config"), dict) else config
    context = text.get("max_position_embeddings") if isinstance(text, dict) else None
    return spec.max_length or (context if isinstance(context, int) else DEFAULT_LENGTH)


def _request(spec: LmEvalTasks, baseline: Checkpoint, action: str, output: Path) -> dict[str, Any]:
    """What the worker is told (qgate/workers/lmeval_run.py)."""
    own = None if spec.include_path is None else str(spec.include_path.absolute())
    said = spec.model_dump(mode="json", exclude={"env", "language", "include_path", "max_length"})
    length = _max_length(spec, baseline)
    return {
        **said,
        "action": action,
        "include_path": own,
        "tokenizer": str(baseline.path.absolute()),
        "max_length": length,
        "output": str(output.absolute()),
    }


def _run(tool: Tool, request: Mapping[str, Any], work: Path, what: str) -> dict[str, Any]:
    """The worker's result. Raises EvalsetError in its own words where it refuses, else WorldError."""
    try:
        return proc.run_worker(tool.python, WORKER, request, work=work.absolute(), what=what)
    except proc.ProcessError:
        raise
    except WorldError as error:
        raise EvalsetError(error.message, advice=error.advice) from error


def score_tasks(prepared: Prepared, work: Work) -> None:
    """lm-eval's scores of every arm that answered, into `work`. Raises EvalsetError, StoreError, WorldError."""
    _tell_other_tokenizers(prepared, work)
    for use in prepared.loaded.recipe.evalsets:
        if use.lm_eval is None:
            continue
        tasks = prepared.tasks[use.name]
        arms = dict(_answered(work, use.name))
        keys = {arm: task_scores_key(tasks.key, [part.record.key for part in parts]) for arm, parts in arms.items()}
        missing = {arm: arms[arm] for arm, key in keys.items() if prepared.store.find(SCORED, key) is None}
        made = _score(prepared, use, work.checkpoints[BASELINE], missing) if missing else {}
        for arm, key in keys.items():
            folder = prepared.store.obtain(SCORED, key, partial(_keep, made.get(arm)))
            work.task_scores[*arm, use.name] = task_files.read_scores(folder / SCORES)


def _tell_other_tokenizers(prepared: Prepared, work: Work) -> None:
    """Every checkpoint is asked the baseline's tokens: where a variant's own would be others, lm-eval does not show it."""
    if not prepared.tasks:
        return
    baseline = tokenizer_files(work.checkpoints[BASELINE])
    for name, found in work.checkpoints.items():
        other = tokenizer_files(found)
        differing = sorted(file for file in baseline.keys() | other.keys() if baseline.get(file) != other.get(file))
        if differing:
            prepared.bench.watcher.note(
                f"{name}: {', '.join(differing)} not the baseline's; lm-eval's prompts are in the baseline's tokens, so "
                "only a set of chat prompts shows whether its own are others"
            )


def _keep(made: Path | None, folder: Path) -> None:
    assert made is not None, "what was stored a moment ago is gone"
    shutil.copyfile(made, folder / SCORES)


def _answered(work: Work, name: str) -> Iterator[tuple[tuple[str, int], list[Arm]]]:
    """(variant, replicate) and its arms on the set `name`: what it wrote, what it ranked."""
    found: dict[tuple[str, int], list[Arm]] = {}
    for arms in (work.generated, work.ranked):
        for (variant, replicate, evalset, _), arm in arms.items():
            if evalset == name:
                found.setdefault((variant, replicate), []).append(arm)
    yield from found.items()


def _score(
    prepared: Prepared, use: EvalsetUse, baseline: Checkpoint, arms: Mapping[tuple[str, int], list[Arm]]
) -> dict[tuple[str, int], Path]:
    """A file of scores per arm, all made by one run of the worker."""
    assert use.lm_eval is not None
    tasks, work = prepared.tasks[use.name], prepared.folder / "work" / f"{use.name}-score"
    files = {arm: work.absolute() / f"{arm[0]}-{arm[1]}-answers.jsonl" for arm in arms}
    for arm, parts in arms.items():
        task_files.write_answers(files[arm], _answers(use.name, tasks, parts))
    request = _request(use.lm_eval, baseline, "score", work) | {
        "requests": str((tasks.folder / REQUESTS).absolute()),
        "arms": {f"{variant}-{replicate}": str(file) for (variant, replicate), file in files.items()},
    }
    with prepared.bench.watcher.task(f"{use.name}: lm-eval scores", None):
        _run(_tool(prepared, use.lm_eval), request, work, f"lm-eval's scoring ({use.name})")
    return {(variant, replicate): work / f"{variant}-{replicate}.jsonl" for variant, replicate in arms}


def _answers(name: str, tasks: AskedTasks, parts: list[Arm]) -> Iterator[dict[str, Any]]:
    """What lm-eval is told of an arm: what was not asked or did not come is nothing, and its row has no score anyway."""
    told: dict[str, dict[str, Any]] = {}
    for arm in parts:
        if arm.record.step == "rank":
            told |= {scores.id: likelihood(scores) for scores in read_scores(arm.folder)}
        else:
            told |= {answer.id: {"text": answer.text or ""} for answer in arm.answers()}
    nothing: dict[str, dict[str, Any]] = {"rank": {"logprob": None, "is_greedy": False}, "generate": {"text": ""}}
    for request in tasks.requests:
        yield {"id": request.id, **told.get(task_request_id(name, request), nothing[request.kind])}


def likelihood(scores: TokenScores) -> dict[str, Any]:
    """ln P of the whole continuation (None where it is no number), and whether each token is the most likely one."""
    total = float(np.sum(scores.logprobs, dtype=np.float64))
    greedy = bool(np.all(scores.top_ids[:, 0] == scores.token_ids))
    return {"logprob": total if math.isfinite(total) else None, "is_greedy": greedy}
