"""The weight files of a directory, whatever state they are in: the tensors that can be found, and the faults. Reads disk.

`io.tensors.read` refuses the first fault that it meets; this goes on, so that an inspection can tell all of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from qgate.errors import CheckpointError
from qgate.inspection.facts import ShardFault
from qgate.io.tensors import INDEX, PICKLES, Tensor, is_shard, layout, unnamed, weight_map

WHOLE = "model.safetensors"
"""What transformers loads wherever it is; vLLM loads the index's files where there is an index."""
Found = tuple[dict[str, Tensor], tuple[ShardFault, ...]]


def survey(folder: Path) -> Found:
    """Every tensor whose header can be read, by name, and what is wrong with the files."""
    faults: list[ShardFault] = []
    index: dict[str, str] | None = None
    if (folder / INDEX).is_file():
        try:
            index = weight_map(folder)
        except CheckpointError as error:
            faults.append(ShardFault("index-unreadable", INDEX, error.message.replace(str(folder / INDEX), INDEX)))
    files = _files(folder, index, faults)
    tensors: dict[str, Tensor] = {}
    for file in files:
        for tensor in _tensors(file, faults):
            if tensor.name in tensors:
                both = f"{tensors[tensor.name].file.name} and {file.name} have it"
                faults.append(ShardFault("tensor-twice", tensor.name, both))
            tensors[tensor.name] = tensor
    if files and not faults and not any(tensor.num_elements for tensor in tensors.values()):
        faults += [ShardFault("weights-missing", file.name, "it holds no tensor with a value") for file in files]
    if index is not None:
        faults += _index_faults(index, tensors, {fault.place for fault in faults})
    return tensors, tuple(faults)


def _files(folder: Path, index: dict[str, str] | None, faults: list[ShardFault]) -> list[Path]:
    """The files that belong to the model, and faults where they do not make a whole one."""
    if index is not None:
        wanted = sorted(set(index.values()))
        if not wanted:
            faults.append(ShardFault("weights-missing", INDEX, "it names no weight file"))
        gone = [name for name in wanted if not is_shard(folder, name)]
        faults += [
            ShardFault("shard-missing", name, f"{INDEX} names it, and there is no such file in the folder")
            for name in gone
        ]
        if WHOLE not in wanted and (folder / WHOLE).is_file():
            faults.append(ShardFault("weights-twice", WHOLE, f"{INDEX} stands beside it and names other files"))
        return [folder / name for name in wanted if name not in gone]
    found = unnamed(folder)
    pickles = [path.name for pattern in PICKLES for path in sorted(folder.glob(pattern))]
    if not found and pickles:
        faults += [ShardFault("weights-pickled", name, "the weights are there as pickles only") for name in pickles]
    elif not found:
        faults.append(ShardFault("weights-missing", "*.safetensors", "there is no such file"))
    elif len(found) > 1 and folder / WHOLE in found:
        rest = [path.name for path in found if path.name != WHOLE]
        faults += [ShardFault("weights-twice", name, f"transformers loads {WHOLE} alone, vLLM both") for name in rest]
    elif len(found) > 1:
        faults.append(ShardFault("index-missing", INDEX, f"there are {len(found)} weight files, and no index"))
    return found


def _tensors(file: Path, faults: list[ShardFault]) -> tuple[Tensor, ...]:
    try:
        found = layout(file)
    except CheckpointError as error:
        faults.append(ShardFault("shard-unreadable", file.name, error.message.replace(str(file), file.name)))
        return ()
    if found.end_bytes > found.size_bytes:
        detail = f"it has {found.size_bytes} bytes, its header needs {found.end_bytes}"
        faults.append(ShardFault("shard-truncated", file.name, detail))
    elif found.end_bytes < found.size_bytes:
        detail = f"it has {found.size_bytes} bytes, its header tells of {found.end_bytes}"
        faults.append(ShardFault("shard-unreadable", file.name, detail))
    return found.tensors


def _index_faults(index: dict[str, str], tensors: dict[str, Tensor], broken: set[str]) -> Iterator[ShardFault]:
    """Tensors that are not where the index says, as far as their files could be read."""
    by_file = defaultdict(list)
    for name, file in index.items():
        by_file[file].append(name)
    for file, names in by_file.items():
        for name in names if file not in broken else ():
            if name not in tensors:
                yield ShardFault("index-mismatch", name, f"the index names it in {file}, which does not have it")
            elif tensors[name].file.name != file and tensors[name].file.name not in broken:
                yield ShardFault("index-mismatch", name, f"the index names {file}, it is in {tensors[name].file.name}")
    for name, tensor in tensors.items():
        if name not in index:
            yield ShardFault("index-mismatch", name, f"it is in {tensor.file.name}, and the index does not name it")
