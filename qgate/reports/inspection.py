"""An inspection in, what a person sees of it out. Pure; reads without colour and at 80 columns.

Names from a checkpoint are never markup: they enter as `Text`, with control characters made visible.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from qgate.reports.visible import one_line
from qgate.schemas.inspection import Finding, Inspection, KernelUse, Severity
from qgate.wording import counted

STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "dim"}
NUM_LAYERS = 8


def render(inspection: Inspection) -> RenderableType:
    """Head, findings, kernels, weight errors."""
    parts: list[RenderableType] = [_head(inspection), *map(_finding, inspection.findings)]
    parts += [*_kernels(inspection), *_layers(inspection), _words(f"\n{verdict(inspection)}", "bold")]
    return Group(*parts)


def verdict(inspection: Inspection) -> str:
    """`2 errors, 1 warning`; `nothing found` where there is not even a note."""
    counts: dict[Severity, int] = defaultdict(int)
    for finding in inspection.findings:
        counts[finding.severity] += 1
    said = [counted(counts[each], each) for each in Severity if counts[each]]
    return ", ".join(said) if said else f"nothing found (looked at {', '.join(inspection.checked)})"


def sentence(finding: Finding) -> str:
    """One line, without a full stop: code, place, what was found, what it breaks."""
    more = f" and {finding.num_places - 1} more" if finding.num_places > 1 else ""
    return f"{finding.code} at {finding.places[0]}{more}: {finding.detail}; {finding.breaks}"


def _words(text: str, style: str = "") -> Text:
    lead = "\n" if text.startswith("\n") else ""
    return Text(lead + one_line(text), style=style, overflow="fold")


def _head(inspection: Inspection) -> Text:
    parts = [inspection.precision or "precision unknown", f"{inspection.num_tensors} tensors"]
    if inspection.num_quantized_layers:
        parts.append(f"{inspection.num_quantized_layers} quantized layers")
    parts.append(f"{inspection.weight_bytes / 1e6:,.1f} MB")
    if inspection.bits_per_weight is not None:
        parts.append(f"{inspection.bits_per_weight:.2f} bits per weight")
    if inspection.quantized_bits_per_weight is not None and inspection.nominal_bits is not None:
        inside, nominal = inspection.quantized_bits_per_weight, inspection.nominal_bits
        parts.append(f"{inside:.2f} in the quantized layers (nominally {nominal:g})")
    return Text.assemble((one_line(inspection.name), "bold"), " · ", " · ".join(parts))


def _finding(finding: Finding) -> Padding:
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    more = f" and {finding.num_places - len(finding.places)} more" if finding.num_places > len(finding.places) else ""
    grid.add_row(Text(str(finding.severity), style=STYLES[finding.severity]), Text(finding.code, style="bold"))
    grid.add_row(Text("where", style="dim"), _words(", ".join(finding.places) + more))
    grid.add_row(Text("found", style="dim"), _words(finding.detail))
    grid.add_row(Text("breaks", style="dim"), _words(finding.breaks))
    grid.add_row(Text("fix", style="dim"), _words(finding.fix))
    return Padding(grid, (1, 0, 0, 0))


def _kernels(inspection: Inspection) -> Iterator[RenderableType]:
    if not inspection.kernels:
        return
    by_kind: dict[tuple[int, int, int], list[KernelUse]] = defaultdict(list)
    for use in inspection.kernels:
        by_kind[use.rows, use.columns, use.num_layers].append(use)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in ("outputs × inputs", "layers", "vLLM's kernel"):
        table.add_column(column, overflow="fold")
    for (rows, columns, num), uses in sorted(by_kind.items(), reverse=True):
        table.add_row(f"{rows} × {columns}", str(num), _words(_by_kernel(uses)))
    yield _words("\nKernels", "bold")
    yield table


def _by_kernel(uses: list[KernelUse]) -> str:
    """`Marlin (padded): sm75 sm80; none: sm90 (Machete takes no groups of 16)`."""
    devices: dict[str, list[str]] = defaultdict(list)
    for use in uses:
        name = (use.kernel or "none").removesuffix("LinearKernel").removesuffix("ScaledMM")
        if use.kernel is None and use.refused:
            first, why = next(iter(reversed(use.refused.items())))
            name += f" ({first.removesuffix('LinearKernel')} {why})"
        devices[name + (" (padded)" if use.is_padded else "")].append(use.device)
    return "; ".join(f"{name}: {' '.join(where)}" for name, where in devices.items())


def _layers(inspection: Inspection) -> Iterator[RenderableType]:
    if not inspection.layers:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for column in ("layer", "error", "rounding", "cosine", "worst rows"):
        table.add_column(column, overflow="fold", justify="left" if column in {"layer", "worst rows"} else "right")
    for layer in inspection.layers[:NUM_LAYERS]:
        rows = ", ".join(f"{row}: {error:.3f}" for row, error in layer.worst_rows)
        rounding = "—" if layer.rounding_error is None else f"{layer.rounding_error:.4f}"
        table.add_row(_words(layer.module), f"{layer.relative_error:.4f}", rounding, f"{layer.cosine:.5f}", rows)
    yield _words(f"\nWeight errors, largest of {len(inspection.layers)} layers", "bold")
    yield table
