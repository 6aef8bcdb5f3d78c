"""How fast a checkpoint is inspected: `python tests/bench/bench_inspect.py [CHECKPOINT --baseline DIR]` prints seconds.

Without arguments, headers and scales of a made-up 1.5B model; with them, the whole weights of a real one, in megabytes
(of both checkpoints together) a second.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from qgate.rooms.inspect import inspect
from tests.unit.inspection.synthetic import write


def headers(folder: Path) -> None:
    """A 1.5B model's headers, scales and tokenizer."""
    found = inspect(write(folder / "model"))
    written, computed = time.perf_counter(), time.process_time()
    inspect(folder / "model")
    took, cpu = time.perf_counter() - written, time.process_time() - computed
    print(f"1.5B in 4 bits, {found.num_tensors} tensors: {took:.2f} s, {cpu:.2f} s of it computing")


def weights(checkpoint: Path, baseline: Path) -> None:
    """Every weight of a checkpoint beside its baseline's, the files in memory."""
    inspect(checkpoint, baseline, weights=True)
    size = sum(file.stat().st_size for folder in (checkpoint, baseline) for file in folder.glob("*.safetensors"))
    began, computed = time.perf_counter(), time.process_time()
    found = inspect(checkpoint, baseline, weights=True)
    wall, cpu = time.perf_counter() - began, time.process_time() - computed
    print(f"{len(found.layers)} layers, {size / 1e6:.0f} MB: {wall:.2f} s, {size / 1e6 / wall:.0f} MB/s")
    print(f"{cpu:.2f} s of computing: {size / 1e6 / cpu:.0f} MB/s a core")


def main() -> None:
    """Parse the arguments and run one of both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("checkpoint", type=Path, nargs="?")
    parser.add_argument("--baseline", type=Path)
    arguments = parser.parse_args()
    if arguments.checkpoint is not None:
        weights(arguments.checkpoint, arguments.baseline)
        return
    with tempfile.TemporaryDirectory() as folder:
        headers(Path(folder))


if __name__ == "__main__":
    main()
