"""What threads did in any order is told as one server at a time would have left it."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from qgate.plan import GenerateStep
from qgate.rooms.arms import Arm
from qgate.rooms.work import Work
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.run import ArmRecord

ARM = Arm(cast(ArmRecord, None), Path())


def filled(*steps: tuple[str, int]) -> Work:
    work = Work()
    for variant, replicate in steps:
        work.add_asked(GenerateStep(variant, "set", "greedy", replicate, ()), ARM)
        work.checkpoints[variant] = cast(Checkpoint, None)
        work.failures[variant] = "why"
    work.sort(["baseline", "b", "a"])
    return work


def test_the_order_is_the_recipes_whoever_was_first() -> None:
    in_turn = filled(("baseline", 0), ("baseline", 1), ("b", 0), ("b", 1), ("a", 0))
    mixed = filled(("a", 0), ("baseline", 0), ("b", 0), ("baseline", 1), ("b", 1))
    assert list(mixed.generated) == list(in_turn.generated)
    assert [key[:2] for key in mixed.generated] == [("baseline", 0), ("baseline", 1), ("b", 0), ("b", 1), ("a", 0)]
    assert list(mixed.checkpoints) == list(mixed.failures) == ["baseline", "b", "a"]
