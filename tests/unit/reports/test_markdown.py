import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from qgate.reports import markdown
from qgate.schemas.verdict import Verdict
from tests.unit.reports import sample
from tests.unit.reports.golden import same_as_golden

GFM = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
HOSTILE = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[click](javascript:alert(1))", "![x](http://x/y.png)",
    "`code`", "a | b", "**bold**", "_emphasis_", "__strong__", "~~gone~~", "# heading", "- item", "1. item", "+ item",
    "> quote", "&lt;b&gt;", "<!-- comment -->", "a\n\n| x | y |\n| --- | --- |", "</details>", "\\", "\\|", "<http://x.y>",
    "[x]: http://y", "=", "---", "\x00\u202e", "\ud800", "$x$", "1) item",
]  # fmt: skip


def plain(text: str) -> str:
    """The text that a browser would show, and proof that there is nothing else."""
    (start, inline, end) = GFM.parse(text)
    assert (start.type, end.type) == ("paragraph_open", "paragraph_close")
    assert {child.type for child in inline.children} <= {"text", "text_special"}, inline.children
    return "".join(child.content for child in inline.children)


def test_golden():
    same_as_golden(markdown.render(sample.run(), sample.sheet()), "summary.md")


@pytest.mark.parametrize("text", HOSTILE)
def test_escaped_text_is_only_text(text):
    shown = plain(markdown.escape(text)).replace("\u200b", "")
    assert shown == markdown.one_line(text)


@given(st.text(st.characters(codec=None), min_size=1, max_size=60).filter(lambda text: text.strip()))
def test_any_text_is_only_text(text):
    assert plain("x" + markdown.escape(text))[1:].replace("\u200b", "") == markdown.one_line(text).replace("\u200b", "")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_cell_stays_one_cell(text):
    table = f"| a | b |\n| --- | --- |\n| {markdown.escape(text)} | end |"
    tokens = GFM.parse(table)
    assert [token.type for token in tokens].count("td_open") == 2
    assert not [token for token in tokens if token.type == "html_block"]


def test_addresses_mentions_and_issue_numbers_are_not_linked():
    shown = markdown.escape("https://x.y www.x.y @octocat #12")
    assert shown == "https&#8203;://x.y www&#8203;.x.y @&#8203;octocat #&#8203;12"


def test_a_variant_that_no_criterion_speaks_against_is_listed_with_its_own_reason():
    sheet = sample.sheet()
    tier = sheet.tiers[0]
    variants = tuple(
        variant.model_copy(update={"verdict": Verdict.INCONCLUSIVE, "reason": "w8a8 gave no answers", "criteria": ()})
        for variant in tier.variants
        if variant.allowed
    )
    judged = sheet.model_copy(update={"tiers": (tier.model_copy(update={"variants": variants}),)})
    page = markdown.render(sample.run(), judged)
    assert page.count("w8a8 gave no answers") == len(variants) > 0


def test_hostile_names_reasons_and_answers_keep_the_page_whole():
    sheet = sample.sheet()
    hostile = "\n".join(HOSTILE)
    example = sheet.examples[0].model_copy(update={"variant_text": hostile, "baseline_text": hostile, "where": ""})
    tier = sheet.tiers[2].model_copy(update={"reason": hostile})
    page = markdown.render(
        sample.run(), sheet.model_copy(update={"examples": (example,), "tiers": (tier,), "findings": (hostile,)})
    )
    tokens = GFM.parse(page)
    html = [token.content.strip() for token in tokens if token.type == "html_block"]
    assert html == [
        "<details><summary>The worst answers beside the baseline's</summary>",
        "</details>",
    ]
    inline = [child.type for token in tokens if token.type == "inline" for child in token.children or ()]
    assert not {"html_inline", "link_open", "image", "code_inline", "s_open"} & set(inline)


def test_nothing_judged_is_said():
    sheet = sample.sheet().model_copy(update={"tiers": (), "examples": (), "summary": {}, "findings": ()})
    assert "Nothing was judged" in markdown.render(sample.run(), sheet)


def test_a_comment_is_found_again_by_its_first_line():
    text = markdown.comment(sample.run(), sample.sheet())
    assert text.splitlines()[0] == "<!-- qgate smollm2-demo -->"
    assert text.partition("\n")[2] == markdown.render(sample.run(), sample.sheet())
    assert markdown.comment_marker("--> <b>") == "<!-- qgate b -->"


@pytest.mark.parametrize("where", ["findings", "reasons", "tiers"])
def test_a_comment_never_exceeds_what_github_takes(where):
    sheet = sample.sheet()
    if where == "findings":
        sheet = sheet.model_copy(update={"findings": ("long " * 30_000,)})
    if where == "reasons":
        criteria = tuple(sample_criterion(f"scope {place} " + "x" * 300) for place in range(400))
        variant = sheet.tiers[0].variants[3].model_copy(update={"criteria": criteria})
        sheet = sheet.model_copy(update={"tiers": (sheet.tiers[0].model_copy(update={"variants": (variant,)}),)})
    if where == "tiers":
        sheet = sheet.model_copy(update={"tiers": tuple(sheet.tiers[2] for _ in range(2_000))})
    text = markdown.comment(sample.run(), sheet)
    assert len(text) <= 65_536
    assert "batch-summaries stays FP16" in text or where == "reasons"
    assert "exit code" in text


def sample_criterion(scope):
    return sample.sheet().tiers[0].variants[3].criteria[0].model_copy(update={"scope": scope})
