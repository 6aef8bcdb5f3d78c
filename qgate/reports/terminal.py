"""What a person sees when a run ends. Pure: a run and its verdict sheet in, something that rich can print out.

It reads without colour and at 80 columns. Text from outside is never markup: it enters as `Text`, with control
characters made visible, so no answer can move the cursor, recolour or retitle the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from qgate.reports.visible import clip, offset_of, one_line
from qgate.reports.words import (
    EXIT_MEANING,
    NOT_ALLOWED,
    exit_code,
    in_tier,
    labelled,
    not_passed,
    number,
    precisions,
    share,
    size,
    summary_of,
    tier_sentence,
    variants_of,
    verdict_word,
    worst_examples,
)
from qgate.schemas.run import Run
from qgate.schemas.verdict import Example, VerdictSheet

NUM_EXAMPLES = 3
CLIP_CHARACTERS = 210
VARIANTS_PER_TABLE = 4
_STYLE = {
    "PASS": "bold green",
    "FAIL": "bold red",
    "INCONCLUSIVE": "bold yellow",
    "INVALID": "bold yellow",
    "VOID": "dim",
    "n.a.": "dim",
}
_COST: tuple[tuple[str, str, Callable[[Any], str]], ...] = (
    ("bits/w", "bits_per_weight", number),
    ("size", "weight_bytes", size),
    ("score", "mean_score", share),
    ("defects", "defect_share", share),
    ("tok/s", "tokens_per_s", number),
    ("KL", "kl_mean", number),
)


def render(run: Run, sheet: VerdictSheet, folder: str | None = None) -> RenderableType:
    """The whole report; `folder` is where the run's files lie, for the pointer at the end."""
    parts: list[RenderableType] = [_head(run, sheet), *_tiers(run, sheet), *_matrix(run, sheet), *_reasons(sheet)]
    parts += [*_cost(run, sheet), *_examples(sheet), *_findings(run, sheet), _foot(run, sheet, folder)]
    return Group(*parts)


def _words(text: str, style: str = "") -> Text:
    return Text(one_line(text), style=style, overflow="fold")


def _verdict(word: str) -> Text:
    return Text(word, style=_STYLE.get(word, ""), no_wrap=True)


def _section(title: str) -> Text:
    return Text(f"\n{title}", style="bold")


