"""A variant's job in, a quantized and hashed checkpoint out. Runs the quantizer's worker; touches the disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from qgate.errors import QuantizeError
from qgate.io import checkpoint
from qgate.io.files import sha256_file
from qgate.ports import Archived, QuantizeJob, Task, Watcher
from qgate.rooms import calibration
from qgate.rooms.precheck import VariantJob
from qgate.rooms.working import work_off
from qgate.schemas.checkpoint import Checkpoint, Making

DATASET_WORKER = Path(__file__).resolve().parent.parent / "workers" / "calibration_texts.py"
DEFAULT_SEQUENCE_LENGTH = 512
PERCENT = 100


def quantize(job: VariantJob, output: Path, work: Path, watcher: Watcher) -> Checkpoint:
    """Fill the empty folder `output`; request, calibration texts, log and progress go to `work`.

    Raises QuantizeError where the tool fails or makes another precision than its options say, CheckpointError where the
    calibration texts cannot be used.
    """
    work.mkdir(parents=True, exist_ok=True)
    texts = _texts(job, work)
    request = job.quantizer.request(
        QuantizeJob(
            model=job.baseline.path,
            output=output,
            options=job.options,
            dtype=job.dtype,
            calibration_file=texts,
            sequence_length=job.calibration.sequence_length if job.calibration else DEFAULT_SEQUENCE_LENGTH,
            seed=job.calibration.seed if job.calibration else 0,
            work=work,
        )
    )
    with watcher.task(f"{job.name}: quantizing", total=PERCENT) as task:
        result = work_off(
            job.tool,
            job.quantizer.worker,
            request,
            work=work,
            what=f"{job.name}: {job.quantizer.name}",
            on_wait=_follower(work / "progress.json", task),
        )
    return _finished(job, result, texts, output)


def _texts(job: VariantJob, work: Path) -> Path | None:
    """The calibration texts to use, as a file in `work`; None where the algorithm needs none."""
    chosen = job.calibration
    if chosen is None or not job.quantizer.needs_calibration(job.options):
        return None
    target = work / "calibration.jsonl"
    if chosen.file is not None:
        return calibration.choose(chosen, target)
    request = {
        "dataset": chosen.dataset,
        "split": chosen.dataset_split,
        "field": chosen.dataset_field,
        "num_samples": chosen.num_samples,
        "seed": chosen.seed,
        "output": str(target),
    }
    work_off(job.tool, DATASET_WORKER, request, work=work / "dataset", what=f"{job.name}: calibration texts")
    return target


def _follower(progress: Path, task: Task) -> Callable[[], None]:
    """Shows what the worker last wrote to progress.json ({step, done, total}; see the worker's docstring)."""
    shown = 0

    def follow() -> None:
        nonlocal shown
        try:
            said = json.loads(progress.read_text(encoding="utf-8"))
            now = PERCENT * said["done"] // said["total"]
        except (OSError, ValueError, KeyError, ZeroDivisionError):
            return
        task.detail(said["step"])
        task.advance(now - shown)
        shown = now

    return follow


def _finished(job: VariantJob, result: dict[str, Any], texts: Path | None, output: Path) -> Checkpoint:
    archived = [job.quantizer.succession] if isinstance(job.quantizer, Archived) else []
    used = {} if texts is None else {"sha256": sha256_file(texts), **result["calibration"]}
    making = Making(
        quantizer=job.quantizer.name,
        options=job.options.model_dump(mode="json"),
        packages=result["packages"],
        wall_s=result["wall_s"],
        peak_memory_bytes=result["peak_memory_bytes"],
        calibration=used,
        details={"notes": [*result.get("notes", []), *archived]},
    )
    made = checkpoint.read(output, job.name, making=making, source={"model": job.baseline.digest})
    wanted = job.quantizer.precision(job.options)
    if made.precision != wanted:
        raise QuantizeError(
            f"{job.name}: {job.quantizer.name} was asked for {wanted} and made {made.precision}",
            advice="check `ignore` and the scheme: config.json of the result says which layers were quantized",
        )
    return made
