"""The recipe's model and variants in, stored checkpoints out: each is made at most once. Touches the store and workers."""

from __future__ import annotations

from pathlib import Path

from qgate.io import scripts
from qgate.io.files import sha256_file
from qgate.keys import quantize_key
from qgate.ports import Archived, Tool, load_quantizer
from qgate.rooms.berths import quantizing
from qgate.rooms.obtain import GGUF_LOCK, gguf_key, obtain_model, obtain_ready
from qgate.rooms.precheck import VariantJob, precheck
from qgate.rooms.prepare import Prepared
from qgate.rooms.quantize import quantize
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import BASELINE, Recipe
from qgate.schemas.variant import GgufSource, Variant

PRECISION_OF = {"float16": "FP16", "bfloat16": "BF16"}


def obtain_baseline(prepared: Prepared) -> Checkpoint:
    """The unquantized model as a hashed checkpoint. Raises CheckpointError, QuantizeError, StoreError."""
    recipe = prepared.loaded.recipe
    dtype = recipe.baseline.dtype
    if not isinstance(recipe.model, GgufSource):
        return obtain_model(recipe.model, BASELINE, precision=PRECISION_OF[dtype])
    tool, work = prepared.find_tool(GGUF_LOCK), prepared.folder / "work" / BASELINE
    return prepared.shelf.unpacked(BASELINE, recipe.model, dtype, tool, work)


def baseline_key(prepared: Prepared) -> str:
    """Content key of a baseline that is unpacked from a GGUF file. Raises CheckpointError, EnvError."""
    source = prepared.loaded.recipe.model
    assert isinstance(source, GgufSource)
    return gguf_key(source, prepared.loaded.recipe.baseline.dtype, prepared.find_tool(GGUF_LOCK))


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

    return prepared.shelf.obtain(name, variant_key(variant, job), make)


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
        tool=tool_of(prepared, variant),
    )


def tool_of(prepared: Prepared, variant: Variant) -> Tool:
    """The environment of a variant's quantizer. Raises EnvError, PluginError."""
    return prepared.find_tool(variant.env or load_quantizer(str(variant.quantizer)).lock)


def variant_key(variant: Variant, job: VariantJob) -> str:
    """Content key of a quantized checkpoint."""
    files = {"worker": scripts.sha256(job.quantizer.worker)}
    if variant.calibration is not None and variant.calibration.file is not None:
        files["calibration"] = sha256_file(variant.calibration.file)
    return quantize_key(job.baseline.digest, variant, job.options.model_dump(mode="json"), job.tool.identity, files)
