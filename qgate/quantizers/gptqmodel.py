"""Quantizer plugin `gptqmodel`: options in, the worker's request out. Touches nothing.

GPTQModel, the maintained successor of AutoGPTQ and AutoAWQ: GPTQ (arXiv 2210.17323) in checkpoint format v1 or v2, and
AWQ (arXiv 2306.00978) as AWQ GEMM.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, Field, model_validator

from qgate.ports import QuantizeJob, checked
from qgate.schemas.base import Frozen

GPTQ_ONLY = ("desc_act", "act_group_aware", "static_groups", "damp_percent", "mse", "format")


class Options(Frozen):
    """What `options:` of a variant may say. An option that the method would not read is an error."""

    method: Literal["gptq", "awq"] = Field(description="How the weights are chosen, and the format they are stored in")
    bits: Literal[2, 3, 4, 8] = Field(default=4, description="Bits of a weight; awq has 4 only")
    group_size: int = Field(default=128, ge=8, le=4096, description="Columns that share a scale and a zero point")
    sym: bool | None = Field(
        default=None, description="Symmetric, without zero points of its own: gptq unless said otherwise, awq never"
    )
    format: Literal["gptq", "gptq_v2"] = Field(
        default="gptq",
        description="gptq: v2 stores zero points as they are, which `sym: false` may need; fewer read it",
    )
    desc_act: bool = Field(
        default=False, description="gptq: columns by falling activation: slower to serve, and split badly by TP"
    )
    act_group_aware: bool = Field(
        default=True, description="gptq: the order of desc_act within whole groups, which costs nothing when served"
    )
    static_groups: bool = Field(default=False, description="gptq: scales before the order is changed")
    damp_percent: float = Field(
        default=0.05, gt=0, lt=1, description="gptq: share of the Hessian's mean diagonal that is added to it"
    )
    mse: float = Field(
        default=0.0, ge=0, description="gptq: exponent of a search for tighter scales; 0 is off, 2.4 usual"
    )
    true_sequential: bool = Field(default=True, description="Quantize within a layer in the order of its forward")
    ignore: tuple[str, ...] = Field(
        default=(), description="Modules left as they are, by name or `re:` pattern; lm_head always is"
    )

    @model_validator(mode="after")
    def _fields_fit(self) -> Self:
        if self.method == "awq":
            for name in sorted(self.model_fields_set & set(GPTQ_ONLY)):
                raise ValueError(f"`{name}` belongs to gptq, not to awq")
            if self.bits != 4 or self.sym:
                raise ValueError("awq has 4 bits and zero points: leave `bits` and `sym` out")
        elif self.desc_act and self.act_group_aware and "act_group_aware" in self.model_fields_set:
            raise ValueError("`desc_act` and `act_group_aware` order the columns in two ways: choose one")
        return self

    @property
    def is_symmetric(self) -> bool:
        """`sym`, or the method's default."""
        return self.method == "gptq" if self.sym is None else self.sym


def _quantization(options: Options) -> dict[str, Any]:
    """Arguments of GPTQModel's GPTQConfig or AWQConfig."""
    common = {
        "bits": options.bits,
        "group_size": options.group_size,
        "sym": options.is_symmetric,
        "true_sequential": options.true_sequential,
    }
    if options.method == "awq":
        return common
    own = options.model_dump(include={"format", "desc_act", "static_groups", "damp_percent", "mse"})
    return common | own | {"act_group_aware": options.act_group_aware and not options.desc_act}


class GptqModel:
    """The `gptqmodel` quantizer: satisfies `qgate.ports.Quantizer`."""

    name = "gptqmodel"
    options: type[BaseModel] = Options
    lock = "gptqmodel"
    worker = Path(__file__).parent.parent / "workers" / "gptqmodel_quantize.py"

    def precision(self, options: BaseModel) -> str:
        """W4A16, or another width."""
        return f"W{checked(options, Options).bits}A16"

    def needs_calibration(self, options: BaseModel) -> bool:
        """Both methods do."""
        return True

    def group_size(self, options: BaseModel) -> int | None:
        """Columns that share a scale."""
        return checked(options, Options).group_size

    def ignored(self, options: BaseModel) -> tuple[str, ...]:
        """Names and `re:` patterns of modules left unquantized."""
        return ("lm_head", *checked(options, Options).ignore)

    def request(self, job: QuantizeJob) -> dict[str, Any]:
        """request.json of the worker; see its docstring for the fields."""
        chosen = checked(job.options, Options)
        return job.request(
            method=chosen.method,
            quantization=_quantization(chosen),
            skip=[_pattern(name) for name in chosen.ignore],
        )


def _pattern(name: str) -> str:
    """A name or `re:` pattern as the regular expression that GPTQModel matches from a name's start."""
    return name.removeprefix("re:") if name.startswith("re:") else f"{re.escape(name)}$"


QUANTIZER = GptqModel()
