"""A dataset of the Hugging Face hub in, its rows and its commit out. Runs a worker; touches the network through it."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from qgate.errors import EvalsetError, WorldError
from qgate.io import envs, proc, rows

WORKER = Path(__file__).resolve().parent.parent / "workers" / "dataset_rows.py"
LOCK = "lm-eval"
"""Name of the default environment: it has `datasets`."""


@dataclass(frozen=True)
class HubDataset:
    """A dataset on the hub, one split of it, pinned."""

    id: str
    revision: str
    split: str
    config: str | None = None
    env: str = LOCK


def fetch(dataset: HubDataset, columns: list[str]) -> tuple[list[rows.Row], str]:
    """These columns of every row, and the commit they are from. Raises EvalsetError, EnvError, WorldError."""
    tool = envs.resolve(dataset.env)
    with tempfile.TemporaryDirectory(prefix="qgate-dataset-") as name:
        work = Path(name)
        request = {
            "dataset": dataset.id,
            "config": dataset.config,
            "split": dataset.split,
            "revision": dataset.revision,
            "columns": columns,
            "output": str(work / "rows.jsonl"),
        }
        try:
            said = proc.run_worker(tool.python, WORKER, request, work=work, what=f"reading {dataset.id}")
        except proc.ProcessError:
            raise
        except WorldError as error:
            raise EvalsetError(error.message.splitlines()[0], advice=error.advice) from error
        return rows.read(work / "rows.jsonl", None), str(said["commit"])
