"""A factor and an arm in, an experiment out: what every experiment of an incident shares. Touches engines and the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from qgate.errors import EngineError
from qgate.judge import factors
from qgate.judge.asks import Ask, Factor
from qgate.judge.case import told_count
from qgate.judge.effects import RARE, ROUNDS, Count, keeps_seeds, wanted_changed, wanted_whole
from qgate.judge.experiments import count, experiment, num_nonfinite, refused
from qgate.judge.recognise import Recogniser
from qgate.rooms.replay import Replayer, Setup, replay, tries
from qgate.rooms.sides import Sides
from qgate.schemas.answers import Answer
from qgate.schemas.minimised import Body
from qgate.schemas.repro import Arm, Cost, Experiment

Wanted = Callable[[Count], int]


@dataclass
class Lab:
    """Where experiments are run, and what was found so far."""

    replayer: Replayer
    sides: Sides
    recogniser: Recogniser
    asks: Mapping[Arm, Ask]
    """The request as filed: equal in both arms, but where a server's own defaults are not known."""
    experiments: list[Experiment] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failed: tuple[int, ...] = ()
    """Seeds that failed as filed and may tell what keeps the failure: none where it is not rare."""

    @property
    def filed(self) -> Count | None:
        """The candidate's count as filed, once it was asked."""
        return next((Count(each.failures, each.tries) for each in self.experiments), None)

    def run(self, factor: Factor, setup: Setup, cost: Cost, wanted: Wanted | None = None) -> Experiment:
        """Run one experiment and note it; an engine that fails makes it one that was refused. Raises EngineError where
        the candidate cannot be asked as filed: then there is nothing to isolate."""
        filed = self.filed
        usual = wanted_whole if factors.excludes(factor.name, setup.arm) else wanted_changed
        enough = wanted or (lambda count: usual(count, filed or Count(0, 0)))
        try:
            if wanted is None and self.failed:
                first, answers = self._with_failed(factor, setup, cost)
                if first.effect == "kept" or factor.ask.seeds:
                    return self._noted(first, setup, answers)
            found, answers = replay(self.replayer, setup, factor, self.recogniser, enough)
        except EngineError as error:
            if filed is None:
                raise
            return self._refuse(factor, setup.arm, error, cost)
        if filed is None and count(found).rate < RARE:
            self.failed = tuple(dict.fromkeys(each.seed for each in found if each.failed))[: ROUNDS[0]]
        return self._noted(experiment(factor, setup.arm, found, filed, cost=cost), setup, answers)

    def _with_failed(self, factor: Factor, setup: Setup, cost: Cost) -> tuple[Experiment, list[Answer]]:
        """The same on the seeds that failed as filed, once each: it may show that the failure stays, and nothing else."""
        ask = replace(factor.ask, seeds=self.failed)
        answers = self.replayer.answers(setup, ask, len(self.failed))[: len(self.failed)]
        found = experiment(factor, setup.arm, tries(answers, ask, self.recogniser), None, cost=cost)
        effect = "kept" if keeps_seeds(Count(found.failures, found.tries)) else "unclear"
        return found.model_copy(update={"effect": effect, "of_failed": True}), answers

    def _noted(self, found: Experiment, setup: Setup, answers: Sequence[Answer]) -> Experiment:
        facts = self.replayer.facts(setup)
        done = found.model_copy(
            update={
                "engine": setup.engine.name,
                "dtype": facts.dtype if facts else "",
                "key": setup.key,
                "nonfinite": num_nonfinite(answers),
            }
        )
        self.experiments.append(done)
        self.replayer.watcher.note(f"{setup.arm}, {done.change}: {told_count(done)}")
        return done

    def _refuse(self, factor: Factor, arm: Arm, error: EngineError, cost: Cost) -> Experiment:
        said = error.message.splitlines()[0]
        self.replayer.watcher.note(f"{arm}, {factor.change}: {said}")
        done = refused(factor, arm, said, cost=cost)
        self.experiments.append(done)
        return done

    def other(self, body: Body, arm: Arm = "candidate") -> Ask:
        """Another body, under the filed load; alone, where it was seen that the load does not matter."""
        alone = self.find(factors.ONE_AT_A_TIME)
        ask = replace(self.asks[arm], body=body)
        return replace(ask, in_flight=1) if alone is not None and alone.effect == "kept" else ask

    def tries(self, body: Body, num: int, arm: Arm = "candidate") -> Sequence[bool]:
        """Whether each of the first `num` tries of a body failed, served as filed (see schemas.repro.Tries)."""
        ask = self.other(body, arm)
        answers = self.replayer.answers(self.sides.setups[arm], ask, num)
        return [each.failed for each in tries(answers, ask, self.recogniser)[:num] if each.came]

    def find(self, factor: str, arm: Arm = "candidate") -> Experiment | None:
        """An experiment that was run."""
        return next((each for each in self.experiments if (each.factor, each.arm) == (factor, arm)), None)
