"""Worker: calibration texts from a Hugging Face dataset. Runs in a tool's own environment; imports nothing of qgate.

In: request.json {dataset, split, field, num_samples, seed, output}; `dataset` is a hub id or a local path. Out: the
file `output` with a JSON object {"text": …} or {"messages": […]} a line, and result.json {num_texts, packages}; on a
known failure result.json {error, advice} and a non-zero exit.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from datasets import Dataset, load_dataset
from datasets.exceptions import DatasetNotFoundError
from worker_frame import Refusal, main


def take(request: dict[str, Any]) -> dict[str, Any]:
    """Write the chosen texts. Raises Refusal."""
    entries = choose(load(request), request["field"], request["num_samples"], request["seed"])
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries]
    Path(request["output"]).write_text("".join(lines), encoding="utf-8")
    return {"num_texts": len(entries)}


def load(request: dict[str, Any]) -> Dataset:
    """The split of the dataset. Raises Refusal."""
    name, split = request["dataset"], request["split"]
    try:
        local = Path(name)
        if local.is_file():
            return load_dataset(local.suffix.lstrip(".").replace("jsonl", "json"), data_files=name, split="train")
        return load_dataset(name, split=split)
    except (DatasetNotFoundError, FileNotFoundError, ConnectionError) as error:
        raise Refusal(f"no dataset {name}: {error}", "check calibration.dataset, or give calibration.file") from None
    except ValueError as error:
        raise Refusal(f"{name}, split {split!r}: {error}", "check calibration.dataset_split") from None


def choose(data: Dataset, field: str, num_samples: int, seed: int) -> list[dict[str, Any]]:
    """`num_samples` entries in an order that `seed` decides; empty texts are passed over. Raises Refusal."""
    if field not in data.column_names:
        raise Refusal(f"the dataset has no column {field!r}; it has {', '.join(data.column_names)}",
                      "set calibration.dataset_field")  # fmt: skip
    entries: list[dict[str, Any]] = []
    for row in data.shuffle(seed=seed):
        value = row[field]
        if value:
            entries.append({"text": value} if isinstance(value, str) else {"messages": value})
        if len(entries) == num_samples:
            return entries
    raise Refusal(f"the dataset has {len(entries)} texts; calibration.num_samples asks for {num_samples}",
                  "lower num_samples, or use another dataset or split")  # fmt: skip


if __name__ == "__main__":
    sys.exit(main(sys.argv, take, ["datasets"]))
