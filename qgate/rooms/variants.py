"""The recipe's model and variants in, stored checkpoints out: each is made at most once. Touches the store and workers.

objects/checkpoints/<key>/model/…           what is served
objects/checkpoints/<key>/checkpoint.json   its hashes and how it was made
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from qgate.io import artefact, scripts
from qgate.io.files import sha256_file
from qgate.plan import dequantize_key, quantize_key
from qgate.ports import Archived, Tool, load_quantizer
from qgate.rooms.berths import quantizing
from qgate.rooms.obtain import GGUF_LOCK, GGUF_WORKER, dequantize, gguf_sha256, obtain_model, obtain_ready
from qgate.rooms.precheck import VariantJob, precheck
from qgate.rooms.prepare import Prepared
from qgate.rooms.quantize import quantize
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import BASELINE, GgufSource, Recipe, Variant

KIND = "checkpoints"
PRECISION_OF = {"float16": "FP16", "bfloat16": "BF16"}


def obtain_baseline(prepared: Prepared) -> Checkpoint:
    """The unquantized model as a hashed checkpoint. Raises CheckpointError, QuantizeError, StoreError."""
    recipe = prepared.loaded.recipe
    dtype = recipe.baseline.dtype
    if not isinstance(recipe.model, GgufSource):
        return obtain_model(recipe.model, BASELINE, precision=PRECISION_OF[dtype])
    source, tool = recipe.model, prepared.find_tool(GGUF_LOCK)

    def make(output: Path) -> Checkpoint:
        with prepared.bench.watcher.task(f"{BASELINE}: unpacking {source.gguf.name}", None):
            return dequantize(source, dtype, tool, output, prepared.folder / "work" / BASELINE)

    return _stored(prepared, BASELINE, baseline_key(prepared), make)


def baseline_key(prepared: Prepared) -> str:
    """Content key of a baseline that is unpacked from a GGUF file. Raises CheckpointError, EnvError."""
    source = prepared.loaded.recipe.model
    assert isinstance(source, GgufSource)
    tool = prepared.find_tool(GGUF_LOCK)
    return dequantize_key(
        gguf_sha256(source), prepared.loaded.recipe.baseline.dtype, tool.identity, scripts.sha256(GGUF_WORKER)
    )


def find_stored(prepared: Prepared, name: str, key: str) -> Checkpoint | None:
    """A checkpoint that was made before, or None."""
    folder = prepared.store.find(KIND, key)
    return None if folder is None else _load(folder, name)


def successions(recipe: Recipe) -> tuple[str, ...]:
    """What to tell of variants whose quantizer's package is archived: the successor, and what changes. A line each."""
    quantizers = {name: load_quantizer(v.quantizer) for name, v in recipe.variants.items() if v.quantizer is not None}
    return tuple(f"{name}: {found.succession}" for name, found in quantizers.items() if isinstance(found, Archived))


def precheck_variants(prepared: Prepared, baseline: Checkpoint) -> None:
    """Refuse every variant that cannot be made before any is. Raises CheckpointError, EnvError, StoreError."""
    for line in successions(prepared.loaded.recipe):
        prepared.bench.watcher.note(line)
    for name, variant in prepared.loaded.recipe.variants.items():
        if variant.quantizer is not None:
            precheck(job_of(prepared, name, baseline), prepared.store.root)


def obtain_variant(prepared: Prepared, name: str, baseline: Checkpoint) -> Checkpoint:
    """A ready checkpoint as it is, or the quantizer's. Raises CheckpointError, QuantizeError, EnvError, StoreError."""
    variant = prepared.loaded.recipe.variants[name]
    if variant.checkpoint is not None and not isinstance(variant.checkpoint, GgufSource):
        return obtain_ready(variant.checkpoint, name, variant.precision)
    job = job_of(prepared, name, baseline)

    def make(output: Path) -> Checkpoint:
        with quantizing(prepared.berths, name, baseline.weight_bytes):
            return quantize(job, output, prepared.folder / "work" / name, prepared.bench.watcher)

    return _stored(prepared, name, variant_key(variant, job), make)


def job_of(prepared: Prepared, name: str, baseline: Checkpoint) -> VariantJob:
    """What the quantizer of a variant is handed. Raises EnvError, PluginError."""
    recipe = prepared.loaded.recipe
    variant = recipe.variants[name]
    quantizer = load_quantizer(str(variant.quantizer))
    return VariantJob(
        name=name,
        quantizer=quantizer,
        options=prepared.loaded.quantizer_options[name],
        calibration=variant.calibration,
        baseline=baseline,
        dtype=recipe.baseline.dtype,
        tool=prepared.find_tool(variant.env or quantizer.lock),
    )


def variant_key(variant: Variant, job: VariantJob) -> str:
    """Content key of a quantized checkpoint."""
    files = {"worker": scripts.sha256(job.quantizer.worker)}
    if variant.calibration is not None and variant.calibration.file is not None:
        files["calibration"] = sha256_file(variant.calibration.file)
    options: dict[str, Any] = job.options.model_dump(mode="json")
    tool: Tool = job.tool
    return quantize_key(job.baseline.digest, variant, options, tool.identity, files)


def _stored(prepared: Prepared, name: str, key: str, make: Callable[[Path], Checkpoint]) -> Checkpoint:
    def fill(folder: Path) -> None:
        output = folder / "model"
        output.mkdir()
        artefact.save(folder / "checkpoint.json", make(output))

    def on_wait() -> None:
        prepared.bench.watcher.note(f"{name}: another run is making it; waiting for its result")

    return _load(prepared.store.obtain(KIND, key, fill, on_wait=on_wait), name)


def _load(folder: Path, name: str) -> Checkpoint:
    """The stored record, under this recipe's name and where it lies now."""
    found = artefact.load(folder / "checkpoint.json", Checkpoint)
    return found.model_copy(update={"path": (folder / "model").absolute(), "name": name})
