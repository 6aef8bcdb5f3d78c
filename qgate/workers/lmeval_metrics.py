"""lm-eval's samples in, documents and their scores out. Part of the worker lmeval_run; touches nothing.

A pair of answers needs a score of its own, in [0, 1]. So a task's metric is used where lm-eval reports its mean over
documents; where lower is better, the score is one less it. Anything else (a corpus BLEU, a perplexity, an F1 over all
documents) is refused by name.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from lm_eval.api.metrics import mean
from lm_eval.utils import handle_non_serializable
from lmeval_model import Notebook
from worker_frame import Refusal


def measured(task: str, told: dict[str, Any], wanted: str | None) -> str:
    """The metric `name,filter` that is a task's score: `wanted`, or the task's first. Raises Refusal."""
    names = list(dict.fromkeys(f"{metric},{sample['filter']}" for sample in told["samples"][task]
                               for metric in sample["metrics"]))  # fmt: skip
    usable = [name for name in names if _is_mean(told["aggregation"][task].get(_bare(name), mean))]
    found = names[:1] if wanted is None else [name for name in names if wanted in {name, _bare(name)}]
    if not found or found[0] not in usable:
        what = f"is scored by {found[0]}, which is no mean over documents" if found else f"has no metric {wanted!r}"
        choice = f"set lm_eval.metric to one of: {', '.join(usable)}" if usable else "leave the task out"
        raise Refusal(f"the task {task} {what}", choice)
    return found[0]


def _bare(name: str) -> str:
    return name.rsplit(",", 1)[0]


def _is_mean(aggregation: Any) -> bool:
    return aggregation is mean or getattr(aggregation, "__name__", "") in {"mean", "nanmean"}


def documents(task: str, told: dict[str, Any], model: Notebook) -> Iterator[dict[str, Any]]:
    """One line per document of a task: {item, task, group, target, messages, options}."""
    asked: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in model.asked.values():
        asked[line["item"]].append(line)
    groups = [group for group, names in told["group_subtasks"].items() if task in names]
    samples = told["samples"][task]
    for sample in samples:
        if sample["filter"] != samples[0]["filter"]:
            return
        item = model.items[task, sample["doc_id"]]
        yield {
            "item": item,
            "task": task,
            "group": groups[0] if groups else None,
            "target": as_text(sample["target"]),
            "messages": asked[item][0]["messages"],
            "options": options([line for line in asked[item] if line["kind"] == "rank"]),
        }


def options(ranked: list[dict[str, Any]]) -> list[str]:
    """What each of a document's first requests stands for, so that a reader sees what the model ranks first.

    Mostly the continuation. Where the same one follows different contexts (winogrande), those are the options. Requests
    without a context come last and only weigh the others (acc_mutual_info): they are no options.
    """
    contexts = [line["messages"][-1]["content"] for line in ranked]
    given = [line for line, context in zip(ranked, contexts, strict=True) if context] or ranked
    said = [line["continuation"] for line in given]
    return contexts[: len(given)] if len(set(said)) < len(said) else said


def scored(task: str, told: dict[str, Any], model: Notebook, wanted: str | None) -> Iterator[dict[str, Any]]:
    """One line per document: {item, score, metrics}, every number that lm-eval gave it among them. Raises Refusal."""
    chosen = measured(task, told, wanted)
    higher = bool(told["higher_is_better"][task].get(_bare(chosen), True))
    metrics: dict[str, dict[str, float]] = defaultdict(dict)
    for sample in told["samples"][task]:
        found = {f"{name},{sample['filter']}": _number(sample[name]) for name in sample["metrics"]}
        metrics[model.items[task, sample["doc_id"]]] |= {name: each for name, each in found.items() if each is not None}
    for item, found in metrics.items():
        value = found.get(chosen)
        if value is None or not 0.0 <= value <= 1.0:
            what = "no number" if value is None else f"{value:g}"
            raise Refusal(f"the task {task} gives {chosen} as {what} for the document {item}; a score is in [0, 1]",
                          "set lm_eval.metric to another, or leave the task out")  # fmt: skip
        yield {"item": item, "score": value if higher else 1.0 - value, "metrics": found}


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def facts(task: str, told: dict[str, Any], metric: str) -> dict[str, Any]:
    """What decides a task's numbers beside the model, for the record."""
    config = json.dumps(told["configs"][task], sort_keys=True, default=handle_non_serializable)
    return {
        "metric": metric,
        "version": as_text(told["versions"].get(task)),
        "num_fewshot": told["n-shot"].get(task),
        "num_docs": told["n-samples"][task]["original"],
        "config_sha256": hashlib.sha256(config.encode()).hexdigest(),
    }


def as_text(value: Any) -> str:
    """A string as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
