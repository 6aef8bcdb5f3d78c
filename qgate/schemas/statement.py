"""evidence.intoto.json: which bytes were judged, by what, and what was said of them. Data only, touches nothing.

An in-toto Statement (https://in-toto.io/Statement/v1) whose subjects are every file of every judged checkpoint, named
`variant/file`, and whose predicate is qgate's own.
"""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, ConfigDict, Field, model_validator

from qgate.schemas.answers import EngineFacts
from qgate.schemas.base import Frozen
from qgate.schemas.checkpoint import FileRecord, digest_of
from qgate.schemas.recipe import Name
from qgate.schemas.verdict import Verdict

STATEMENT_TYPE: Final = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE: Final = "https://qgate.dev/verdict/v1"
"""Names the predicate's kind and version; another version is another URI."""


Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Digest(Frozen):
    """A hash by algorithm, as in-toto writes it."""

    sha256: Sha256


class Size(Frozen):
    """What is said of a subject beside its hash."""

    size_bytes: int = Field(ge=0)


class Subject(Frozen):
    """One file of a judged checkpoint."""

    name: str = Field(pattern=r"^[^/]+/.+$", description="`variant/file`")
    digest: Digest
    annotations: Size


class RecipeReference(Frozen):
    """The recipe of the run."""

    name: str
    sha256: Sha256


class JudgedSet(Frozen):
    """An evaluation set, or the part of it that was used."""

    sha256: Sha256 = Field(description="What `name@version` is locked to")
    num_items: int = Field(ge=1, description="Items that were used")
    num_items_in_set: int = Field(ge=1, description="Items that the set has")


class JudgedVariant(Frozen):
    """A checkpoint that was judged, and what served it meanwhile."""

    model_config = ConfigDict(allow_inf_nan=False)

    precision: str
    digest: Sha256 = Field(description="Content key over its files")
    path: str = Field(description="Where it lay on the machine that judged it")
    source: dict[str, str] = Field(default_factory=dict, description="Where it came from: hub id and commit, file hash")
    bits_per_weight: float
    engine: EngineFacts | None = Field(description="None where no answer came")
    mean_scores: dict[str, float | None] = Field(default_factory=dict, description="Mean score by evaluation set")
    defect_share: float | None = None


class SaidOfVariant(Frozen):
    """The verdict on a variant for a tier."""

    verdict: Verdict
    allowed: bool
    reason: str


class SaidOfTier(Frozen):
    """The verdict on a tier."""

    description: str = ""
    default: str
    fallback: str | None
    serve: str | None = Field(description="What it may serve; null: nothing")
    verdict: Verdict = Field(description="Of the default variant")
    reason: str
    variants: dict[str, SaidOfVariant]


class Judgement(Frozen):
    """The predicate: everything that a promotion depends on."""

    qgate_version: str
    run_id: str
    started_at: AwareDatetime
    finished_at: AwareDatetime
    recipe: RecipeReference
    evalsets: dict[str, JudgedSet] = Field(description="By `name@version`")
    engine: str = Field(description="Name of the engine that the answers came from")
    variants: dict[Name, JudgedVariant]
    tiers: dict[str, SaidOfTier]


class Statement(Frozen):
    """The whole of the evidence."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True, serialize_by_alias=True)

    type_: Literal["https://in-toto.io/Statement/v1"] = Field(default=STATEMENT_TYPE, alias="_type")
    subject: tuple[Subject, ...] = Field(min_length=1)
    predicate_type: Literal["https://qgate.dev/verdict/v1"] = Field(default=PREDICATE_TYPE, alias="predicateType")
    predicate: Judgement

    @model_validator(mode="after")
    def _agrees_with_itself(self) -> Self:
        """A file has one hash, and a variant's digest is that of its files."""
        names = Counter(subject.name for subject in self.subject)
        if twice := [name for name, times in names.items() if times > 1]:
            raise ValueError(f"the file {twice[0]} is there twice")
        for name, variant in self.predicate.variants.items():
            if variant.digest != digest_of(self.files(name)):
                raise ValueError(f"the digest of {name} is not that of its files")
        return self

    def files(self, variant: str) -> dict[str, FileRecord]:
        """The files of a variant's checkpoint, by path."""
        mine = [subject for subject in self.subject if subject.name.startswith(f"{variant}/")]
        return {
            subject.name.removeprefix(f"{variant}/"): FileRecord(
                sha256=subject.digest.sha256, size_bytes=subject.annotations.size_bytes
            )
            for subject in mine
        }