def _grid(rows: Iterable[tuple[Text, ...]], widths: tuple[int, ...]) -> Padding:
    """Rows whose last column takes the rest of the line and wraps under itself."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    for width in widths:
        grid.add_column(min_width=width, overflow="fold")
    grid.add_column(overflow="fold")
    for row in rows:
        grid.add_row(*row)
    return Padding(grid, (0, 0, 0, 2))


def _head(run: Run, sheet: VerdictSheet) -> RenderableType:
    answers = sum(arm.num_answers for arm in run.arms if arm.step == "generate")
    facts = f"run {run.run_id} · engine {sheet.engine} · {answers} answers"
    return Group(_words(f"qgate · {sheet.recipe}", "bold"), _words(facts, "dim"))


def _tiers(run: Run, sheet: VerdictSheet) -> Iterator[RenderableType]:
    yield _section("What each tier may serve")
    precision = precisions(run, sheet)
    if not sheet.tiers:
        yield Padding(_words("Nothing was judged: the verdict sheet holds no tier."), (0, 0, 0, 2))
    rows = []
    for tier in sheet.tiers:
        sentence = _words(tier_sentence(tier, precision), "bold")
        sentence.append("\n").append_text(_words(tier.reason, "dim"))
        rows.append((_verdict(tier.verdict.value), sentence))
    yield _grid(rows, (12,))


def _matrix(run: Run, sheet: VerdictSheet) -> Iterator[RenderableType]:
    precision, names = precisions(run, sheet), variants_of(sheet)
    for first in range(0, len(names), VARIANTS_PER_TABLE):
        part = names[first : first + VARIANTS_PER_TABLE]
        table = Table(box=box.SIMPLE_HEAD, pad_edge=True, title_justify="left")
        table.add_column("tier", overflow="fold")
        for name in part:
            table.add_column(_words(labelled(name, precision)), overflow="fold")
        for tier in sheet.tiers:
            table.add_row(_words(tier.tier), *(_verdict(verdict_word(in_tier(tier, name))) for name in part))
        yield _section("Tiers and variants") if first == 0 else Text("")
        yield table
    if any(verdict_word(in_tier(tier, name)) == NOT_ALLOWED for tier in sheet.tiers for name in names):
        yield Padding(_words(f"{NOT_ALLOWED}: the tier does not allow this variant", "dim"), (0, 0, 0, 2))


def _reasons(sheet: VerdictSheet) -> Iterator[RenderableType]:
    """One line per variant and reason, with the tiers where it holds."""
    grouped = not_passed(sheet)
    if grouped:
        yield _section("Why not")
        rows = []
        for (verdict, variant, reason), tiers in grouped.items():
            sentence = _words(f"{variant}: {reason}")
            rows.append((_verdict(verdict.value), sentence.append(f"\nin {one_line(', '.join(tiers))}", style="dim")))
        yield _grid(rows, (12,))


def _cost(run: Run, sheet: VerdictSheet) -> Iterator[RenderableType]:
    precision, names = precisions(run, sheet), [name for name in variants_of(sheet) if summary_of(sheet, name)]
    if not names:
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=True)
    table.add_column("variant", overflow="fold")
    for title, _, _ in _COST:
        table.add_column(title, justify="right", no_wrap=True)
    for name in names:
        values = summary_of(sheet, name)
        table.add_row(_words(labelled(name, precision)), *(shown(values.get(key)) for _, key, shown in _COST))
    yield _section("Quality against cost")
    yield table


def _examples(sheet: VerdictSheet) -> Iterator[RenderableType]:
    worst = worst_examples(sheet, NUM_EXAMPLES)
    if worst:
        yield _section("The worst answers, beside the baseline's")
    for place, example in enumerate(worst, start=1):
        title = _words(f"{place}. {example.variant} · {example.id}", "bold")
        yield Padding(title, (0, 0, 0, 2))
        yield _grid(_example(example), (8,))


def _example(example: Example) -> Iterator[tuple[Text, Text]]:
    start = offset_of(example.where)
    others = [name for name in example.defects if name not in example.where]
    found = " · ".join(filter(None, (example.where, *others))) or "no defect, lower score"
    yield _words("found", "dim"), _words(found, "red")
    yield _words("prompt", "dim"), Text(clip(example.prompt_tail, len(example.prompt_tail), CLIP_CHARACTERS // 2))
    sides = (
        ("baseline", example.baseline_text, example.baseline_score),
        (example.variant, example.variant_text, example.variant_score),
    )
    for name, text, score in sides:
        shown = Text(clip(text, start, CLIP_CHARACTERS), overflow="fold")
        yield _words(name, "dim"), shown.append(f" [score {number(score)}]", style="dim")


def _findings(run: Run, sheet: VerdictSheet) -> Iterator[RenderableType]:
    lines = [*sheet.findings, *(f"{name} could not be run: {why}" for name, why in run.failures.items())]
    if lines:
        yield _section("Findings")
        yield _grid(((Text("·"), _words(line)) for line in lines), (1,))


def _foot(run: Run, sheet: VerdictSheet, folder: str | None) -> RenderableType:
    code = exit_code(sheet)
    where = f"{folder or f'runs/{run.run_id}'}/report.html"
    rows = (
        (_words("report", "dim"), _words(where)),
        (_words("exit code", "dim"), _words(f"{code.value}: {EXIT_MEANING[code]}")),
    )
    return Group(Text(""), _grid(rows, (9,)))
