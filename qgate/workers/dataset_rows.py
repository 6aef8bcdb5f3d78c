"""Worker: rows of a dataset of the Hugging Face hub. Runs in a tool's own environment; imports nothing of qgate.

In: request.json {dataset, config, split, revision, columns, output}. Out: the file `output` with a JSON object of these
columns a line, and result.json {num_rows, commit, packages}; on a known failure result.json {error, advice} and a
non-zero exit. A revision that is no commit is resolved to one, which needs the hub; a commit that was read before is
read from HF_HOME without it.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from datasets import load_dataset
from datasets.exceptions import DatasetNotFoundError
from huggingface_hub import HfApi
from worker_frame import Refusal, main

COMMIT = re.compile(r"[0-9a-f]{40}")
OFFLINE = "the hub cannot be asked"


def take(request: dict[str, Any]) -> dict[str, Any]:
    """Write the rows of the dataset at one commit. Raises Refusal."""
    commit = resolve(request["dataset"], request["revision"])
    return {"num_rows": write(load(request, commit), request["columns"], Path(request["output"])), "commit": commit}


def resolve(dataset: str, revision: str) -> str:
    """The commit that a revision is just now. Raises Refusal."""
    if COMMIT.fullmatch(revision):
        return revision
    try:
        return str(HfApi().dataset_info(dataset, revision=revision).sha)
    except Exception as error:  # whatever transport huggingface_hub has today raises its own
        raise Refusal(f"{dataset} at {revision!r}: {OFFLINE}: {first_line(error)}",
                      "name a commit that was read before, or run where the hub can be reached; for a private dataset "
                      "set HF_TOKEN") from None  # fmt: skip


def load(request: dict[str, Any], commit: str) -> Any:
    """The split at that commit. Raises Refusal."""
    name, split = request["dataset"], request["split"]
    try:
        return load_dataset(name, request["config"], split=split, revision=commit)
    except (DatasetNotFoundError, FileNotFoundError, ConnectionError) as error:
        raise Refusal(f"no dataset {name} at {commit}: {first_line(error)}",
                      "check the id and the commit; offline only what HF_HOME has kept can be read") from None  # fmt: skip
    except ValueError as error:
        raise Refusal(f"{name}, split {split!r}: {first_line(error)}", "check --split and --config") from None


def write(data: Any, columns: list[str], output: Path) -> int:
    """The rows, with these columns only; returns how many. Raises Refusal."""
    if missing := [name for name in columns if name not in data.column_names]:
        raise Refusal(f"the dataset has no column {missing[0]!r}", f"columns: {', '.join(data.column_names)}")
    with output.open("w", encoding="utf-8") as stream:
        for row in data.select_columns(columns):
            try:
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
            except TypeError as error:
                raise Refusal(f"a column holds what is no text or number: {error}", "map other columns") from None
    return len(data)


def first_line(error: BaseException) -> str:
    """What a message opens with."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


if __name__ == "__main__":
    sys.exit(main(sys.argv, take, ["datasets"]))
