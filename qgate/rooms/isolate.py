"""An incident that was reproduced in, one thing changed at a time, experiments out. Touches engines and the store.

Cheapest first: what is a matter of the request, then what needs another server. All of an engine's settings are changed
at once first: where the failure stays, one start has cleared them all; where it goes, they are tried one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from qgate.judge import asks, factors, file_swap
from qgate.judge.asks import Ask, Factor, cheap_factors, defaults_taken, ladder, with_fields
from qgate.judge.effects import ROUNDS, Count
from qgate.levers import Lever, load_isolating
from qgate.ports import load_engine
from qgate.rooms.lab import Lab, Wanted
from qgate.rooms.replay import Setup
from qgate.rooms.sides import REFERENCE, with_engine, with_lever
from qgate.schemas.incident import Incident
from qgate.schemas.repro import Arm, Cost

REQUEST: Cost = "new request"
RESTART: Cost = "server restart"


def of_the_seeds(lab: Lab) -> None:
    """Whether seeds of a rare failure fail again: where they do not, they tell nothing of a change."""
    if not lab.failed:
        return
    again = asks.failed_again(lab.asks["candidate"], lab.failed)
    found = lab.run(again, lab.sides.candidate, REQUEST)
    names = ", ".join(map(str, lab.failed))
    if found.effect == "kept":
        lab.notes.append(f"a seed that failed fails again: ask with one of {names} to see it at once")
    elif found.ran:
        lab.notes.append(
            f"it comes and goes: {found.failures} of the {found.tries} seeds that failed ({names}) fail again"
        )
    if found.effect != "kept":
        lab.failed = ()


def of_the_request(lab: Lab, incident: Incident, arm: Arm) -> None:
    """Every factor that is a matter of the request, in one arm. Raises EngineError only for the store's sake."""
    setup, ask = lab.sides.setups[arm], lab.asks[arm]
    sent: Arm = "candidate" if "candidate" in lab.sides.checkpoints else arm  # whose defaults the arm was sent
    own = defaults_taken(incident.request.body, lab.sides.own_defaults[sent])
    for factor in cheap_factors(ask, own):
        if arm == "candidate" or factor.name != factors.NAN:
            lab.run(factor, setup, REQUEST, _few_of(lab, factor, arm))
    greedy = lab.find(factors.GREEDY, arm)
    if arm == "candidate" and greedy is not None and greedy.effect != "kept":
        for factor in ladder(ask):
            lab.run(factor, setup, REQUEST, lambda count: max(count.tries, ROUNDS[1]))
    for lever in _levers(setup, lab) if arm == "candidate" else ():
        if not lever.needs_start:
            lab.run(_pulled(lever, with_fields(ask, lever.request)), setup, REQUEST)


def _few_of(lab: Lab, factor: Factor, arm: Arm) -> Wanted | None:
    """A few tries are enough where no count decides: one seed, NaN, and an unquantized arm that does not fail."""
    if factor.name in {"one_seed", factors.NAN} or (arm == "baseline" and _is_sound(lab)):
        return _few
    return None


def _few(count: Count) -> int:
    return max(count.tries, ROUNDS[0])


def _is_sound(lab: Lab) -> bool:
    """Whether the unquantized model does not fail as filed."""
    found = lab.find(factors.AS_FILED, "baseline")
    return found is not None and found.effect == "gone"


def has_reference(lab: Lab, incident: Incident) -> bool:
    """Whether another engine can run the checkpoint: the one named, or transformers where it is not the one that failed."""
    if "candidate" not in lab.sides.checkpoints:
        return False
    return incident.reference is not None or lab.sides.candidate.engine.name not in {REFERENCE, "fake"}


def by_reference(lab: Lab, incident: Incident) -> None:
    """The same checkpoints in another engine. PluginError, EnvError: it is not to be had."""
    for arm, setup in lab.sides.setups.items():
        if arm in lab.sides.checkpoints:
            other = _of_reference(setup, incident)
            change = f"in the engine {other.engine.name}"
            factor = Factor(factors.REFERENCE, change, "a bad kernel from bad weights", lab.asks[arm])
            lab.run(factor, other, RESTART, _few if arm == "baseline" and _is_told(lab) else None)


def _is_told(lab: Lab) -> bool:
    """Whether the candidate in the other engine tells enough: a sound model is asked there only whether it fails always."""
    found = lab.find(factors.REFERENCE)
    return found is not None and (found.effect == "gone" or found.of_failed) and _is_sound(lab)


