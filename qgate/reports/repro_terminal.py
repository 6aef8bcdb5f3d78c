"""What a person sees when `qgate repro` ends. Pure: a report in, something that rich can print out."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from qgate.judge.attribution import CAUSES
from qgate.reports import repro_words as words
from qgate.reports.rate_picture import as_text
from qgate.reports.visible import clip, one_line
from qgate.schemas.repro import Repro

EXAMPLE_CHARS, PICTURE_WIDTH = 210, 78
_STYLE = {"stays": "red", "gone": "green", "less often": "yellow", "not clear": "dim", "could not be run": "dim"}
_STATE = {"shown": "bold red", "excluded": "dim", "open": "yellow"}


def render(report: Repro, folder: str) -> RenderableType:
    """The verdict, the evidence, the causes, the minimal request, and where the files lie."""
    parts: list[RenderableType] = [_verdict(report), Text(), _evidence(report)]
    if report.attribution.suspicions:
        parts += [Text(), _causes(report)]
    return Group(*parts, Text(), *_minimal(report), *_lines(report), *_next(report, folder))


def _verdict(report: Repro) -> Text:
    found = report.attribution
    style = "bold yellow" if found.confidence is None else "bold"
    text = Text(words.verdict_line(report), style)
    text.append(f"\n{one_line(found.summary)}", "not bold default")
    return text


def _evidence(report: Repro) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in ("changed", "candidate fails", "unquantized fails", "the failure"):
        table.add_column(name, overflow="fold")
    for row in words.rows(report):
        cells = [row.change, words.failed_of(row.candidate), words.failed_of(row.baseline)]
        table.add_row(*(Text(one_line(cell)) for cell in cells), Text(row.effect, _STYLE.get(row.effect, "")))
    return table


def _causes(report: Repro) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    last: str | None = None
    for each in words.causes(report):
        because = Text(one_line(each.because))
        if each.missing:
            because.append(f"; missing: {'the same' if each.missing == last else one_line(each.missing)}", "yellow")
            last = each.missing
        table.add_row(Text(f"{each.state} ", _STATE[each.state]), Text(f"{CAUSES[each.cause]}: ") + because)
    return table


def _minimal(report: Repro) -> Iterator[RenderableType]:
    if (found := report.minimised) is None:
        return
    yield Text(f"Minimal request: {words.shrunk(found)}")
    messages = found.body.get("messages") or [{"content": found.body.get("prompt")}]
    yield Padding(Text(clip(str(messages[-1].get("content")), 0, EXAMPLE_CHARS), "cyan"), (0, 0, 0, 2))
    for line in words.thresholds(found.thresholds):
        yield Text(f"  {line}")
    if picture := as_text(found.rate_map, PICTURE_WIDTH):
        yield Padding(Text(picture), (1, 0, 1, 2))


def _lines(report: Repro) -> Iterator[RenderableType]:
    if not report.experiments[0].failures:
        yield Text(f"A failure is {one_line(report.recognised_by)}")
    if shown := words.example(report):
        heading, example = shown
        filed = report.experiments[0]
        seed = f"seed {example.seed}" if 0 < filed.failures < filed.tries else ""
        said = ": ".join(filter(None, [seed, example.why]))
        yield Text(heading + (f" ({said}):" if said else ":"))
        yield Padding(Text(clip(example.text, 0, EXAMPLE_CHARS), "cyan"), (0, 0, 0, 2))
    if other := words.other_defects(report):
        yield Text(f"• {other}", "yellow")
    if report.attribution.would_raise:
        yield Text(f"Would settle more: {one_line('; '.join(report.attribution.would_raise))}")
    for line in (*words.refusals(report), *report.not_isolated, *report.notes):
        yield Text(f"• {one_line(line)}", "dim")


def _next(report: Repro, folder: str) -> Iterator[RenderableType]:
    yield Text("Next: ", "bold").append(words.NEXT[report.attribution.cause], "not bold")
    yield Text(f"{folder}/repro.md")
    if report.experiments[0].failures:
        yield Text(
            "That page is for a ticket; repro.sh beside it asks a server again, and --add-to SET has the gate ask it.",
            "dim",
        )
