"""A model's source in, a hashed plain checkpoint out: a directory or hub snapshot where it lies, a GGUF file unpacked.

Touches the disk and the network; runs a worker for GGUF files. What is made is stored, at most once:

    objects/checkpoints/<key>/model/…           what is served
    objects/checkpoints/<key>/checkpoint.json   its hashes and how it was made
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from qgate.errors import CheckpointError
from qgate.io import artefact, checkpoint, hashes, hub, scripts
from qgate.io import precision as precisions
from qgate.io.store import Store
from qgate.keys import dequantize_key
from qgate.ports import Tool, Watcher
from qgate.rooms.working import work_off
from qgate.schemas.checkpoint import Checkpoint, Making
from qgate.schemas.variant import GgufSource, HubSource, LocalSource

KIND = "checkpoints"
GGUF_WORKER = Path(__file__).resolve().parent.parent / "workers" / "gguf_dequantize.py"
GGUF_LOCK = "llmcompressor"
"""Name of the default environment for unpacking GGUF files."""


@dataclass(frozen=True)
class Shelf:
    """The checkpoints of a store, and who is told what is made."""

    store: Store
    watcher: Watcher

    def find(self, name: str, key: str) -> Checkpoint | None:
        """One that was made before, or None."""
        folder = self.store.find(KIND, key)
        return None if folder is None else _load(folder, name)

    def obtain(self, name: str, key: str, make: Callable[[Path], Checkpoint]) -> Checkpoint:
        """The one of that key, made in an empty folder unless it is there. Raises StoreError and what `make` raises."""

        def fill(folder: Path) -> None:
            output = folder / "model"
            output.mkdir()
            artefact.save(folder / "checkpoint.json", make(output))

        def on_wait() -> None:
            self.watcher.note(f"{name}: another run is making it; waiting for its result")

        return _load(self.store.obtain(KIND, key, fill, on_wait=on_wait), name)

    def unpacked(self, name: str, source: GgufSource, dtype: str, tool: Tool, work: Path) -> Checkpoint:
        """What a GGUF file holds, weights in `dtype`. Raises CheckpointError, QuantizeError, StoreError."""

        def make(output: Path) -> Checkpoint:
            with self.watcher.task(f"{name}: unpacking {source.gguf.name}", None):
                return dequantize(source, dtype, tool, output, work)

        return self.obtain(name, gguf_key(source, dtype, tool), make)


def _load(folder: Path, name: str) -> Checkpoint:
    """The stored record, under this recipe's name and where it lies now."""
    found = artefact.load(folder / "checkpoint.json", Checkpoint)
    return found.model_copy(update={"path": (folder / "model").absolute(), "name": name})


def gguf_key(source: GgufSource, dtype: str, tool: Tool) -> str:
    """Content key of what a GGUF file is unpacked to. Raises CheckpointError."""
    return dequantize_key(gguf_sha256(source), dtype, tool.identity, scripts.sha256(GGUF_WORKER))


def obtain_model(source: HubSource | LocalSource, name: str, *, precision: str | None = None) -> Checkpoint:
    """The checkpoint of a hub repository or a directory, read where it lies. Raises CheckpointError."""
    if isinstance(source, LocalSource):
        return checkpoint.read(source.path, name, precision=precision, source={"path": str(source.path)})
    found = hub.snapshot(source.hub, source.revision)
    origin = {"hub": source.hub, "revision": source.revision, "commit": found.commit}
    return checkpoint.read(found.folder, name, precision=precision, source=origin)


def obtain_ready(source: HubSource | LocalSource, name: str, stated: str | None) -> Checkpoint:
    """A variant's ready checkpoint, under the precision that the recipe states for it, if any.

    Raises CheckpointError, also where config.json says that its weights have another width than stated: a tier that
    allows W8A8 would serve something else. Plain weights may stand for quantized ones, so there the recipe is believed.
    """
    found = obtain_model(source, name)
    if stated is None:
        return found
    is_quantized = precisions.quantization(checkpoint.read_config(found.path)) is not None
    widths = {precisions.weight_bits(stated), precisions.weight_bits(found.precision)}
    if is_quantized and None not in widths and len(widths) > 1:
        raise CheckpointError(
            f"the recipe calls {name} {stated}, but its config.json says {found.precision}",
            advice=f"leave `precision` out, or name the checkpoint that is {stated}",
        )
    return found.model_copy(update={"precision": stated})


def gguf_sha256(source: GgufSource) -> str:
    """The file's hash, part of the content key. Raises CheckpointError where it is missing or another file."""
    if not source.gguf.is_file():
        raise CheckpointError(f"no GGUF file at {source.gguf}", advice="paths are relative to the recipe")
    with source.gguf.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise CheckpointError(f"{source.gguf} is not a GGUF file", advice="copy or download it again")
    found = hashes.records([source.gguf])[source.gguf].sha256
    if source.sha256 is not None and found != source.sha256:
        raise CheckpointError(
            f"{source.gguf} is another file than the recipe's: sha256 {found}, not {source.sha256}",
            advice="fetch the file that the recipe means, or change `model.sha256`",
        )
    return found


def dequantize(source: GgufSource, dtype: str, tool: Tool, output: Path, work: Path) -> Checkpoint:
    """Unpack a GGUF file into the empty folder `output`, weights in `dtype`. Raises CheckpointError, QuantizeError."""
    sha256 = gguf_sha256(source)
    request = {"gguf": str(source.gguf), "output": str(output), "dtype": dtype}
    result = work_off(tool, GGUF_WORKER, request, work=work, what=f"unpacking {source.gguf.name}")
    making = Making(
        quantizer="gguf",
        options={"dtype": dtype},
        packages=result["packages"],
        wall_s=result["wall_s"],
        peak_memory_bytes=result["peak_memory_bytes"],
        details={key: result[key] for key in ("num_tensors", "quantization_types", "notes")},
    )
    return checkpoint.read(output, "baseline", making=making, source={"gguf": source.gguf.name, "sha256": sha256})
