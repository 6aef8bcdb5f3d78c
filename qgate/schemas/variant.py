"""Where a checkpoint comes from, and what a variant is made of and by. Data only, touches nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Discriminator, Field, Tag, model_validator

from qgate.schemas.base import Frozen

EnvName = Annotated[
    str, Field(description="`current` (this Python), the name of a lock (`llmcompressor`), or a path to a python")
]


class HubSource(Frozen):
    """A repository on the Hugging Face hub, pinned to a commit."""

    hub: str = Field(
        description="Repository id, e.g. `HuggingFaceTB/SmolLM2-135M-Instruct`", pattern=r"^[^/\s]+/[^/\s]+$"
    )
    revision: str = Field(
        description="Commit hash, tag or branch; a branch is resolved to its commit once and recorded"
    )


class LocalSource(Frozen):
    """A directory in Hugging Face format (config.json, safetensors, tokenizer files)."""

    path: Path = Field(description="Directory, relative to the recipe")


class GgufSource(Frozen):
    """A GGUF file; its weights are dequantized to the baseline's dtype and saved as safetensors."""

    gguf: Path = Field(description="File, relative to the recipe")
    sha256: str | None = Field(
        default=None, pattern=r"^[0-9a-f]{64}$", description="Expected hash; another file is refused"
    )


def _source_kind(value: Any) -> str | None:
    """The one key that tells the sources apart."""
    keys = value if isinstance(value, dict) else getattr(type(value), "model_fields", {})
    kinds = [kind for kind in ("hub", "path", "gguf") if kind in keys]
    return kinds[0] if len(kinds) == 1 else None


Source = Annotated[
    Annotated[HubSource, Tag("hub")] | Annotated[LocalSource, Tag("path")] | Annotated[GgufSource, Tag("gguf")],
    Discriminator(
        _source_kind,
        custom_error_type="source",
        custom_error_message="give one of `hub` (with `revision`), `path`, `gguf`",
    ),
]


class Calibration(Frozen):
    """Texts that a quantizer is calibrated on; they must not come from the evaluation sets."""

    file: Path | None = Field(
        default=None,
        description="Text file: .jsonl with a `text` field or `messages`, or .txt with a text per blank-line paragraph",
    )
    dataset: str | None = Field(default=None, description="Hugging Face datasets id or local dataset path")
    dataset_split: str = Field(default="train", description="Split of `dataset`")
    dataset_field: str = Field(default="text", description="Column of `dataset` that holds the text or the messages")
    num_samples: int = Field(default=128, ge=1, le=100_000, description="Number of texts used")
    sequence_length: int = Field(default=512, ge=16, le=131_072, description="Tokens of each text used")
    seed: int = Field(default=0, ge=0, description="Seed of the choice of texts")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.file is None) == (self.dataset is None):
            raise ValueError("give exactly one of `file` and `dataset`")
        return self


class Variant(Frozen):
    """One quantized variant: made by a quantizer, or a ready checkpoint."""

    quantizer: str | None = Field(default=None, description="Name of a quantizer plugin, e.g. `llmcompressor`")
    options: dict[str, Any] = Field(
        default_factory=dict, description="The quantizer's own options (`qgate schema --quantizer NAME`)"
    )
    calibration: Calibration | None = Field(
        default=None, description="Calibration texts, where the algorithm needs them"
    )
    env: EnvName | None = Field(default=None, description="Environment of the quantizer; default: its own lock")
    checkpoint: Source | None = Field(default=None, description="A ready checkpoint instead of a quantizer")
    precision: str | None = Field(
        default=None,
        description="Precision as vLLM writes it (W8A8, W4A16); default: read from the quantizer or from config.json",
    )
    engine_args: dict[str, Any] = Field(default_factory=dict, description="Engine options that only this variant needs")

    @model_validator(mode="after")
    def _one_origin(self) -> Self:
        if (self.quantizer is None) == (self.checkpoint is None):
            raise ValueError("give exactly one of `quantizer` and `checkpoint`")
        if self.checkpoint is not None and (self.options or self.calibration):
            raise ValueError("`options` and `calibration` belong to a quantizer, not to a ready `checkpoint`")
        return self
