"""What a run has done so far: checkpoints, finished arms, failures. Held in memory; everything in it is in the store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from qgate.plan import GenerateStep, RankStep, ScoreStep
from qgate.rooms.arms import Arm
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.inspection import Inspection

ArmKey = tuple[str, int, str, str]
"""(variant, replicate, evalset, profile)."""
Key = TypeVar("Key")


@dataclass
class Work:
    """Filled from several threads, each under its own keys."""

    checkpoints: dict[str, Checkpoint] = field(default_factory=dict)
    generated: dict[ArmKey, Arm] = field(default_factory=dict)
    ranked: dict[ArmKey, Arm] = field(default_factory=dict)
    """Given continuations, scored through the key's variant."""
    references: dict[ArmKey, Arm] = field(default_factory=dict)
    """Right answers, scored through the key's variant."""
    forced: dict[ArmKey, Arm] = field(default_factory=dict)
    """The baseline's answers, teacher-forced through the key's variant."""
    under_baseline: dict[ArmKey, Arm] = field(default_factory=dict)
    """The key's answers, teacher-forced through the baseline."""
    task_scores: dict[tuple[str, int, str], dict[str, float]] = field(default_factory=dict)
    """(variant, replicate, set of lm-eval's tasks) to item to lm-eval's score of it, in [0, 1]."""
    inspections: dict[str, Inspection] = field(default_factory=dict)
    """What was seen of each checkpoint before it was served."""
    failures: dict[str, str] = field(default_factory=dict)
    timings_s: dict[str, float] = field(default_factory=dict)

    def add_asked(self, step: GenerateStep | RankStep, arm: Arm) -> None:
        """Note a finished step that needed no other's answers."""
        given = self.references if step.kind == "score" else self.ranked
        place = self.generated if isinstance(step, GenerateStep) else given
        place[key_of(step)] = arm

    def add_scored(self, step: ScoreStep, arm: Arm) -> None:
        """Note a finished score step."""
        if step.of_baseline:
            self.forced[key_of(step)] = arm
        else:
            self.under_baseline[(*step.source, step.evalset, step.profile)] = arm

    def sort(self, variants: Sequence[str]) -> None:
        """Order all by `variants`, as one server at a time would have left it: threads fill it as they come."""
        for place in (self.generated, self.ranked, self.references, self.forced):
            _reorder(place, lambda key: variants.index(key[0]))
        for named in (self.checkpoints, self.inspections, self.failures):
            _reorder(named, variants.index)


def key_of(step: GenerateStep | RankStep | ScoreStep) -> ArmKey:
    """Under which a step's finished arm is kept."""
    return step.variant, step.replicate, step.evalset, step.profile


def _reorder(place: dict[Key, Any], rank: Callable[[Key], int]) -> None:
    found = sorted(place.items(), key=lambda entry: rank(entry[0]))
    place.clear()
    place.update(found)
