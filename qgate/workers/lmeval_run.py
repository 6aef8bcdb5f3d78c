"""Worker: lm-eval's tasks without a model. Runs in lm-eval's own environment; imports nothing of qgate.

lm-eval asks for everything before it looks at any answer, so a run of it falls into two halves with the engine between
them. `ask`: the tasks are built, and every prompt that lm-eval would send is written down, as token ids. `score`: the
same tasks are built again, each prompt is answered from a file, and lm-eval filters, scores and aggregates as it always
does. Both are one call of its `simple_evaluate`, over the model of lmeval_model.

Run as `python lmeval_run.py request.json result.json`. In: request.json {action, tasks, include_path, limit,
num_fewshot, apply_chat_template, fewshot_as_multiturn, system_instruction, gen_kwargs, metric, seed, tokenizer,
max_length, output}; for `score` also {requests, arms: {name: answers file}}. Folders exist; own tasks' data_files are
relative to include_path.

Out of `ask`: output/requests.jsonl {id, item, kind, args_sha256, messages, prompt_ids} with {continuation,
continuation_ids} where kind is rank, {stop, sampling} where it is generate; output/docs.jsonl {item, task, group,
target, messages, options}; result.json {tasks, num_truncated, packages}. An answers file has {id, logprob, is_greedy}
or {id, text} a line. Out of `score`: output/NAME.jsonl {item, score, metrics}; result.json {results: {NAME: lm-eval's
own aggregates}, packages}. On a known failure result.json {error, advice} and a non-zero exit.

It never opens a socket. To run lm-eval against a server's URL, take its own command line in the same environment
(docs/own-sets.md has the line): `python -m lm_eval --model local-completions --model_args model=NAME,base_url=URL,…`.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any

if (_core := find_spec("llama_index")) is not None and _core.submodule_search_locations:
    # the environment's nltk data: IFEval's checkers need it and would try to download it when they are imported
    _data = Path(next(iter(_core.submodule_search_locations))) / "core/_static/nltk_cache"
    os.environ.setdefault("NLTK_DATA", str(_data))

import lmeval_metrics
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager
from lmeval_model import Notebook
from worker_frame import Refusal, main

PACKAGES = ("lm_eval", "datasets", "evaluate", "transformers", "sacrebleu", "nltk")


class Tasks(TaskManager):
    """An index of tasks that loads each choice once: an arm more costs its scoring only."""

    def __init__(self, own: str | None, *, defaults: bool) -> None:
        super().__init__(include_path=own, include_defaults=defaults)
        self._loaded: dict[str, Any] = {}

    def load(self, task_list: Any) -> Any:
        """The tasks and groups of these names."""
        key = json.dumps(task_list)
        if key not in self._loaded:
            self._loaded[key] = super().load(task_list)
        return self._loaded[key]


def work(request: dict[str, Any]) -> dict[str, Any]:
    """Ask, or score. Raises Refusal."""
    try:
        return {"ask": ask, "score": score}[request["action"]](request, Path(request["output"]))
    except (ConnectionError, FileNotFoundError) as error:
        raise Refusal(f"a task's data cannot be had: {error}",
                      "a dataset comes from the hub or from what HF_HOME keeps of it; own data_files are relative to "
                      "include_path") from None  # fmt: skip


def ask(request: dict[str, Any], output: Path) -> dict[str, Any]:
    """Write every request and document of the tasks. Raises Refusal."""
    model = Notebook(request["tokenizer"], request["max_length"])
    told = evaluate(request, model, index(request))
    metrics = {task: lmeval_metrics.measured(task, told, request["metric"]) for task in told["samples"]}
    write_lines(output / "requests.jsonl", model.asked.values())
    write_lines(output / "docs.jsonl", (doc for task in metrics for doc in lmeval_metrics.documents(task, told, model)))
    facts = {task: lmeval_metrics.facts(task, told, metric) for task, metric in metrics.items()}
    return {"tasks": facts, "num_truncated": model.num_truncated}


def score(request: dict[str, Any], output: Path) -> dict[str, Any]:
    """Score the answers of every arm, one after the other. Raises Refusal."""
    tasks = index(request)
    asked = {line["id"]: line["args_sha256"] for line in read_lines(Path(request["requests"]))}
    results = {}
    for name, file in request["arms"].items():
        answers = {line["id"]: {**line, "args_sha256": asked[line["id"]]} for line in read_lines(Path(file))}
        model = Notebook(request["tokenizer"], request["max_length"], answers)
        told = evaluate(request, model, tasks)
        rows = [row for task in told["samples"] for row in lmeval_metrics.scored(task, told, model, request["metric"])]
        write_lines(output / f"{name}.jsonl", rows)
        results[name] = told["results"]
    return {"results": results}


def index(request: dict[str, Any]) -> Tasks:
    """An index with the tasks in it: of `include_path` alone where that suffices, since lm-eval's own takes 16 s."""
    own, names = request["include_path"], request["tasks"]
    if own is not None:
        os.chdir(own)
        alone = Tasks(own, defaults=False)
        if set(names) <= set(alone.all_tasks):
            try:
                alone.load(names)
            except (KeyError, TypeError, ValueError):  # a group of one's own that names tasks of lm-eval's
                return Tasks(own, defaults=True)
            return alone
    tasks = Tasks(own, defaults=True)
    for name in names:
        if "*" not in name and name not in tasks.all_tasks:
            near = get_close_matches(name, tasks.all_tasks, n=3)
            raise Refusal(f"no task, group or tag {name!r}",
                          f"did you mean {' or '.join(near)}?" if near else "`lm-eval ls tasks` lists lm-eval's own; one "
                          "of your own is found by lm_eval.include_path")  # fmt: skip
    return tasks


def evaluate(request: dict[str, Any], model: Notebook, tasks: Tasks) -> dict[str, Any]:
    """lm-eval's own run over `model`; {aggregation: {task: {metric: function}}} beside what it says."""
    names, seed = request["tasks"], request["seed"]
    for name, task in tasks.load(names)["tasks"].items():
        if getattr(task, "UNSAFE_CODE", False):
            raise Refusal(f"the task {name} runs code that the model wrote, on this machine", "leave it out")
        if getattr(task, "MULTIMODAL", False):
            raise Refusal(f"the task {name} shows pictures, which no engine is given", "leave it out")
    told = simple_evaluate(
        model, tasks=names, task_manager=tasks, limit=request["limit"], num_fewshot=request["num_fewshot"],
        apply_chat_template=request["apply_chat_template"], fewshot_as_multiturn=request["fewshot_as_multiturn"],
        system_instruction=request["system_instruction"], gen_kwargs=request["gen_kwargs"] or None, bootstrap_iters=0,
        random_seed=seed, numpy_random_seed=seed, torch_random_seed=seed, fewshot_random_seed=seed,
    )  # fmt: skip
    loaded = tasks.load(names)["tasks"]
    return {**told, "aggregation": {name: task.aggregation() for name, task in loaded.items()}}


def read_lines(file: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON lines file."""
    with file.open(encoding="utf-8") as stream:
        for line in stream:
            yield json.loads(line)


def write_lines(file: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Objects as JSON lines."""
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv, work, PACKAGES))
