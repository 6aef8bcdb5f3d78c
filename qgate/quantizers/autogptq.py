"""Quantizer plugin `autogptq`: options in, the worker's request out. Touches nothing.

AutoGPTQ 0.7.1 (GPTQ, arXiv 2210.17323), the last release; it makes checkpoint format v1.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from qgate.ports import QuantizeJob, checked
from qgate.schemas.base import Frozen


class Options(Frozen):
    """What `options:` of a variant may say: fields of AutoGPTQ's BaseQuantizeConfig."""

    bits: Literal[2, 3, 4, 8] = Field(default=4, description="Bits of a weight")
    group_size: int = Field(default=128, ge=8, le=4096, description="Columns that share a scale and a zero point")
    sym: bool = Field(
        default=True,
        description="Symmetric; without, a group of positive weights has a zero point that v1 cannot store",
    )
    desc_act: bool = Field(
        default=False, description="Columns by falling activation: closer, slower to serve, and split badly by TP"
    )
    static_groups: bool = Field(default=False, description="Scales before the order is changed (with desc_act)")
    damp_percent: float = Field(
        default=0.01, gt=0, lt=1, description="Share of the Hessian's mean diagonal that is added to it"
    )
    true_sequential: bool = Field(default=True, description="Quantize within a layer in the order of its forward")


class AutoGptq:
    """The `autogptq` quantizer: satisfies `qgate.ports.Quantizer`, and `qgate.ports.Archived`."""

    name = "autogptq"
    options: type[BaseModel] = Options
    lock = "autogptq"
    worker = Path(__file__).parent.parent / "workers" / "autogptq_quantize.py"
    succession = (
        "AutoGPTQ is archived (0.7.1, March 2024) and knows no model since; its successor is `gptqmodel` with method "
        "gptq, which takes the same options but for other defaults: damp_percent 0.05, and act_group_aware, which orders "
        "columns within whole groups and costs nothing when served"
    )

    def precision(self, options: BaseModel) -> str:
        """W4A16, or another width."""
        return f"W{checked(options, Options).bits}A16"

    def needs_calibration(self, options: BaseModel) -> bool:
        """Always."""
        return True

    def group_size(self, options: BaseModel) -> int | None:
        """Columns that share a scale."""
        return checked(options, Options).group_size

    def ignored(self, options: BaseModel) -> tuple[str, ...]:
        """AutoGPTQ quantizes the linear layers of the decoder's layers, all of them."""
        return ("lm_head",)

    def request(self, job: QuantizeJob) -> dict[str, Any]:
        """request.json of the worker; see its docstring for the fields."""
        return job.request(quantization=checked(job.options, Options).model_dump())


QUANTIZER = AutoGptq()
