"""A loaded incident in, its cause and a folder to pass on out: the only file that knows the order.

    candidate as filed ─▶ its request's factors ─▶ minimise ─▶ baseline as filed, its factors, the minimal request
      ─▶ only while a cause is open: swapped files ─▶ another engine ─▶ plain weights ─▶ the engine's settings
      ─▶ attribution ─▶ repro.json, repro.md, repro.sh, repro.py

What was not reproduced ends after the first step. Every answer is stored as it comes: an interrupted run goes on.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from qgate.errors import EngineError, EnvError, IncidentError, PluginError
from qgate.io.incident import LoadedIncident
from qgate.io.scoring import load_scorer
from qgate.io.store import Store
from qgate.judge import file_swap
from qgate.judge.asks import Ask, Factor, as_filed
from qgate.judge.attribution import attribute
from qgate.judge.case import Case
from qgate.judge.effects import Count, wanted_as_filed, wanted_changed
from qgate.judge.recognise import Recogniser, filed_answer, recogniser
from qgate.judge.request_body import filled, left_out, limit_for
from qgate.judge.suspects import suspicions
from qgate.ports import Watcher
from qgate.rooms import isolate, swaps
from qgate.rooms.lab import Lab
from qgate.rooms.leave import Found, leave
from qgate.rooms.minimise import minimise
from qgate.rooms.replay import Replayer
from qgate.rooms.sides import REFERENCE, Sides, sides
from qgate.rooms.tell_apart import tell_apart
from qgate.schemas.incident import Incident
from qgate.schemas.minimised import Minimised
from qgate.schemas.repro import Arm, Experiment, FileDifference, Repro, State, Suspect

DEFAULT_RATE = 0.10
FEWEST_FAILURES = 3
"""Failures without which no change of their rate can be seen by tries that anybody would wait for."""
CERTAIN_CALLS, FLAKY_CALLS, MOST_CALLS = 200, 1800, 4000
"""Model calls that minimising may take; a failure that is certain needs one try where a flaky one needs many."""


@dataclass(frozen=True)
class Wishes:
    """How thorough the user wants it."""

    rate: float | None = None
    """Failure rate that the replay must be able to see; None: the filed one, at most 10 %."""
    calls: int | None = None
    """Model calls that minimising may take; 0: none; None: as many as it usually needs."""
    every: bool = False
    """Every factor, also those that can no longer change the cause."""


@dataclass(frozen=True)
class Outcome:
    """The report and where it lies."""

    report: Repro
    folder: Path


def run(loaded: LoadedIncident, folder: Path, store: Store, watcher: Watcher, wishes: Wishes) -> Outcome:
    """Replay, isolate, minimise, attribute, and write what is left behind. Raises QgateError."""
    started = datetime.now(UTC)
    incident = loaded.incident
    recognised = _recogniser(incident)
    found_sides = sides(loaded, store, folder, watcher)
    differences = _differences(found_sides)
    rate = wishes.rate or min(DEFAULT_RATE, incident.frequency.rate if incident.frequency else 1.0)
    with Replayer(store.objects, folder, watcher, incident.concurrency) as replayer:
        lab = Lab(replayer, found_sides, recognised, _asks(incident, found_sides))
        filed = lab.run(
            _filed(lab, "candidate"), found_sides.candidate, isolate.REQUEST, lambda n: wanted_as_filed(n, rate)
        )
        _check_answered(filed)
        minimal: Minimised | None = None
        arms: tuple[Experiment, ...] = ()
        if filed.failures >= FEWEST_FAILURES:
            isolate.of_the_seeds(lab)
            isolate.of_the_request(lab, incident, "candidate")
            minimal, arms = _in_both(lab, incident, _minimised(lab, wishes))
            _isolate(lab, loaded, differences, folder, store, wishes)
            isolate.once_more(lab, incident)
        elif filed.failures:
            lab.notes.append(
                f"seen {filed.failures} of {filed.tries} times: too seldom to tell what takes it away; nothing was isolated"
            )
        found = Found(
            loaded, lab, attribute(_case(lab, incident, differences)), differences, rate, started,
            minimal, arms, tuple(isolate.not_isolated(lab, incident)) if filed.failures else (),
        )  # fmt: skip
        report = leave(found, folder)
    return Outcome(report, folder)


def _recogniser(incident: Incident) -> Recogniser:
    """Tells failed answers from good ones. Raises PluginError, and IncidentError where its scorer refuses its arguments."""
    found, how = recogniser(incident, load_scorer), incident.recognise
    if found.scorer is not None and how.scorer is not None:
        try:
            found.scorer("", how.scorer.args, how.language)
        except ValueError as error:
            advice = "docs/scorers.md has the arguments of each scorer"
            raise IncidentError(f"recognise.scorer.args: {error}", advice=advice) from error
    return found


def _check_answered(filed: Experiment) -> None:
    """Raises EngineError where the candidate hardly answered: then nothing is known of its answers."""
    if not filed.ran:
        why = filed.example.why if filed.example else "no answer"
        raise EngineError(
            f"the candidate answered {filed.tries or 'none'} of {filed.tries + filed.missing} tries: {why}",
            advice="name the variable that holds the server's key: `candidate: {api_key_env: …}`"
            if re.search(r"\bHTTP 40[13]\b", why)
            else "if that is the failure itself, write `recognise: {error: true}`",
        )


def _asks(incident: Incident, found: Sides) -> dict[Arm, Ask]:
    """The request as each arm is asked it. Where the candidate's defaults are known, both arms are sent the same values."""
    body, limit = incident.request.body, limit_for(filed_answer(incident.answer).completion_tokens)
    if "candidate" in found.checkpoints:
        full = filled(body, found.own_defaults["candidate"], limit)
        return {arm: Ask(full, incident.concurrency) for arm in found.setups}
    bare = body if "max_tokens" not in left_out(body) else {**body, "max_tokens": limit}
    asks: dict[Arm, Ask] = {"candidate": Ask(bare, incident.concurrency)}
    if "baseline" in found.setups:
        at_hand = "baseline" in found.checkpoints
        other = filled(bare, found.own_defaults["baseline"], limit) if at_hand else bare
        asks["baseline"] = Ask(other, incident.concurrency)
    return asks


