"""Checks of layout: tables, titles, sections, highlights, placeholders, postscripts, plain text. Pure."""

from __future__ import annotations

import re
from itertools import pairwise

from pydantic import Field

from qgate.schemas.base import Frozen
from qgate.scorers import segment
from qgate.scorers.checks.check import Bounds, Check, NoArgs
from qgate.scorers.text import Phrase, normalise

_RULE = re.compile(r"\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?")
_HIGHLIGHT = re.compile(r"(?<!\*)(\*{1,3})(?![\s*])([^*\n]*[^*\s])\1(?!\*)")
_PLACEHOLDER = re.compile(r"\[[^\[\]\n]+\]|［[^［］\n]+］|【[^【】\n]+】")
_TITLE = re.compile(r"<<[^<>\n]*[^<>\s][^<>\n]*>>")
_MARKDOWN = re.compile(
    r"^[ \t]*(?:#{1,6}[ \t]|[-*+][ \t]|>[ \t]|\|.*\||```)|\*\*[^*\n]+\*\*|`[^`\n]+`|(?<!\w)\*[^*\s][^*\n]*\*",
    re.MULTILINE,
)


class TableArgs(Frozen):
    """Arguments of `detectable_format:table`."""

    columns: tuple[Phrase, ...] = Field(min_length=2, description="Headings from left to right")
    rows: int | None = Field(default=None, ge=1, description="Data rows, where the number is fixed")
    only: bool = Field(default=False, description="Nothing may stand around the table")


def _table(text: str, args: TableArgs, language: str) -> bool:
    """One Markdown table: the headings, a rule below them, and rows of as many cells that begin with a filled one."""
    found = segment.lines(text)
    rows = [line for line in found if "|" in line]
    if args.only and len(rows) < len(found):
        return False
    if len(rows) < 3 or _RULE.fullmatch(rows[1]) is None or sum(map(bool, map(_RULE.fullmatch, rows))) != 1:
        return False
    heading, *body = [_cells(row) for row in (rows[0], *rows[2:])]
    return (
        [normalise(cell.strip("*_ ")) for cell in heading] == [normalise(name) for name in args.columns]
        and len(_cells(rows[1])) == len(heading)
        and all(len(row) == len(heading) and row[0] for row in body)
        and args.rows in (None, len(body))
    )


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]


def _highlights(text: str, args: Bounds, language: str) -> bool:
    return args.fit(len(_HIGHLIGHT.findall(text)))


class SectionsArgs(Bounds):
    """Arguments of `detectable_format:multiple_sections`."""

    section_spliter: Phrase = Field(description="Word before each section's number (IFEval's spelling of the name)")


def _sections(text: str, args: SectionsArgs, language: str) -> bool:
    """Headings `SECTION 1`, `SECTION 2` … each on a line of its own or opening one, in order, each with text below."""
    head = re.compile(rf"^[ \t*_#]*{re.escape(args.section_spliter)}[ \t]*(\d+)", re.MULTILINE | re.IGNORECASE)
    found = list(head.finditer(text))
    if [int(match[1][:4]) for match in found] != list(range(1, len(found) + 1)) or not args.fit(len(found)):
        return False
    ends = [*[match.start() for match in found[1:]], len(text)]
    return all(any(ch.isalpha() for ch in text[match.end() : end]) for match, end in zip(found, ends, strict=True))


class PostscriptArgs(Frozen):
    """Arguments of `detectable_content:postscript`."""

    postscript_marker: Phrase = Field(description="What opens the postscript, e.g. `P.S.` or `附言`")


def _postscript(text: str, args: PostscriptArgs, language: str) -> bool:
    """The last paragraph or line opens with the marker, says something, and is not the whole answer."""
    found = segment.lines(text)
    marker = normalise(args.postscript_marker).rstrip(":")
    heads = [at for at, line in enumerate(found) if normalise(line.lstrip("*_# ")).startswith(marker)]
    if not heads or heads[0] == 0:
        return False
    rest = normalise(" ".join(found[heads[0] :]).lstrip("*_# ")).removeprefix(marker)
    return any(ch.isalnum() for ch in rest)


def _alphabetical(text: str, args: NoArgs, language: str) -> bool:
    found = [normalise(re.sub(r"\A(?:[-*+•]|\d+[.)])\s+", "", line)) for line in segment.lines(text)]
    return len(found) > 1 and all(one <= other for one, other in pairwise(found))


CHECKS = (
    Check("detectable_format:table", "One Markdown table with these headings and full rows", TableArgs, _table),
    Check(
        "detectable_format:number_highlighted_sections",
        "Number of passages in *one* or **more** asterisks",
        Bounds,
        _highlights,
    ),
    Check(
        "detectable_format:multiple_sections",
        "Headings `SECTION 1`, `SECTION 2` and so on, in order, each with text below",
        SectionsArgs,
        _sections,
    ),
    Check(
        "detectable_format:title",
        "A title in double angle brackets",
        NoArgs,
        lambda t, a, lang: _TITLE.search(t) is not None,
    ),
    Check("detectable_format:plain", "No Markdown", NoArgs, lambda t, a, lang: _MARKDOWN.search(t) is None),
    Check("detectable_format:alphabetical", "The lines are in alphabetical order", NoArgs, _alphabetical),
    Check(
        "detectable_content:number_placeholders",
        "Number of [placeholders] in square brackets",
        Bounds,
        lambda t, a, lang: a.fit(len(_PLACEHOLDER.findall(t))),
    ),
    Check(
        "detectable_content:postscript",
        "A line after the text opens with the marker and says something",
        PostscriptArgs,
        _postscript,
    ),
)
