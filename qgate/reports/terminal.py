"""What a person sees when a run ends. Pure: a run and its verdict sheet in, something that rich can print out.

It reads without colour and at 60 columns. Text from outside is never markup: it enters as `Text`, with control
characters made visible, so no answer can move the cursor, recolour or retitle the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from qgate.judge.units import number
from qgate.reports.fitted import Page, Parted
from qgate.reports.visible import clip, offset_of, one_line
from qgate.reports.words import (
    EXIT_MEANING,
    NOT_ALLOWED,
    Column,
    columns_of,
    findings_of,
    has_references,
    in_tier,
    labelled,
    not_passed,
    precisions,
    rise,
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
_STYLE = {
    "PASS": "bold green",
    "FAIL": "bold red",
    "INCONCLUSIVE": "bold yellow",
    "INVALID": "bold yellow",
    "VOID": "dim",
    "n.a.": "dim",
}
_COST: tuple[Column, ...] = (
    ("bits/w", "bits_per_weight", number),
    ("size", "weight_bytes", size),
    ("score", "mean_score", share),
    ("defects", "defect_share", share),
    ("tok/s", "tokens_per_s", number),
    ("KL", "kl_mean", number),
    ("ref KL", "reference_kl_mean", number),
    ("ref ppl", "reference_ln_perplexity_ratio", rise),
)


def render(run: Run, sheet: VerdictSheet, folder: str | None = None) -> RenderableType:
    """The whole report; `folder` is where the run's files lie, for the pointer at the end."""

    def parts() -> Iterator[RenderableType]:
        yield _head(run, sheet)
        yield from (*_tiers(run, sheet), *_matrix(run, sheet), *_reasons(sheet), *_cost(run, sheet))
        yield from (*_examples(sheet), *_findings(run, sheet))
        yield _foot(run, sheet, folder)

    return Page(parts)


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
    if not names:
        return
    words = [[verdict_word(in_tier(tier, name)) for name in names] for tier in sheet.tiers]
    rows = [(_words(tier.tier), [_verdict(word) for word in row]) for tier, row in zip(sheet.tiers, words, strict=True)]
    yield _section("Tiers and variants")
    yield Parted("tier", [_words(labelled(name, precision)) for name in names], rows)
    if any(NOT_ALLOWED in row for row in words):
        yield Padding(_words(f"{NOT_ALLOWED}: the tier does not allow this variant", "dim"), (0, 0, 0, 2))


def _reasons(sheet: VerdictSheet) -> Iterator[RenderableType]:
    """One line per variant and reason that no tier's own line has told, with the tiers where it holds."""
    rows = []
    defaults = {tier.tier: tier.default for tier in sheet.tiers}
    for (verdict, variant, reason), tiers in not_passed(sheet).items():
        untold = [tier for tier in tiers if defaults[tier] != variant]
        if untold:
            sentence = _words(f"{variant} in {', '.join(untold)}", "bold").append_text(
                _words(f": {reason}", "not bold")
            )
            rows.append((_verdict(verdict.value), sentence))
    if rows:
        yield _section("Why not the others")
        yield _grid(rows, (12,))


def _cost(run: Run, sheet: VerdictSheet) -> Iterator[RenderableType]:
    precision, names = precisions(run, sheet), [name for name in variants_of(sheet) if summary_of(sheet, name)]
    if not names:
        return
    yield _section("Quality against cost")
    columns = columns_of(sheet, _COST)
    rows = []
    for name in names:
        values = summary_of(sheet, name)
        cells = [Text(shown(values.get(key))) for _, key, shown in columns]
        rows.append((_words(labelled(name, precision)), cells))
    yield Parted("variant", [Text(title) for title, _, _ in columns], rows, right=True)
    said = "score: the mean; defects: answers with one; KL: nats per token away from the baseline"
    said += "; ref: on right answers; ppl: rise of the perplexity" if has_references(sheet) else ""
    yield Padding(_words(said, "dim"), (0, 0, 0, 2))


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
    lines = findings_of(run, sheet)
    if lines:
        yield _section("Findings")
        yield _grid(((Text("·"), _words(line)) for line in lines), (1,))


def _foot(run: Run, sheet: VerdictSheet, folder: str | None) -> RenderableType:
    code = sheet.exit_code
    where = f"{folder or f'runs/{run.run_id}'}/report.html"
    rows = (
        (_words("report", "dim"), _words(where)),
        (_words("exit code", "dim"), _words(f"{code.value}: {EXIT_MEANING[code]}")),
    )
    return Group(Text(""), _grid(rows, (9,)))