def _filed(lab: Lab, arm: Arm) -> Factor:
    return as_filed(lab.asks[arm])


def _minimised(lab: Lab, wishes: Wishes) -> Minimised | None:
    count, body = lab.filed, lab.asks["candidate"].body
    assert count is not None
    load = lab.other(body).in_flight
    usual = (CERTAIN_CALLS if count.rate >= 0.999 else FLAKY_CALLS) * load
    calls = min(MOST_CALLS, usual) if wishes.calls is None else wishes.calls
    if not calls:
        return None
    try:
        return minimise(body, lab.tries, rate=count.rate, budget=calls, watcher=lab.replayer.watcher, at_once=load)
    except EngineError as error:
        lab.notes.append(f"minimising ended early: {error.message.splitlines()[0]}")
    except ValueError as error:
        lab.notes.append(f"nothing was minimised: {error}")
    return None


def _minimal(lab: Lab, arm: Arm, minimal: Minimised | None) -> tuple[Experiment, ...]:
    """The minimal request in one arm, where fresh tries confirmed it."""
    if minimal is None or not minimal.verified:
        return ()
    factor = Factor("minimal", "asked the minimal request", "", lab.other(minimal.body, arm))
    filed = lab.filed or Count(0, 0)
    found = lab.run(factor, lab.sides.setups[arm], isolate.REQUEST, lambda count: wanted_changed(count, filed))
    lab.experiments.remove(found)
    return (found,)


