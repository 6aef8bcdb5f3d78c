"""What an inspection of a checkpoint found: data only, touches nothing."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from pydantic import Field

from qgate.schemas.base import Frozen, Stored


class Severity(StrEnum):
    """How grave a finding is."""

    ERROR = "error"
    """No engine can serve this rightly: it fails at the start, or answers from other weights than were meant."""
    WARNING = "warning"
    """It can be served, but something is lost, differs from the baseline, or fails in some engines."""
    NOTE = "note"
    """Worth knowing, and nothing to mend."""


class Finding(Frozen):
    """One thing that is wrong or worth knowing, with all the places where it is so."""

    severity: Severity
    code: str = Field(description="Stable name, listed in docs/inspect.md")
    places: tuple[str, ...] = Field(description="Tensors, layers, files or fields: the first few of `num_places`")
    num_places: int = Field(ge=1)
    detail: str = Field(description="What was found, and what was expected")
    breaks: str = Field(description="What it breaks")
    fix: str = Field(description="What to do about it")


class KernelUse(Frozen):
    """Layers that are alike, and the vLLM kernel for them on one kind of device."""

    device: str = Field(description="cpu, or a CUDA compute capability: sm80, sm89, sm90")
    kernel: str | None = Field(description="As vLLM names it; None where none can")
    is_padded: bool = Field(default=False, description="Whether the kernel pads the weights to its tile: slower")
    rows: int = Field(description="Output width of the layer on one device, fused with its siblings")
    columns: int = Field(description="Input width on one device")
    num_layers: int = Field(ge=1)
    refused: dict[str, str] = Field(default_factory=dict, description="Kernels before it in vLLM's order, and why not")


class LayerError(Frozen):
    """How far a layer's dequantized weights are from the baseline's."""

    module: str
    relative_error: float = Field(description="Frobenius norm of the difference over that of the baseline's weights")
    raw_relative_error: float = Field(
        description="The same before scales that a quantizer moved between layers (AWQ, SmoothQuant) are moved back"
    )
    rounding_error: float | None = Field(
        description="What rounding alone costs at the layer's scales (s²/12 a weight); None for floats"
    )
    cosine: float = Field(description="Cosine between both weights as vectors")
    scale_drift: float | None = Field(
        default=None,
        description="Median over the rows of how far the factor that would fit a row best is from 1; None in older files",
    )
    worst_rows: tuple[tuple[int, float], ...] = Field(description="Output channels with the largest relative error")


class Inspection(Stored):
    """Everything that an inspection of one checkpoint saw."""

    KIND: ClassVar[str] = "inspection"

    name: str = Field(description="The checkpoint directory's last part")
    precision: str | None = Field(description="As vLLM writes it; None where config.json does not let it be told")
    compared_with: str | None = Field(default=None, description="The baseline directory's last part")
    tensor_parallel_size: int = Field(default=1, ge=1)
    num_tensors: int = Field(ge=0)
    num_quantized_layers: int = Field(ge=0)
    weight_bytes: int = Field(ge=0)
    bits_per_weight: float | None = Field(
        default=None, description="Stored bits per parameter, embeddings and scales included; None without tensors"
    )
    quantized_bits_per_weight: float | None = Field(
        default=None, description="The same over the quantized layers alone; None where there are none"
    )
    nominal_bits: float | None = Field(default=None, description="What the scheme says; None for plain weights")
    checked: tuple[str, ...] = Field(description="What was looked at: headers, scales, tokenizer, config, weights")
    findings: tuple[Finding, ...] = Field(description="Gravest first")
    kernels: tuple[KernelUse, ...] = ()
    layers: tuple[LayerError, ...] = Field(default=(), description="Weight errors, largest first")

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Findings that speak against serving this checkpoint at all."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)
