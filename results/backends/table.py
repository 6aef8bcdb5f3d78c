"""Draws table.md: the four backends' checkpoints of the demo model through inspection and the gate.

    qgate run recipes/four-backends.yaml
    python results/backends/table.py results/runs/four-backends-…    inspects that run's checkpoints, keeps what it read
    python results/backends/table.py                                 draws the table again from what was kept

Kept here: run.json and verdict.json of the run, and an inspection per variant (weights compared with the baseline's).
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from statistics import median

from qgate.io import artefact
from qgate.rooms.inspect import inspect
from qgate.schemas.answers import EngineFacts
from qgate.schemas.inspection import Inspection
from qgate.schemas.recipe import BASELINE
from qgate.schemas.run import Run
from qgate.schemas.verdict import CriterionResult, VariantVerdict, VerdictSheet

HERE = Path(__file__).resolve().parent
COLUMNS = (
    "variant", "inspection", "weight error, median", "worst", "mean KL", "95 % bounds", "other top-1", "verdict", "MB",
    "bits a weight", "made in", "peak memory", "packages",
)  # fmt: skip
NAMED = ("llmcompressor", "autoawq", "auto-gptq", "gptqmodel", "torch", "transformers")


def keep(folder: Path) -> None:
    """Copy what the run says of itself, and inspect each of its variants."""
    run = artefact.load(folder / "run.json", Run)
    artefact.save(HERE / "run.json", run.model_copy(update={"engine_facts": without_folders(run.engine_facts)}))
    shutil.copyfile(folder / "verdict.json", HERE / "verdict.json")
    results = folder.resolve().parents[1]
    for name, checkpoint in run.checkpoints.items():
        if name != BASELINE:
            found = inspect(results / checkpoint.path, results / run.checkpoints[BASELINE].path, weights=True)
            artefact.save(HERE / f"{name}.inspection.json", found)


def without_folders(facts: dict[str, EngineFacts]) -> dict[str, EngineFacts]:
    """The same with the commands' files by their names alone: the folders are this machine's."""
    return {
        name: fact.model_copy(update={"argv": tuple(Path(word).name for word in fact.argv)})
        for name, fact in facts.items()
    }


def row(name: str, run: Run, variant: VariantVerdict) -> list[str]:
    """One variant, as COLUMNS says."""
    checkpoint, found = run.checkpoints[name], artefact.load(HERE / f"{name}.inspection.json", Inspection)
    assert checkpoint.making is not None
    criteria = {result.metric: result for result in variant.criteria}
    errors = [layer.relative_error for layer in found.layers]  # none where an error kept weights from being compared
    counts = [f"{len(found.errors)} errors", f"{sum(f.severity == 'warning' for f in found.findings)} warnings"]
    bounds = criteria["kl_mean"].estimate
    return [
        name,
        ", ".join(counts),
        f"{median(errors):.3f}" if errors else "—",
        f"{errors[0]:.3f} ({found.layers[0].module.removeprefix('model.')})" if errors else "—",
        value(criteria["kl_mean"]),
        f"{bounds.low:.3f} to {bounds.high:.3f}" if bounds.low is not None and bounds.high is not None else "—",
        value(criteria["top1_disagreement"]),
        variant.verdict,
        f"{checkpoint.weight_bytes / 1e6:.0f}",
        f"{checkpoint.bits_per_weight:.2f}",
        f"{checkpoint.making.wall_s / 60:.1f} min",
        f"{checkpoint.making.peak_memory_bytes / 1e9:.1f} GB",
        ", ".join(f"{n} {v}" for n, v in checkpoint.making.packages.items() if n in NAMED),
    ]


def value(result: CriterionResult) -> str:
    """A point estimate."""
    return "—" if result.estimate.value is None else f"{result.estimate.value:.3f}"


def main() -> None:
    """Keep what a run made, if one is named, and draw the table."""
    if len(sys.argv) > 1:
        keep(Path(sys.argv[1]))
    run, sheet = artefact.load(HERE / "run.json", Run), artefact.load(HERE / "verdict.json", VerdictSheet)
    (tier,) = sheet.tiers
    rows = [row(variant.variant, run, variant) for variant in tier.variants if variant.variant != BASELINE]
    lines = [COLUMNS, ["---"] * len(COLUMNS), *rows]
    facts = run.engine_facts[BASELINE]
    text = (
        f"# {run.run_id}: four backends, one model\n\nMade by `python results/backends/table.py`; tier `{tier.tier}` of "
        f"recipes/four-backends.yaml, engine {facts.engine} {facts.version} on {run.host['cpu']}, "
        f"{run.host['num_cores']} cores.\n\n"
    )
    text += "".join("| " + " | ".join(cells) + " |\n" for cells in lines)
    text += (
        "\nWeight error: relative Frobenius error of each quantized layer against FP16, scales that AWQ moved between layers "
        "moved back. Other top-1: share of positions where another token comes first. All calibrated on the same "
        f"{run.checkpoints[rows[0][0]].making.calibration['num_samples']} texts; made one after the other. "
        "GPTQModel's two were made anew on a machine that had other work, so their times say little.\n"
    )
    (HERE / "table.md").write_text(text, encoding="utf-8")


main()