def _of_reference(setup: Setup, incident: Incident) -> Setup:
    engine = load_engine(incident.reference.engine if incident.reference else REFERENCE)
    env = incident.reference.env if incident.reference else None
    options = engine.options.model_validate(incident.reference.options if incident.reference else {})
    return with_engine(setup, engine, env, options)


def by_own_dtype(lab: Lab) -> None:
    """An unquantized model that fails in the candidate's float16, in the arithmetic that its own config.json says."""
    setup, filed = lab.sides.setups["baseline"], lab.find(factors.AS_FILED, "baseline")
    own = file_swap.arithmetic(lab.sides.files["baseline"])
    if filed is None or filed.effect != "kept" or setup.dtype != "float16" or own in {None, "float16", "half"}:
        return
    change = f"in {own}, as its config.json says"
    factor = Factor(factors.OWN_DTYPE, change, "an overflow of float16 from the model itself", lab.asks["baseline"])
    lab.run(factor, replace(setup, dtype=str(own)), RESTART)


def by_wider_range(lab: Lab, incident: Incident) -> None:
    """A candidate that fails in float16, in arithmetic of a wider range: in its engine, else in the reference engine.

    PluginError, EnvError: the reference engine is not to be had.
    """
    setup, ask = lab.sides.candidate, lab.asks["candidate"]
    reference = (_of_reference(setup, incident),) if has_reference(lab, incident) else ()
    for each in (setup, *reference):
        lever = next((lever for lever in _levers(each, lab) if lever.widens), None)
        if lever is not None and lab.run(_pulled(lever, ask), with_lever(each, lever), RESTART).ran:
            return


def once_more(lab: Lab, incident: Incident) -> None:
    """A running server as filed again, where something took the failure away: it may have changed meanwhile."""
    gone = any(each.arm == "candidate" and each.effect == "gone" for each in lab.experiments)
    if gone and incident.candidate.url is not None:
        lab.run(asks.once_more(lab.asks["candidate"]), lab.sides.candidate, REQUEST)


def of_the_engine(lab: Lab, *, every: bool) -> None:
    """The engine's settings: all at once, then one by one where that mends it, or where `every` one is wanted."""
    setup, ask = lab.sides.candidate, lab.asks["candidate"]
    levers = [lever for lever in _levers(setup, lab) if lever.needs_start]
    found = [each for lever in levers if (each := lab.find(f"{factors.LEVER}{lever.name}")) is not None]
    if any(each.effect == "gone" for each in found) and not every:
        return
    if len(levers) > 1:
        names = ", ".join(lever.change for lever in levers)
        all_pulled = lab.run(
            Factor(factors.ALL_LEVERS, f"with, all at once, {names}", "the engine's settings from all else", ask),
            _with_all(setup, lab, [lever.name for lever in levers]),
            RESTART,
        )
        if all_pulled.effect == "kept" and not every:
            return
    for lever in levers:
        if lab.find(f"{factors.LEVER}{lever.name}") is None:
            lab.run(_pulled(lever, ask), with_lever(setup, lever), RESTART)
        if every and "baseline" in lab.sides.checkpoints:
            baseline = lab.sides.setups["baseline"]
            lab.run(_pulled(lever, lab.asks["baseline"]), with_lever(baseline, lever), RESTART)


def _pulled(lever: Lever, ask: Ask) -> Factor:
    return Factor(f"{factors.LEVER}{lever.name}", f"with {lever.change}", lever.separates, ask)


def _levers(setup: Setup, lab: Lab) -> Sequence[Lever]:
    isolating = load_isolating(setup.engine.name)
    facts = lab.replayer.facts(lab.sides.candidate)
    return () if isolating is None or facts is None else isolating.levers(setup.options, facts)


def _with_all(setup: Setup, lab: Lab, names: Sequence[str]) -> Setup:
    """Pulled one after the other, since two may change the same option."""
    for name in names:
        lever = next((lever for lever in _levers(setup, lab) if lever.name == name), None)
        setup = setup if lever is None else with_lever(setup, lever)
    return setup


def not_isolated(lab: Lab, incident: Incident) -> Iterator[str]:
    """What cannot be changed here, and why."""
    if incident.candidate.url is not None:
        yield (
            "the candidate is a running server: its kernels, KV cache, graphs, parallelism, chat template, EOS tokens and "
            "weights cannot be changed from here; name its checkpoint instead of its URL"
        )
    elif load_isolating(lab.sides.candidate.engine.name) is None:
        yield f"the engine {lab.sides.candidate.engine.name} does not say what of it could be at fault"
    if incident.baseline is None:
        yield "there is no baseline: whether the model itself does it cannot be told; name one under `baseline`"
    elif incident.baseline.url is not None:
        yield "the baseline is a running server: its files cannot be compared with the candidate's"
