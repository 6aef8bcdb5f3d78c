"""The candidate with something of the baseline's in it, or with plain weights, in; experiments out.

The original is never changed: a view links to it. Touches engines, the store and a worker.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from qgate.errors import QuantizeError
from qgate.io import checkpoint, envs
from qgate.io.files import disk_errors, sha256_file
from qgate.io.store import Store
from qgate.io.view import view
from qgate.judge import factors, file_swap
from qgate.judge.asks import Factor
from qgate.judge.experiments import refused
from qgate.rooms.isolate import RESTART
from qgate.rooms.lab import Lab
from qgate.rooms.sides import with_checkpoint
from qgate.rooms.working import work_off
from qgate.schemas.base import content_key
from qgate.schemas.checkpoint import Checkpoint

WORKER = Path(__file__).resolve().parent.parent / "workers" / "dequantize.py"
LOCK = "llmcompressor"
Swap = Callable[[file_swap.Files, file_swap.Files], dict[str, bytes | None]]
"""The candidate's and the baseline's small files in, what becomes of the candidate's out."""


def with_baselines_template(lab: Lab, folder: Path) -> None:
    """The candidate with the baseline's chat template and tokenizer."""
    change = "with the baseline's chat template and tokenizer"
    factor = Factor(factors.TEMPLATE, change, "template and tokenizer from all else", lab.asks["candidate"])
    _swapped(lab, factor, file_swap.with_template, folder)


def with_baselines_configuration(lab: Lab, folder: Path) -> None:
    """The candidate with the baseline's EOS tokens, config.json and generation_config.json."""
    change = "with the baseline's EOS tokens and configuration"
    factor = Factor(factors.CONFIGURATION, change, "EOS and configuration from all else", lab.asks["candidate"])
    _swapped(lab, factor, file_swap.with_configuration, folder)


def _swapped(lab: Lab, factor: Factor, swap: Swap, folder: Path) -> None:
    files = lab.sides.files
    with disk_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.mkdtemp(prefix=f"{factor.name}-", dir=folder))
    swapped = view(lab.sides.checkpoints["candidate"], swap(files["candidate"], files["baseline"]), place)
    lab.run(factor, with_checkpoint(lab.sides.candidate, swapped), RESTART)


def with_plain_weights(lab: Lab, store: Store, work: Path) -> None:
    """The candidate's weights dequantized, in the candidate's engine. Raises EnvError, StoreError."""
    original, setup = lab.sides.checkpoints["candidate"], lab.sides.candidate
    change = "with its weights dequantized"
    factor = Factor(factors.DEQUANTIZED, change, "quantized kernels from the weights", lab.asks["candidate"])
    dtype = setup.dtype if setup.dtype in {"float16", "bfloat16"} else "float32"
    try:
        plain = _dequantized(lab, original, dtype, store, work)
    except QuantizeError as error:
        lab.experiments.append(refused(factor, "candidate", error.message.splitlines()[0], cost=RESTART))
        return
    lab.run(factor, with_checkpoint(setup, plain), RESTART)


def _dequantized(lab: Lab, original: Checkpoint, dtype: str, store: Store, work: Path) -> Checkpoint:
    tool = envs.resolve(LOCK)
    key = content_key(
        {"dequantized": original.digest, "dtype": dtype, "tool": tool.identity, "worker": sha256_file(WORKER)}
    )

    def make(folder: Path) -> None:
        output = folder / "model"
        output.mkdir()
        request = {"checkpoint": str(original.path), "output": str(output), "dtype": dtype}
        with lab.replayer.watcher.task("candidate: dequantizing its weights", None):
            work_off(tool, WORKER, request, work=work, what="dequantizing the candidate")

    return checkpoint.read(store.obtain("dequantized", key, make) / "model", "candidate")