def _in_both(
    lab: Lab, incident: Incident, minimal: Minimised | None
) -> tuple[Minimised | None, tuple[Experiment, ...]]:
    """The unquantized arm: as filed, its factors; then the minimal request in both, one that only the candidate fails on."""
    arms = _minimal(lab, "candidate", minimal)
    if "baseline" not in lab.sides.setups:
        return minimal, arms
    filed = lab.run(_filed(lab, "baseline"), lab.sides.setups["baseline"], isolate.REQUEST)
    if not filed.ran:
        return minimal, arms
    isolate.of_the_request(lab, incident, "baseline")
    if minimal is not None and minimal.verified and filed.effect == "gone":
        apart = _apart(lab, minimal)
        arms = arms if apart.body == minimal.body else _minimal(lab, "candidate", apart)
        minimal = apart
    found = _minimal(lab, "baseline", minimal)
    if found and found[0].effect == "kept" and filed.effect != "kept":
        lab.notes.append(
            "the minimal request fails in the unquantized model too: it shows another failure than the filed one"
        )
    return minimal, (*arms, *found)


def _apart(lab: Lab, minimal: Minimised) -> Minimised:
    try:
        return tell_apart(minimal, lab.tries, partial(lab.tries, arm="baseline"), lab.replayer.watcher)
    except EngineError as error:
        lab.notes.append(f"the minimal request was not told apart: {error.message.splitlines()[0]}")
        return minimal


def _isolate(
    lab: Lab,
    loaded: LoadedIncident,
    differences: tuple[FileDifference, ...],
    folder: Path,
    store: Store,
    wishes: Wishes,
) -> None:
    """What needs another server, while the cause that it settles is open."""
    incident, views = loaded.incident, folder / "views"
    steps: list[tuple[Suspect, tuple[State, ...], bool, Callable[[], None]]] = [
        ("template_or_tokenizer", ("open",), lab.sides.both_at_hand, lambda: swaps.with_baselines_template(lab, views)),
        ("eos_or_configuration", ("open",), lab.sides.both_at_hand,
         lambda: swaps.with_baselines_configuration(lab, views)),
        ("kernel_or_engine", ("open", "excluded"), "baseline" in lab.sides.checkpoints, lambda: isolate.by_own_dtype(lab)),
        ("kernel_or_engine", ("open",), isolate.has_reference(lab, incident), lambda: isolate.by_reference(lab, incident)),
        ("kernel_or_engine", ("open",), _is_quantized(lab), lambda: swaps.with_plain_weights(lab, store, folder / "work")),
        ("weights", ("shown",), "candidate" in lab.sides.checkpoints, lambda: _by_wider_range(lab, incident, differences)),
        ("kernel_or_engine", ("open", "shown"), "candidate" in lab.sides.checkpoints,
         lambda: isolate.of_the_engine(lab, every=wishes.every)),
    ]  # fmt: skip
    for cause, states, possible, step in steps:
        found = {each.cause: each.state for each in suspicions(_case(lab, incident, differences))}
        if possible and (wishes.every or found[cause] in states):
            try:
                step()
            except (EnvError, PluginError) as error:
                lab.notes.append(f"not tried: {error.message}" + (f" ({error.advice})" if error.advice else ""))


def _by_wider_range(lab: Lab, incident: Incident, differences: tuple[FileDifference, ...]) -> None:
    if _case(lab, incident, differences).may_overflow:
        isolate.by_wider_range(lab, incident)


def _is_quantized(lab: Lab) -> bool:
    config = lab.sides.files.get("candidate", {}).get(file_swap.CONFIG, b"")
    return lab.sides.candidate.engine.name != REFERENCE and b"quantization_config" in config


def _differences(found: Sides) -> tuple[FileDifference, ...]:
    if not found.both_at_hand:
        return ()
    return file_swap.differences(found.files["candidate"], found.files["baseline"])


def _case(lab: Lab, incident: Incident, differences: tuple[FileDifference, ...]) -> Case:
    return Case(
        experiments=tuple(lab.experiments),
        temperature=lab.asks["candidate"].temperature,
        concurrency=incident.concurrency,
        files_compared=lab.sides.both_at_hand,
        differences=differences,
        engine_is_reference=lab.sides.candidate.engine.name == REFERENCE,
    )
