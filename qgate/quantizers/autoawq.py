"""Quantizer plugin `autoawq`: options in, the worker's request out. Touches nothing.

AutoAWQ 0.2.9 (AWQ, arXiv 2306.00978), the last release; it makes the format that is known as AWQ GEMM.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from qgate.ports import QuantizeJob, checked
from qgate.schemas.base import Frozen


class Options(Frozen):
    """What `options:` of a variant may say, in AutoAWQ's own words where it has some."""

    w_bit: Literal[4] = Field(default=4, description="Bits of a weight; AWQ GEMM has no other width")
    q_group_size: int = Field(default=128, ge=8, le=4096, description="Columns that share a scale and a zero point")
    zero_point: Literal[True] = Field(
        default=True, description="Zero points: AutoAWQ's GEMM cannot be packed without them"
    )
    version: Literal["GEMM"] = Field(
        default="GEMM", description="Layout; GEMM is what vLLM and transformers read, whatever kernel then runs it"
    )
    duo_scaling: bool = Field(default=True, description="Scales from activations and weights, or activations only")
    apply_clip: bool = Field(default=True, description="Search for clipping limits too: as long again, and closer")
    modules_to_not_convert: tuple[str, ...] = Field(
        default=(), description="Parts of module names that are left as they are (`down_proj`); lm_head always is"
    )


class AutoAwq:
    """The `autoawq` quantizer: satisfies `qgate.ports.Quantizer`, and `qgate.ports.Archived`."""

    name = "autoawq"
    options: type[BaseModel] = Options
    lock = "autoawq"
    worker = Path(__file__).parent.parent / "workers" / "autoawq_quantize.py"
    succession = (
        "AutoAWQ is archived (0.2.9, May 2025) and knows no model since; its successor is `gptqmodel` with method awq, "
        "which makes the same AWQ GEMM format: w_bit becomes bits, q_group_size group_size, zero_point sym: false"
    )

    def precision(self, options: BaseModel) -> str:
        """W4A16."""
        return f"W{checked(options, Options).w_bit}A16"

    def needs_calibration(self, options: BaseModel) -> bool:
        """Always."""
        return True

    def group_size(self, options: BaseModel) -> int | None:
        """Columns that share a scale."""
        return checked(options, Options).q_group_size

    def ignored(self, options: BaseModel) -> tuple[str, ...]:
        """`re:` patterns of modules left unquantized: AutoAWQ looks for a part of the name."""
        kept = checked(options, Options).modules_to_not_convert
        return ("lm_head", *(f"re:.*{re.escape(part)}" for part in kept))

    def request(self, job: QuantizeJob) -> dict[str, Any]:
        """request.json of the worker; see its docstring for the fields."""
        chosen = checked(job.options, Options)
        return job.request(
            quantization=chosen.model_dump(include={"w_bit", "q_group_size", "zero_point", "version"}),
            keep=["lm_head", *chosen.modules_to_not_convert],
            duo_scaling=chosen.duo_scaling,
            clip=chosen.apply_clip,
        )


QUANTIZER = AutoAwq()
