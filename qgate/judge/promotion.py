"""A statement, the hashes of a checkpoint as it is now and what is demanded in; why not to promote it out. Touches nothing.

Everything that is missing, unknown or different is a reason against.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from qgate.schemas.checkpoint import FileRecord
from qgate.schemas.statement import Statement
from qgate.schemas.verdict import Verdict
from qgate.wording import counted

Files = Mapping[str, FileRecord]

TOKENIZER_WORDS = ("tokenizer", "vocab", "merges", "special_tokens", "added_tokens", "chat_template", "tiktoken")
CLOCK_SKEW = timedelta(minutes=5)
"""How far the clock of the machine that judged may be ahead of this one's."""


@dataclass(frozen=True)
class Demand:
    """What a checkpoint must have to be promoted."""

    tiers: tuple[str, ...]
    evalsets: tuple[str, ...] = ()
    """`name@version` each, used whole."""
    max_age: timedelta | None = None


@dataclass(frozen=True)
class Weighed:
    """The variant that a checkpoint is (or is nearest to), and every reason against its promotion."""

    variant: str | None
    refusals: tuple[str, ...]


@dataclass(frozen=True)
class Promotion:
    """A checkpoint whose bytes were judged and passed, as the statement says, for the tiers that it is promoted for."""

    checkpoint: Path
    variant: str
    tiers: tuple[str, ...]
    statement: Statement
    evidence_sha256: str
    signature: str
    """For a person: who signed the statement, or that nobody did."""

    def serves(self, tier: str) -> str | None:
        """The variant that an interface serves: the promoted one where it was named, else what the verdict says."""
        return self.variant if tier in self.tiers else self.statement.predicate.tiers[tier].serve


def weigh(statement: Statement, files: Files, demand: Demand, now: datetime) -> Weighed:
    """Whether `files` may be promoted. Of variants with the very same bytes, the one that more tiers speak for counts."""
    near = _nearest(statement, files)
    known = ", ".join(statement.predicate.variants)
    if not near:
        other = f"no file of this checkpoint is one that run {statement.predicate.run_id} judged ({known})"
        return Weighed(None, (f"{other}: it is another checkpoint's evidence", *_general(statement, demand, now)))
    against = {name: tuple(_tiers(statement, name, demand.tiers)) for name in near}
    variant = min(near, key=lambda name: len(against[name]))
    changed = _bytes(variant, statement.files(variant), files)
    return Weighed(variant, (*changed, *against[variant], *_general(statement, demand, now)))


def _nearest(statement: Statement, files: Files) -> list[str]:
    """The variants that share most files with the checkpoint, byte for byte, then by name; none where no byte is shared."""
    shared: dict[str, tuple[int, int, int]] = {}
    for variant in statement.predicate.variants:
        judged = statement.files(variant)
        same = sum(files.get(name) == record for name, record in judged.items())
        if same:
            shared[variant] = (same, len(judged.keys() & files.keys()), -len(judged.keys() ^ files.keys()))
    best = max(shared.values(), default=None)
    return [variant for variant, score in shared.items() if score == best]


def _bytes(variant: str, judged: Files, files: Files) -> Iterator[str]:
    for name in sorted(judged.keys() | files.keys()):
        if name not in files:
            yield f"{name} is missing: {variant} was judged with it"
        elif name not in judged:
            yield f"{name} was added: {variant} was judged without it"
        elif judged[name] != files[name]:
            yield _difference(name, judged[name], files[name])


def _difference(name: str, judged: FileRecord, found: FileRecord) -> str:
    if found.size_bytes < judged.size_bytes and name.endswith((".safetensors", ".bin", ".gguf")):
        return f"{name} is truncated: {found.size_bytes:,} of {judged.size_bytes:,} bytes"
    hashes = f"sha256 {found.sha256[:12]}…, judged was {judged.sha256[:12]}…"
    if any(word in name for word in TOKENIZER_WORDS):
        return f"{name} was swapped: it is not the tokenizer file that was judged ({hashes})"
    return f"{name} was changed ({hashes})"


def _tiers(statement: Statement, variant: str, tiers: tuple[str, ...]) -> Iterator[str]:
    said = statement.predicate.tiers
    for name in tiers:
        if name not in said:
            yield f"the evidence does not speak of the tier {name!a}, only of {', '.join(said)}"
            continue
        mine = said[name].variants.get(variant)
        if mine is None:
            yield f"the tier {name!r} says nothing of {variant}"
        elif not mine.allowed:
            yield f"the tier {name!r} does not allow {variant}: {mine.reason}"
        elif mine.verdict is not Verdict.PASS:
            yield f"{variant} did not pass for the tier {name!r}: {mine.verdict.value}, {mine.reason}"


def _general(statement: Statement, demand: Demand, now: datetime) -> Iterator[str]:
    if not demand.tiers:
        yield "no tier was named, so there is nothing that the checkpoint may be promoted for"
    age = now - statement.predicate.finished_at
    if age < -CLOCK_SKEW:
        yield f"the evidence is dated in the future ({statement.predicate.finished_at:%Y-%m-%d %H:%M %Z})"
    if demand.max_age is not None and age > demand.max_age:
        yield f"the evidence is too old: {span(age)}, and at most {span(demand.max_age)} is accepted"
    for wanted in demand.evalsets:
        used = statement.predicate.evalsets.get(wanted)
        if used is None:
            known = ", ".join(statement.predicate.evalsets)
            yield f"the evidence does not rest on the evaluation set {wanted}, only on {known}"
        elif used.num_items < used.num_items_in_set:
            yield f"the evidence rests on {used.num_items} of the {used.num_items_in_set} items of {wanted} only"


def span(time: timedelta) -> str:
    """`45 days`, `7 hours` where it is less than two days, `12.5 minutes` where it is less than an hour, `8 seconds`."""
    if time >= timedelta(days=2):
        return f"{time.days} days"
    seconds = time.total_seconds()
    for unit, size in (("hour", 3600), ("minute", 60)):
        if seconds >= size:
            number = f"{seconds / size:.3g}"
            return f"{number} {unit}" if number == "1" else f"{number} {unit}s"
    return counted(round(seconds), "second")
