"""A rate map as a picture: for a terminal or a Markdown fence as text, for a page as SVG. Pure: a map in, text out.

A row is a length of the prompt, a column a temperature; a cell says how often requests there failed, with the exact
95 % interval of it, and is the darker the oftener. Cells without tries stay empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from qgate.schemas.minimised import Rate, RateMap

SHADES = " ░▒▓█"
CORNER = "characters"
EMPTY = "·"
_CELL_WIDTH, _CELL_HEIGHT, _LEFT, _TOP = 116, 34, 120, 44
"""Of the SVG, in pixels."""


def as_text(rate_map: RateMap, width: int | None = None) -> str:
    """The picture in plain text, longest prompts first, without a line end; nothing where there was no try.

    Where it would be wider than `width` characters, cells have no intervals.
    """
    picture = _as_text(rate_map, _cell)
    too_wide = width is not None and any(len(line) > width for line in picture.splitlines())
    return _as_text(rate_map, _short_cell) if too_wide else picture


def _as_text(rate_map: RateMap, of: Callable[[Rate | None], str]) -> str:
    if not rate_map.cells:
        return ""
    cells = _by_place(rate_map)
    rows = [[CORNER, *(_temperature(value) for value in rate_map.temperatures)]]
    for row, (shortest, longest) in reversed(list(enumerate(rate_map.lengths))):
        found = [cells.get((row, column)) for column in range(len(rate_map.temperatures))]
        rows.append([_length(shortest, longest), *(of(rate) for rate in found)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = ["  ".join(word.ljust(width) for word, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join(lines)


def as_svg(rate_map: RateMap) -> str:
    """The picture as one SVG element, in the page's colours; nothing where there was no try."""
    if not rate_map.cells:
        return ""
    cells, rows = _by_place(rate_map), len(rate_map.lengths)
    width = _LEFT + _CELL_WIDTH * len(rate_map.temperatures)
    height = _TOP + _CELL_HEIGHT * rows
    marks = [
        _text(_LEFT + _CELL_WIDTH * (column + 0.5), _TOP - 10, _temperature(value))
        for column, value in enumerate(rate_map.temperatures)
    ]
    marks.append(_text(_LEFT / 2, _TOP - 10, CORNER))
    for row, (shortest, longest) in enumerate(rate_map.lengths):
        top = _TOP + _CELL_HEIGHT * (rows - 1 - row)
        marks.append(_text(_LEFT / 2, top + _CELL_HEIGHT / 2 + 4, _length(shortest, longest)))
        for column in range(len(rate_map.temperatures)):
            marks += _square(_LEFT + _CELL_WIDTH * column, top, cells.get((row, column)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-label="Failure rate over prompt length and temperature" font-size="12" '
        f'font-family="system-ui, sans-serif">{"".join(marks)}</svg>'
    )


def _by_place(rate_map: RateMap) -> Mapping[tuple[int, int], Rate]:
    return {(cell.length, cell.temperature): cell.rate for cell in rate_map.cells}


def _temperature(value: float | None) -> str:
    return "default" if value is None else f"T {value:g}"


def _length(shortest: int, longest: int) -> str:
    return f"{shortest}" if shortest == longest else f"{shortest}–{longest}"


def _cell(rate: Rate | None) -> str:
    if rate is None or rate.value is None:
        return EMPTY
    return f"{SHADES[round(rate.value * (len(SHADES) - 1))]} {_share(rate)}"


def _short_cell(rate: Rate | None) -> str:
    return _cell(rate).partition(" (")[0]


def _share(rate: Rate) -> str:
    """As in `30 % (7–65)`."""
    return f"{100 * (rate.value or 0):.0f} % ({100 * rate.low:.0f}–{100 * rate.high:.0f})"


def _text(x: float, y: float, words: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="currentColor">{words}</text>'


def _square(left: float, top: float, rate: Rate | None) -> list[str]:
    if rate is None or rate.value is None:
        return [_text(left + _CELL_WIDTH / 2, top + _CELL_HEIGHT / 2 + 4, EMPTY)]
    opacity = 0.05 + 0.6 * rate.value
    square = (
        f'<rect x="{left:g}" y="{top:g}" width="{_CELL_WIDTH - 2}" height="{_CELL_HEIGHT - 2}" '
        f'fill="var(--heat, #c2410c)" fill-opacity="{opacity:.2f}">'
        f"<title>{rate.failures} of {rate.tries} tries failed</title></rect>"
    )
    return [square, _text(left + _CELL_WIDTH / 2, top + _CELL_HEIGHT / 2 + 4, _share(rate))]
