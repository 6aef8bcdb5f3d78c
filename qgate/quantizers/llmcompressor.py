"""Quantizer plugin `llmcompressor`: options in, the worker's request out. Touches nothing.

Algorithms: `rtn` (round to nearest, no texts), `gptq` (arXiv 2210.17323), `awq` (arXiv 2306.00978) and
`smoothquant_gptq` (SmoothQuant, arXiv 2211.10438, before GPTQ). Schemes are named as in compressed-tensors.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from qgate.ports import QuantizeJob, checked
from qgate.schemas.base import Frozen

Scheme = Literal["W8A8", "W4A16", "W4A16_ASYM", "W8A16", "FP8_DYNAMIC"]
Algorithm = Literal["rtn", "gptq", "awq", "smoothquant_gptq"]

GROUPED: frozenset[str] = frozenset({"W4A16", "W4A16_ASYM", "W8A16"})
SCHEMES_OF: dict[str, frozenset[str]] = {
    "rtn": frozenset({"W8A8", "W4A16", "W4A16_ASYM", "W8A16", "FP8_DYNAMIC"}),
    "gptq": frozenset({"W8A8", "W4A16", "W4A16_ASYM", "W8A16"}),
    "awq": GROUPED,
    "smoothquant_gptq": frozenset({"W8A8"}),
}
GPTQ_ONLY = ("dampening_frac", "actorder", "block_size")
ALGORITHMS_OF: dict[str, frozenset[str]] = {
    "smoothing_strength": frozenset({"smoothquant_gptq"}),
    "n_grid": frozenset({"awq"}),
    "duo_scaling": frozenset({"awq"}),
    **dict.fromkeys(GPTQ_ONLY, frozenset({"gptq", "smoothquant_gptq"})),
}


class Options(Frozen):
    """What `options:` of a variant may say. An option that the algorithm would not read is an error."""

    scheme: Scheme = Field(description="Precision; W8A8 is INT8 with dynamic per-token activations")
    algorithm: Algorithm = Field(description="How the weights are chosen")
    group_size: int = Field(default=128, ge=8, le=4096, description="Columns that share a scale (W4A16*, W8A16)")
    ignore: tuple[str, ...] = Field(
        default=("lm_head",), description="Modules left as they are, by name or `re:` pattern"
    )
    smoothing_strength: float = Field(
        default=0.8, ge=0, le=1, description="smoothquant_gptq: how much of the activations' range weights take over"
    )
    dampening_frac: float = Field(
        default=0.01, gt=0, lt=1, description="gptq: share of the Hessian's mean diagonal added to it"
    )
    actorder: Literal["static", "group"] | None = Field(
        default="static", description="gptq: order of columns by activation; `static` costs nothing when served"
    )
    block_size: int = Field(default=128, ge=8, le=4096, description="gptq: columns solved in one pass")
    n_grid: int = Field(default=20, ge=4, le=100, description="awq: grid points; time is samples × tokens × points")
    duo_scaling: Literal["both"] | bool = Field(
        default=True,
        description="awq: scales from activations and weights (true), activations only, or the best of both",
    )

    @model_validator(mode="after")
    def _fields_fit(self) -> Self:
        allowed = SCHEMES_OF[self.algorithm]
        if self.scheme not in allowed:
            raise ValueError(f"{self.algorithm} does not make {self.scheme}; it makes {', '.join(sorted(allowed))}")
        for name in sorted(self.model_fields_set & ALGORITHMS_OF.keys()):
            if self.algorithm not in ALGORITHMS_OF[name]:
                owners = " and ".join(sorted(ALGORITHMS_OF[name]))
                raise ValueError(f"`{name}` belongs to {owners}, not to {self.algorithm}")
        if "group_size" in self.model_fields_set and self.scheme not in GROUPED:
            raise ValueError(f"{self.scheme} has a scale per output channel: leave `group_size` out")
        return self


def _weights(options: Options) -> dict[str, Any]:
    """The scheme's weight arguments, as compressed_tensors.quantization.QuantizationArgs takes them."""
    kind = "float" if options.scheme == "FP8_DYNAMIC" else "int"
    bits = 4 if options.scheme.startswith("W4") else 8
    weights = {"num_bits": bits, "type": kind, "symmetric": options.scheme != "W4A16_ASYM", "dynamic": False}
    if options.scheme in GROUPED:
        return weights | {"strategy": "group", "group_size": options.group_size}
    return weights | {"strategy": "channel"}


def _quantization(options: Options) -> dict[str, Any]:
    """Arguments that every quantizing modifier takes: which layers, which scheme."""
    group: dict[str, Any] = {"targets": ["Linear"], "weights": _weights(options)}
    if options.scheme in {"W8A8", "FP8_DYNAMIC"}:
        kind = "int" if options.scheme == "W8A8" else "float"
        group["input_activations"] = {
            "num_bits": 8, "type": kind, "strategy": "token", "symmetric": True, "dynamic": True,
        }  # fmt: skip
    return {"config_groups": {"group_0": group}, "ignore": list(options.ignore)}


def _modifiers(options: Options) -> list[dict[str, Any]]:
    """llm-compressor's modifiers in order: class names of its public modules and their arguments."""
    quantization = _quantization(options)
    gptq = quantization | {name: getattr(options, name) for name in GPTQ_ONLY}
    match options.algorithm:
        case "rtn":
            return [{"name": "QuantizationModifier", "args": quantization}]
        case "gptq":
            return [{"name": "GPTQModifier", "args": gptq}]
        case "awq":
            awq = {"n_grid": options.n_grid, "duo_scaling": options.duo_scaling}
            return [{"name": "AWQModifier", "args": awq}, {"name": "QuantizationModifier", "args": quantization}]
        case "smoothquant_gptq":
            smooth = {"smoothing_strength": options.smoothing_strength}
            return [{"name": "SmoothQuantModifier", "args": smooth}, {"name": "GPTQModifier", "args": gptq}]


class LlmCompressor:
    """The `llmcompressor` quantizer: satisfies `qgate.ports.Quantizer`."""

    name = "llmcompressor"
    options: type[BaseModel] = Options
    lock = "llmcompressor"
    worker = Path(__file__).parent.parent / "workers" / "llmcompressor_quantize.py"

    def precision(self, options: BaseModel) -> str:
        """W8A8, W4A16, W8A16 or FP8."""
        scheme = checked(options, Options).scheme
        return {"W4A16_ASYM": "W4A16", "FP8_DYNAMIC": "FP8"}.get(scheme, scheme)

    def needs_calibration(self, options: BaseModel) -> bool:
        """All but round-to-nearest."""
        return checked(options, Options).algorithm != "rtn"

    def group_size(self, options: BaseModel) -> int | None:
        """Columns that share a scale; None where a whole output channel does."""
        chosen = checked(options, Options)
        return chosen.group_size if chosen.scheme in GROUPED else None

    def ignored(self, options: BaseModel) -> tuple[str, ...]:
        """Names and `re:` patterns of modules left unquantized."""
        return checked(options, Options).ignore

    def request(self, job: QuantizeJob) -> dict[str, Any]:
        """request.json of the worker; see its docstring for the fields."""
        return job.request(modifiers=_modifiers(checked(job.options, Options)))


QUANTIZER = LlmCompressor()
