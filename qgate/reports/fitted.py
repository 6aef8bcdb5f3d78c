"""Makes what rich prints fit a terminal: tables parted over its width, no blanks at the ends of lines. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

ENDLESS = 10_000
"""Columns of a terminal on which every table fits."""
LONGEST_NAME = 24
"""Columns that a name in the first column may demand; a longer one is folded."""


@dataclass(frozen=True)
class Page:
    """Everything that `parts` gives, without blanks at the ends of lines, which pipes and copies would keep."""

    parts: Callable[[], Iterable[RenderableType]]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for line in console.render_lines(Group(*self.parts()), options, pad=False):
            kept = list(line)
            while kept and not kept[-1].text.strip():
                kept.pop()
            yield from kept[:-1]
            yield from (Segment(last.text.rstrip(), last.style) for last in kept[-1:])
            yield Segment.line()


@dataclass(frozen=True)
class Parted:
    """A table, or as many with the same first column as it takes for every cell to keep its words whole."""

    first: str
    heads: Sequence[Text]
    rows: Sequence[tuple[Text, Sequence[Text]]]
    """The first cell of each row, and the others, which stay on one line."""
    right: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        wide = options.update(max_width=ENDLESS)
        tables: list[Table] = []
        for num_tables, tight in product(range(1, len(self.heads) + 1), (False, True)):
            size = -(-len(self.heads) // num_tables)
            tables = [self._table(slice(at, at + size), tight=tight) for at in range(0, len(self.heads), size)]
            if all(Measurement.get(console, wide, table).maximum < options.max_width for table in tables):
                break
        for number, table in enumerate(tables):
            yield Padding(table, (1 if number else 0, 0, 0, 1))

    def _table(self, part: slice, *, tight: bool) -> Table:
        """The table of some columns; where it is `tight`, heads and first cells are wrapped between their words."""
        table = Table(box=box.SIMPLE_HEAD, show_edge=False)
        labels = [label for label, _ in self.rows]
        names = min(_longest([Text(self.first), *labels]), LONGEST_NAME)
        table.add_column(self.first, width=names if tight else None, overflow="fold")
        side: JustifyMethod = "right" if self.right else "left"
        for place, head in list(enumerate(self.heads))[part]:
            widest = max([_longest([head]), *(cells[place].cell_len for _, cells in self.rows)])
            table.add_column(head, width=widest if tight else None, justify=side, overflow="fold")
        for label, cells in self.rows:
            table.add_row(label, *cells[part])
        return table


def _longest(texts: Iterable[Text]) -> int:
    """Columns of the longest word."""
    return max(cell_len(word) for text in texts for word in text.plain.split() or [""])
