"""A checkpoint on disk: which bytes, how large, who made it. Data only, touches nothing."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from qgate.schemas.base import Frozen, Stored, content_key


class FileRecord(Frozen):
    """One file of a checkpoint."""

    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    size_bytes: int = Field(ge=0)


def digest_of(files: Mapping[str, FileRecord]) -> str:
    """Content key over file names and hashes."""
    return content_key({name: record.sha256 for name, record in files.items()})


class Making(Frozen):
    """How a checkpoint was made."""

    quantizer: str
    options: dict[str, Any]
    packages: dict[str, str] = Field(description="Versions that matter, e.g. {torch: 2.13.0, llmcompressor: 0.14.0.1}")
    wall_s: float = Field(ge=0)
    peak_memory_bytes: int = Field(ge=0)
    calibration: dict[str, Any] = Field(
        default_factory=dict, description="sha256, num_samples, num_tokens actually used"
    )
    details: dict[str, Any] = Field(default_factory=dict)


class Checkpoint(Stored):
    """A model directory in Hugging Face format, hashed file by file."""

    KIND: ClassVar[str] = "checkpoint"

    name: str = Field(description="`baseline` or the variant's name")
    path: Path = Field(
        description="Directory: absolute at work, in run.json below the results folder; not part of the digest"
    )
    precision: str = Field(description="As vLLM writes it: FP16, BF16, W8A8, W4A16, FP8")
    files: dict[str, FileRecord] = Field(min_length=1)
    num_parameters: int = Field(gt=0, description="Logical parameters, tied embeddings counted once")
    weight_bytes: int = Field(gt=0, description="Bytes of all safetensors payloads")
    making: Making | None = Field(default=None, description="None for a checkpoint that came from elsewhere")
    source: dict[str, str] = Field(default_factory=dict, description="Where it came from: hub id and commit, file hash")

    @property
    def digest(self) -> str:
        """Content key over file names and hashes: equal digests, equal bytes."""
        return digest_of(self.files)

    @property
    def bits_per_weight(self) -> float:
        """Stored bits per logical parameter, scales and zero points included."""
        return 8 * self.weight_bytes / self.num_parameters
