"""A recipe's checkpoints without a run: made side by side and stored where a run would find them, linked by name.

python -m tests.gpu.make_checkpoints RECIPE --results FOLDER --links FOLDER
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from qgate.io import recipe
from qgate.rooms.prepare import claim_folder, prepare
from qgate.rooms.variants import obtain_baseline, obtain_variant
from qgate.schemas.checkpoint import Checkpoint
from tests.gpu.serving import Notes


def link(folder: Path, made: Checkpoint) -> None:
    """FOLDER/NAME → where the checkpoint lies; made whole or not at all."""
    half = folder / f".{made.name}"
    half.unlink(missing_ok=True)
    half.symlink_to(made.path)
    half.replace(folder / made.name)


def main(argv: Sequence[str]) -> None:
    """Make and link them, the baseline first."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.make_checkpoints")
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--results", type=Path, required=True)
    parser.add_argument("--links", type=Path, required=True)
    given = parser.parse_args(argv)
    given.links.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    prepared = claim_folder(prepare(recipe.load(given.recipe), given.results, Notes()))

    def tell(made: Checkpoint) -> None:
        link(given.links, made)
        print(f"{made.name} ({made.precision}) after {time.monotonic() - began:.0f} s", flush=True)

    baseline = obtain_baseline(prepared)
    tell(baseline)
    names = list(prepared.loaded.recipe.variants)
    with ThreadPoolExecutor(len(names)) as pool:
        for made in pool.map(lambda name: obtain_variant(prepared, name, baseline), names):
            tell(made)


if __name__ == "__main__":
    main(sys.argv[1:])
