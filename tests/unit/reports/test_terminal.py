import io

import pytest
from rich.console import Console

from qgate.reports import terminal
from qgate.schemas.verdict import VerdictSheet
from tests.unit.reports import sample
from tests.unit.reports.golden import same_as_golden


def shown(sheet: VerdictSheet, *, width: int = 80, colour: bool = False, folder: str | None = None) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        no_color=not colour,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
    )
    console.print(terminal.render(sample.run(), sheet, folder))
    return "".join(line.rstrip() + "\n" for line in stream.getvalue().splitlines())


def test_eighty_columns_without_colour():
    text = shown(sample.sheet(), folder="results/runs/x")
    same_as_golden(text, "terminal.txt")


@pytest.mark.parametrize("colour", [False, True])
def test_answers_cannot_act_on_the_terminal(colour):
    text = shown(sample.sheet(), colour=colour)
    assert "\x1b]" not in text
    assert "\x1b[2J" not in text
    assert "\x07" not in text
    assert "\u202e" not in text
    assert "\x00" not in text
    assert "[bold red]not markup[/]" in text
    assert "⟦U+001B⟧" in text
    assert ("\x1b[" in text) is colour


def test_names_and_reasons_are_not_markup_either():
    sheet = sample.sheet()
    tier = sheet.tiers[0].model_copy(update={"reason": "[link=http://x]\x1b[31m[/nope]"})
    text = shown(sheet.model_copy(update={"tiers": (tier,), "findings": ("[blink]\x9b1m",)}))
    assert "[link=http://x]⟦U+001B⟧[31m[/nope]" in text
    assert "[blink]⟦U+009B⟧1m" in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(width):
    stream = io.StringIO()
    console = Console(file=stream, width=width, no_color=True)
    with console.capture() as capture:
        console.print(terminal.render(sample.run(), sample.sheet()))
    from rich.cells import cell_len

    assert max(cell_len(line) for line in capture.get().splitlines()) <= width


@pytest.mark.parametrize("width", [40, 60, 80])
def test_verdicts_and_names_are_never_broken(width):
    text = shown(sample.sheet(), width=width)
    tables = text.partition("Tiers and variants")[2].partition("Why not")[0]
    for word in ("public-chat", "batch-summaries", "evaluation-api", "(W4A16)", "FP16", "INCONCLUSIVE", "n.a."):
        assert word in tables
    figures = text.partition("Quality against cost")[2].partition("The worst answers")[0]
    for word in ("variant", "bits/w", "defects", "269 MB"):
        assert word in figures


def test_no_line_ends_in_blanks():
    stream = io.StringIO()
    Console(file=stream, width=80, no_color=True).print(terminal.render(sample.run(), sample.sheet()))
    assert [line for line in stream.getvalue().splitlines() if line != line.rstrip()] == []


def test_a_tiers_default_is_told_at_the_top_only():
    why = shown(sample.sheet()).partition("Why not the others")[2].partition("Quality against cost")[0]
    assert "gptq in public-chat, agents:" in why
    assert "awq in public-chat, batch-summaries:" in why


def test_many_variants_are_split_over_tables():
    sheet = sample.sheet()
    names = [f"variant-{index}" for index in range(9)]
    base = sheet.tiers[0].variants[1]
    variants = tuple(base.model_copy(update={"variant": name}) for name in names)
    text = shown(sheet.model_copy(update={"tiers": (sheet.tiers[0].model_copy(update={"variants": variants}),)}))
    assert all(name in text for name in names)


def test_a_sign_is_explained_where_it_stands_only():
    sheet = sample.sheet()
    allowed = sheet.tiers[0]
    assert "n.a.: the tier" in shown(sheet)
    assert "n.a.: the tier" not in shown(sheet.model_copy(update={"tiers": (allowed,)}))


def test_an_empty_sheet_says_so():
    sheet = sample.sheet().model_copy(update={"tiers": (), "examples": (), "summary": {}, "findings": ()})
    text = shown(sheet)
    assert "Nothing was judged" in text
    assert "3: no tier fails" in text


def test_missing_figures_are_dashes():
    sheet = sample.sheet().model_copy(update={"summary": {"w8a8": {"mean_score": None}}})
    assert shown(sheet).count("—") >= 6
