"""One answer with what several detectors need of it, worked out once and only when asked for. Pure."""

from __future__ import annotations

from functools import cached_property

from qgate.judge.defects.asked import Asked, asked
from qgate.judge.defects.enough import Loop
from qgate.judge.defects.foreign import Foreign, find_foreign
from qgate.judge.defects.loops import find_loop
from qgate.judge.defects.seen import NO_FAULT, Seen
from qgate.judge.defects.visible import has_visible


class View:
    """What the detectors read."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.text: str = seen.text or ""

    @cached_property
    def wishes(self) -> Asked:
        """What the prompt asks for."""
        return asked(self.seen.prompt)

    @cached_property
    def loop(self) -> Loop | None:
        """The loop that the answer is caught in."""
        return find_loop(self.seen, self.wishes)

    @cached_property
    def foreign(self) -> Foreign:
        """Letters of scripts that have no business in the answer."""
        return find_foreign(self.seen, self.wishes)

    @cached_property
    def is_blank(self) -> bool:
        """Whether there is nothing to see in the text."""
        return not has_visible(self.text)

    @property
    def is_excused_blank(self) -> bool:
        """Whether an answer without text is as it should be: a tool call, or a filter of the server's."""
        return self.seen.tool_calls > 0 or self.seen.finish_reason in NO_FAULT
