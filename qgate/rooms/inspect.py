"""A checkpoint directory in, its Inspection out, with the baseline's beside it where there is one. Reads the disk."""

from __future__ import annotations

from pathlib import Path

from qgate.errors import CheckpointError
from qgate.inspection import parallel
from qgate.inspection.examine import Found, examine, in_order
from qgate.inspection.layers import quantized_layers
from qgate.inspection.membership import is_usable
from qgate.inspection.scheme import promise
from qgate.inspection.size import measure
from qgate.io import precision as precisions
from qgate.io import survey
from qgate.io.survey import Survey
from qgate.rooms.weigh import weigh
from qgate.schemas.inspection import Finding, Inspection


def inspect(
    checkpoint: Path, baseline: Path | None = None, *, tensor_parallel_size: int = 1, weights: bool = False
) -> Inspection:
    """Look at a checkpoint's headers, settings and scales; with `weights`, at every weight beside the baseline's.

    Raises CheckpointError where one of both is no checkpoint directory; all else that is wrong with it is a finding.
    """
    mine = survey.survey(checkpoint)
    theirs = survey.survey(baseline) if baseline is not None else None
    found = examine(mine.facts, theirs.facts if theirs is not None else None, tensor_parallel_size)
    seen = _inspection(checkpoint, baseline, mine, found, tensor_parallel_size)
    if not weights or theirs is None or seen.errors:
        return seen
    weighed = weigh(mine, theirs, found.layers)
    findings = in_order([*found.findings, *weighed.findings])
    checked = (*seen.checked, "weights")
    return seen.model_copy(update={"findings": findings, "layers": weighed.errors, "checked": checked})


def tensor_parallel(checkpoint: Path, tensor_parallel_size: int) -> tuple[Finding, ...]:
    """What breaks where the checkpoint is split over so many devices. Raises CheckpointError."""
    facts = survey.survey(checkpoint).facts
    promised = promise(facts.config)
    layers = quantized_layers(facts, promised) if is_usable(promised) else ()
    return parallel.check(layers, tensor_parallel_size)


def _inspection(
    checkpoint: Path, baseline: Path | None, mine: Survey, found: Found, tensor_parallel_size: int
) -> Inspection:
    size = measure(mine.facts, found.layers)
    return Inspection(
        name=checkpoint.absolute().name,
        precision=_precision(mine),
        compared_with=baseline.absolute().name if baseline is not None else None,
        tensor_parallel_size=tensor_parallel_size,
        num_tensors=len(mine.facts.headers),
        num_quantized_layers=len(found.layers),
        weight_bytes=size.weight_bytes,
        bits_per_weight=size.bits_per_weight,
        quantized_bits_per_weight=size.quantized_bits_per_weight,
        nominal_bits=size.nominal_bits,
        checked=("headers", "scales", "tokenizer", "config"),
        findings=found.findings,
        kernels=found.kernels,
    )


def _precision(mine: Survey) -> str | None:
    try:
        return precisions.precision(mine.facts.config, mine.data.tensors) if mine.data.tensors else None
    except CheckpointError:
        return None
