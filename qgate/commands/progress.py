"""What a long run is doing, shown to a person: bars on a terminal, plain lines elsewhere. Writes to standard error."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from qgate.ports import Task, Watcher

LINE_EVERY_S = 30.0


class _BarTask:
    def __init__(self, progress: Progress, number: object, label: str) -> None:
        self.progress, self.number, self.label = progress, number, label

    def advance(self, num: int = 1) -> None:
        self.progress.advance(self.number, num)  # type: ignore[arg-type]

    def detail(self, text: str) -> None:
        shown = f"{escape(self.label)} [dim]{escape(text)}[/]"
        self.progress.update(self.number, description=shown)  # type: ignore[arg-type]


class BarWatcher:
    """Progress bars for a terminal. Use as a context."""

    def __init__(self) -> None:
        self.console = Console(stderr=True)
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
        )
        self.progress = Progress(*columns, console=self.console, transient=True)

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator[Task]:
        """A bar that disappears when the stretch ends and leaves one line behind."""
        began = time.monotonic()
        number = self.progress.add_task(escape(label), total=total, completed=done)
        try:
            yield _BarTask(self.progress, number, label)
            self.console.print(f"[green]✓[/] {escape(label)} [dim]{time.monotonic() - began:.0f} s[/]", highlight=False)
        finally:
            self.progress.remove_task(number)

    def note(self, text: str) -> None:
        """One line above the bars."""
        self.console.print(f"[yellow]•[/] {escape(text)}", highlight=False)


class _LineTask:
    def __init__(self, label: str, total: int | None, done: int) -> None:
        self.label, self.total, self.done = label, total, done
        self.step = ""
        self.said = time.monotonic()
        self.lock = threading.Lock()

    def advance(self, num: int = 1) -> None:
        with self.lock:
            self.done += num
            self._say()

    def detail(self, text: str) -> None:
        with self.lock:
            self.step = "" if self.label.endswith(text) else f", {text}"
            self._say()

    def _say(self) -> None:
        if time.monotonic() - self.said >= LINE_EVERY_S:
            self.said = time.monotonic()
            of = "" if self.total is None else f" of {self.total}"
            _line(f"  {self.label}: {self.done}{of}{self.step}")


class LineWatcher:
    """Plain lines for logs and CI: one when a stretch begins, one when it ends, one every 30 s between."""

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator[Task]:
        """A stretch of work."""
        began = time.monotonic()
        count = "" if total is None else f" ({total - done} to do)"
        _line(f"→ {label}{count}")
        yield _LineTask(label, total, done)
        _line(f"✓ {label} {time.monotonic() - began:.1f} s")

    def note(self, text: str) -> None:
        """One line."""
        _line(f"• {text}")


class _QuietTask:
    def advance(self, num: int = 1) -> None:
        return None

    def detail(self, text: str) -> None:
        return None


class QuietWatcher:
    """Shows notes only."""

    @contextmanager
    def task(self, label: str, total: int | None, done: int = 0) -> Iterator[Task]:
        """A stretch of work that nobody watches."""
        yield _QuietTask()

    def note(self, text: str) -> None:
        """One line."""
        _line(f"• {text}")


@contextmanager
def watching(*, quiet: bool) -> Iterator[Watcher]:
    """The watcher that fits where standard error goes."""
    if quiet:
        yield QuietWatcher()
    elif sys.stderr.isatty():
        watcher = BarWatcher()
        with watcher.progress:
            yield watcher
    else:
        yield LineWatcher()


def _line(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
