"""The folders of two runs in, what got worse from one to the other out. Reads the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from qgate.errors import ArtefactError, ExitCode, UserError
from qgate.io import artefact, recipe
from qgate.judge.releases import Change, compare
from qgate.reports import table
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import Recipe, Statistics
from qgate.schemas.run import Run

STATISTICS = Statistics(resamples=20_000)
"""Enough draws for the far quantiles that many comparisons at once need."""


@dataclass(frozen=True)
class Release:
    """A finished run with its answers."""

    run: Run
    recipe: Recipe
    rows: tuple[Row, ...]

    @cached_property
    def asked(self) -> set[tuple[str, str, str, str, int]]:
        """Every variant with what it was asked."""
        return {(row.variant, *row.pair) for row in self.rows if row.replicate == 0}


@dataclass(frozen=True)
class Comparison:
    """Two runs, and what changed from the earlier to the later."""

    earlier: Run
    later: Run
    changes: tuple[Change, ...]
    notes: tuple[str, ...]
    num_short: int
    """Variants and sets of the earlier run of which the later one has a part of the answers, or none."""

    @property
    def exit_code(self) -> ExitCode:
        """1 where something got worse for sure, 3 where a variant could not be compared on a whole set, else 0."""
        if any(change.is_worse for change in self.changes):
            return ExitCode.FAIL
        is_told = not self.num_short and not any(change.is_unknown for change in self.changes)
        return ExitCode.PASS if is_told else ExitCode.INCONCLUSIVE


def compare_releases(earlier: Path, later: Path) -> Comparison:
    """Compare two runs' folders. Raises UserError where they cannot be, ArtefactError."""
    before, after = _read(earlier), _read(later)
    _refuse_other_questions(before, after)
    changes = compare(before.rows, after.rows, STATISTICS)
    if not changes:
        raise UserError("the two runs have no variant with answers to the same requests", advice="run the same recipe")
    short = Counter((variant, evalset) for variant, evalset, *_ in before.asked - after.asked)
    return Comparison(before.run, after.run, changes, tuple(_notes(before, after, short)), len(short))


def _read(folder: Path) -> Release:
    try:
        rows = table.read(pq.read_table(folder / "answers.parquet"))
    except (OSError, pa.ArrowException) as error:
        raise ArtefactError(f"cannot read {folder / 'answers.parquet'}: {error}") from error
    return Release(artefact.load(folder / "run.json", Run), recipe.read(folder / "recipe.yaml"), rows)


def _refuse_other_questions(before: Release, after: Release) -> None:
    """Answers to other prompts, or sampled otherwise, say nothing of the checkpoint."""
    for name, sha256 in before.run.evalsets.items():
        if after.run.evalsets.get(name, sha256) != sha256:
            raise UserError(f"{name} is another set in the two runs", advice="compare runs on the same evaluation sets")
    versions = {name.partition("@")[0]: name for name in before.run.evalsets}
    for name in after.run.evalsets:
        if versions.get(name.partition("@")[0], name) != name:
            raise UserError(
                f"the runs are on {versions[name.partition('@')[0]]} and {name}", advice="run both on the same version"
            )
    for name, profile in before.recipe.sampling.items():
        other = after.recipe.sampling.get(name, profile)
        pairs = ((field, getattr(profile, field), getattr(other, field)) for field in type(profile).model_fields)
        differ = [f"{field} {one} and {two}" for field, one, two in pairs if one != two and field != "seeds"]
        if differ:  # what one run has of the seeds and the other lacks is counted further on
            told = ", ".join(differ)
            raise UserError(
                f"the sampling profile {name!r} differs in the two runs: {told}", advice="compare like with like"
            )


def _notes(before: Release, after: Release, short: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """What a reader must know of the comparison. `short`: how many answers the later run lacks, by variant and set."""
    names = [{row.variant for row in release.rows} for release in (before, after)]
    for gone in sorted(names[0] - names[1]):
        why = after.run.failures.get(gone, "it has no such variant")
        yield f"{gone} is only in {before.run.run_id}; in {after.run.run_id}: {why}"
    yield from (f"{new} is only in {after.run.run_id}" for new in sorted(names[1] - names[0]))
    num_asked = Counter((variant, evalset) for variant, evalset, *_ in before.asked)
    for (variant, evalset), num_lacking in sorted(short.items()):
        if variant in names[1]:
            num_there = num_asked[variant, evalset] - num_lacking
            has = f": {after.run.run_id} has no answer to the same requests"
            if num_there:
                has = f" whole: {after.run.run_id} has answers to {num_there} of {num_asked[variant, evalset]} requests"
            yield f"{variant} on {evalset} cannot be compared{has}"
    alone = {key for key in before.asked ^ after.asked if key[0] in names[0] & names[1]}
    if alone:
        yield f"{len(alone)} answers have no counterpart in the other run and are left out"
    for name in sorted(names[0] & names[1]):
        facts = [release.run.engine_facts.get(name) for release in (before, after)]
        said = [f"{each.engine} {each.version}, {each.device}" for each in facts if each is not None]
        if len(set(said)) > 1:
            yield f"{name} was served by {said[0]}, then by {said[1]}: a change may be the engine's"
