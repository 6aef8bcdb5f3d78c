"""All that a verdict rests on: the experiments of an incident in, their effects by factor and arm out. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from qgate.judge.effects import WHOLE_SHARE, Count, is_whole
from qgate.judge.factors import ALL_LEVERS, AS_FILED, CONFIGURATION, LEVER, NAN, OWN_DTYPE, TEMPLATE, WIDE, excludes
from qgate.schemas.repro import Arm, Effect, Experiment, FileDifference


@dataclass(frozen=True)
class Case:
    """All that a verdict rests on."""

    experiments: tuple[Experiment, ...]
    temperature: float
    concurrency: int
    files_compared: bool
    """Whether both arms' template, tokenizer and configuration files were at hand."""
    differences: tuple[FileDifference, ...] = ()
    engine_is_reference: bool = False
    """Whether the candidate was served by the engine that others are held against."""
    by_key: Mapping[tuple[str, Arm], Experiment] = field(init=False)

    def __post_init__(self) -> None:
        found = {(each.factor, each.arm): each for each in self.experiments if each.ran}
        object.__setattr__(self, "by_key", found)

    def get(self, factor: str, arm: Arm = "candidate") -> Experiment | None:
        """An experiment that gave answers."""
        return self.by_key.get((factor, arm))

    def effect(self, factor: str, arm: Arm = "candidate") -> Effect | None:
        """What a factor did; None where it was not tried, unclear where it was asked another prompt than as filed."""
        found = self.get(factor, arm)
        if found is None:
            return None
        return "unclear" if self.is_other_prompt(found) else found.effect

    def is_other_prompt(self, found: Experiment) -> bool:
        """Whether an experiment that should change no prompt did: other ids than the same arm's as filed."""
        filed = self.get(AS_FILED, found.arm)
        changes_it = found.factor in {AS_FILED, TEMPLATE, CONFIGURATION}
        if changes_it or filed is None or not filed.prompt_sha256 or not found.prompt_sha256:
            return False
        return found.prompt_sha256 != filed.prompt_sha256

    def said(self, factor: str, arm: Arm = "candidate") -> str:
        """An experiment with its figures."""
        found = self.get(factor, arm)
        return f"{factor}: not tried" if found is None else told(found)

    @property
    def prompts(self) -> Literal["equal", "differ", "unknown"]:
        """Whether both arms read the same prompt as filed."""
        arms: tuple[Arm, ...] = ("candidate", "baseline")
        hashes = [each.prompt_sha256 for arm in arms if (each := self.get(AS_FILED, arm)) and each.prompt_sha256]
        return "unknown" if len(hashes) < 2 else "equal" if hashes[0] == hashes[1] else "differ"

    def is_whole(self, found: Experiment) -> bool:
        """Whether an experiment left the larger part of the failures for sure."""
        if found.of_failed:
            return Count(found.failures, found.tries).low > WHOLE_SHARE
        filed = self.by_key[AS_FILED, "candidate"]
        return is_whole(Count(found.failures, found.tries), Count(filed.failures, filed.tries))

    @property
    def baseline_fails_alike(self) -> bool:
        """Whether the unquantized model fails about as often, so that no more is to be explained."""
        found = self.get(AS_FILED, "baseline")
        return found is not None and self.effect(AS_FILED, "baseline") == "kept" and self.is_whole(found)

    @property
    def may_overflow(self) -> bool:
        """Whether the candidate ran in float16, and no arithmetic of a wider range was seen to keep the failure."""
        ours = [each for each in self.by_key.values() if each.arm == "candidate"]
        wider = [each for each in ours if each.dtype in WIDE and self.effect(each.factor) == "kept"]
        return self.by_key[AS_FILED, "candidate"].dtype == "float16" and not wider

    @property
    def is_one_answer(self) -> bool:
        """Whether all tries may be one greedy answer, which another arithmetic may change by chance: no NaN in it tells why."""
        nan = self.get(NAN)
        return self.temperature == 0 and not (nan is not None and nan.nonfinite)

    @property
    def least_kept(self) -> tuple[Experiment, float] | None:
        """Of the experiments that clear a cause since the failure stays: the one that leaves the least of the failures for
        sure, and the share that it leaves, at least (95 %). What is not left may be chance, or have that cause."""
        filed = self.by_key[AS_FILED, "candidate"]
        rate = Count(filed.failures, filed.tries).rate
        kept = [
            (each, min(1.0, Count(each.failures, each.tries).low / (1.0 if each.of_failed else rate)))
            for each in self.by_key.values()
            if excludes(each.factor, each.arm) and self.effect(each.factor, each.arm) == "kept"
        ]
        return min(kept, key=lambda pair: pair[1], default=None)

    def left_over(self, because: str) -> Experiment | None:
        """Of the experiments that show a cause `because` the failure goes: one in which some tries fail all the same."""
        gone = (each for each in self.by_key.values() if each.effect == "gone" and told(each) in because)
        return next((each for each in gone if each.failures), None)

    @property
    def comes_and_goes(self) -> bool:
        """Whether the failure as filed is no certain one, so that two causes may share in it."""
        filed = self.by_key[AS_FILED, "candidate"]
        return filed.failures < filed.tries

    def levers(self, effect: Effect) -> list[Experiment]:
        """Settings whose change had this effect, single ones first: the engine's on the candidate, the dtype on a baseline
        that fails too."""
        changed = [
            each
            for each in self.by_key.values()
            if each.factor == OWN_DTYPE or (each.factor.startswith(LEVER) and each.arm == "candidate")
        ]
        found = [each for each in changed if self.effect(each.factor, each.arm) == effect]
        return sorted(found, key=lambda each: each.factor == ALL_LEVERS)


def told(found: Experiment) -> str:
    """An experiment in one clause."""
    who = "the unquantized model" if found.arm == "baseline" else "the candidate"
    return f"{who} {found.change}: {told_count(found)}"


def told_count(found: Experiment) -> str:
    """Its failures, and of what."""
    tries = f"the {found.tries} seeds that failed as filed" if found.of_failed else str(found.tries)
    return f"{found.failures} of {tries} fail"
