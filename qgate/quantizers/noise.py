"""Quantizer plugin `noise`: damage of a known size, planted to see whether the sets and criteria see it. Touches nothing.

It quantizes nothing. The variant is a positive control: seeded Gaussian noise on every linear weight, in units of the
standard deviation of the weight's row, so that one level means the same in every layer and model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from qgate.ports import QuantizeJob, checked
from qgate.schemas.base import Frozen


class Options(Frozen):
    """What `options:` of a variant may say."""

    level: float = Field(
        default=0.05, gt=0, le=10, description="Noise in standard deviations of a weight's row; 0.05 is hard to notice"
    )
    seed: int = Field(default=0, ge=0, description="Variants with one seed have the same noise, more or less of it")
    precision: Literal["FP16", "BF16"] = Field(
        default="FP16", description="The model's own precision, which stays as it is"
    )
    ignore: tuple[str, ...] = Field(
        default=("lm_head",), description="Modules left as they are, by name or `re:` pattern"
    )


class Noise:
    """The `noise` quantizer: satisfies `qgate.ports.Quantizer`."""

    name = "noise"
    options: type[BaseModel] = Options
    lock = "llmcompressor"
    worker = Path(__file__).parent.parent / "workers" / "noise_quantize.py"

    def precision(self, options: BaseModel) -> str:
        """The model's own."""
        return checked(options, Options).precision

    def needs_calibration(self, options: BaseModel) -> bool:
        """Noise needs no texts."""
        return False

    def group_size(self, options: BaseModel) -> int | None:
        """No scales, so no groups."""
        return None

    def ignored(self, options: BaseModel) -> tuple[str, ...]:
        """Names and `re:` patterns of modules left as they are."""
        return checked(options, Options).ignore

    def request(self, job: QuantizeJob) -> dict[str, Any]:
        """request.json of the worker; see its docstring for the fields."""
        chosen = checked(job.options, Options)
        return {
            "model": str(job.model),
            "output": str(job.output),
            "level": chosen.level,
            "seed": chosen.seed,
            "ignore": list(chosen.ignore),
        }


QUANTIZER = Noise()
