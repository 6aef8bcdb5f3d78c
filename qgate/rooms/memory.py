"""A prepared recipe and its baseline in, what each server will take of a GPU out: before anything is started.

Reads config.json and safetensors headers. A variant that is still to be made is told from the baseline's headers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qgate.errors import CheckpointError
from qgate.io import checkpoint, hub, tensors
from qgate.ports import Sized
from qgate.rooms.precheck import VariantJob, packed_layers, quantized_layers
from qgate.rooms.prepare import Prepared
from qgate.rooms.variants import job_of
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import BASELINE
from qgate.schemas.variant import HubSource, LocalSource
from qgate.sizing.ledger import Ledger
from qgate.sizing.model import Model, group_size_of, stored
from qgate.sizing.placement import Device
from qgate.sizing.split import faults, fitting

Server = tuple[str, int]
"""A variant and how many requests it is asked at a time."""


def models(prepared: Prepared, baseline: Checkpoint) -> dict[str, Model]:
    """Baseline and variants as far as their size goes. Raises CheckpointError, EnvError, PluginError."""
    plain = stored(checkpoint.read_config(baseline.path), tensors.read(baseline.path))
    found = {BASELINE: plain}
    for name, variant in prepared.loaded.recipe.variants.items():
        source = variant.checkpoint
        if isinstance(source, HubSource | LocalSource):
            found[name] = _ready(_folder(source), plain)
        else:
            found[name] = _to_make(plain, job_of(prepared, name, baseline))
    return found


def _folder(source: HubSource | LocalSource) -> Path:
    return source.path if isinstance(source, LocalSource) else hub.snapshot(source.hub, source.revision).folder


def _ready(folder: Path, baseline: Model) -> Model:
    config = checkpoint.read_config(folder)
    return Model(config, tensors.read(folder), baseline.shapes, group_size_of(config))


def _to_make(baseline: Model, job: VariantJob) -> Model:
    made = packed_layers(job, quantized_layers(tensors.read(job.baseline.path), job.quantizer.ignored(job.options)))
    group = job.quantizer.group_size(job.options)
    return replace(baseline, tensors={**baseline.tensors, **made}, group_size=group, is_estimate=True)


def check_split(prepared: Prepared, found: Mapping[str, Model]) -> None:
    """Refuse tensor and pipeline parallelism that cannot work. Raises CheckpointError with the arithmetic."""
    assert isinstance(prepared.engine, Sized)
    for name, model in found.items():
        tensor_parallel, pipeline_parallel = prepared.engine.split(prepared.options(name))
        try:
            why, sizes = faults(model, tensor_parallel, pipeline_parallel), fitting(model)
        except KeyError as error:
            said = f"{name} cannot be split: {error.args[0]}"
            raise CheckpointError(said, advice="add it as the authors published it, or serve on one GPU") from error
        if why:
            fits = ", ".join(map(str, sizes))
            raise CheckpointError(f"{name}: {'; '.join(why)}", advice=f"tensor_parallel_size may be {fits}")


def is_split(prepared: Prepared) -> bool:
    """Whether any server takes several GPUs."""
    engine, names = prepared.engine, (BASELINE, *prepared.loaded.recipe.variants)
    return isinstance(engine, Sized) and any(engine.split(prepared.options(name)) != (1, 1) for name in names)


def servers(prepared: Prepared) -> tuple[Server, ...]:
    """Every server of a run: the baseline's first, and a second one where the A/A runs have a load of their own."""
    recipe = prepared.loaded.recipe
    load, other = recipe.engine.concurrency, recipe.noise_floor.concurrency
    again = [(BASELINE, other)] if other is not None and recipe.noise_floor.replicates else []
    return ((BASELINE, load), *again, *((name, load) for name in recipe.variants))


def ledgers(prepared: Prepared, found: Mapping[str, Model], device: Device | None) -> dict[Server, Ledger]:
    """The ledger of each server, on GPUs like `device`. Raises CheckpointError."""
    engine = prepared.engine
    assert isinstance(engine, Sized)
    return {
        (name, load): engine.size(prepared.job(name, Path(), load), found[name], device)
        for name, load in servers(prepared)
    }


def keep_baseline(prepared: Prepared, baseline: Checkpoint) -> bool:
    """Keep room for the baseline's servers through the run; False where no variant fits beside them."""
    berths = prepared.berths
    if berths is None:
        return False
    needs = {
        (name, load): made.need(prepared.berth_name(name, load))
        for (name, load), made in ledgers(prepared, models(prepared, baseline), berths.devices[0]).items()
    }
    lasting = [need for (name, _), need in needs.items() if name == BASELINE]
    return berths.keep(lasting, [need for (name, _), need in needs.items() if name != BASELINE])
