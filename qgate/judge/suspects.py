"""What the experiments say of each cause: shown, excluded or open, and which experiment would settle it. Pure.

The rules are those of people who look for such faults by hand. A cause is shown by the experiment that takes it away and
the failure with it, and excluded by one that takes it away and leaves the failure, or that cannot be because of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qgate.judge.case import Case, told
from qgate.judge.factors import (
    AS_FILED,
    CONFIGURATION,
    DEQUANTIZED,
    GREEDY,
    NAN,
    NEUTRAL,
    ONE_AT_A_TIME,
    REFERENCE,
    TEMPLATE,
    WIDENING,
)  # fmt: skip
from qgate.schemas.repro import Arm, Experiment, Suspect, Suspicion

WANT_BASELINE = "the unquantized model, asked the same"
WANT_GREEDY = "the request at temperature 0"
WANT_TEMPLATE = "the candidate with the baseline's chat template and tokenizer"
WANT_CONFIGURATION = "the candidate with the baseline's EOS tokens and configuration"
WANT_LOAD = "the request alone on the server"
WANT_RANGE = "the candidate in bfloat16 or float32, where nothing overflows (an engine and a checkpoint that can)"
WANT_SEEDS = (
    "the request above temperature 0, with and without the change: one greedy answer may change with any rounding"
)
WANT_RATE = (
    "the request where it fails more often (more load, a higher temperature): too few of the tries failed to tell whether "
    "the change takes all of the failures away, a part or none"
)
WANT_TRIES = "more tries: of a failure that comes now and then, a part may have a second cause"
WANT_PARTS = "what takes the rest away: this change takes a part of the failures, so two causes may share in it"
WANT_KERNEL = "the same checkpoint in another engine (transformers), or its weights dequantized in this one"


def suspicions(case: Case) -> tuple[Suspicion, ...]:
    """One per cause, in the order in which one takes precedence over the next."""
    found: dict[Suspect, Suspicion] = {}
    for suspect in (_template, _configuration, _load, _sampling, _kernel, _baseline_too, _weights):
        suspicion = suspect(case, found)
        found[suspicion.cause] = suspicion
    return tuple(found.values())


Found = Mapping[Suspect, Suspicion]


def _shown(cause: Suspect, because: str, missing: str | None = None) -> Suspicion:
    return Suspicion(cause=cause, state="shown", because=because, missing=missing)


def _excluded(cause: Suspect, because: str) -> Suspicion:
    return Suspicion(cause=cause, state="excluded", because=because)


def _open(cause: Suspect, because: str, missing: str | None) -> Suspicion:
    return Suspicion(cause=cause, state="open", because=because, missing=missing)


def _is_shown(found: Found, *causes: Suspect) -> Iterator[Suspicion]:
    return (found[cause] for cause in causes if cause in found and found[cause].state == "shown")


def _cleared(case: Case, what: str, other: Suspicion) -> str:
    """What is common to the failure and to what takes it away."""
    fail = "do not fail" if case.left_over(other.because) is None else "fail far less"
    return f"{what} {fail} otherwise ({other.because})"


def _wanted(case: Case, factor: str, experiment: str, arm: Arm = "candidate") -> str:
    """What an open cause wants: the experiment, or, where it was run and told nothing, more of what it counts."""
    effect = case.effect(factor, arm)
    if effect is None:
        return experiment
    unclear = WANT_RATE if case.comes_and_goes else WANT_PARTS
    return {"unclear": unclear, "less": WANT_PARTS}.get(effect, WANT_TRIES)


def _template(case: Case, found: Found) -> Suspicion:
    cause: Suspect = "template_or_tokenizer"
    swapped, prompts = case.effect(TEMPLATE), case.prompts
    if swapped == "gone":
        return _shown(cause, case.said(TEMPLATE))
    if prompts == "differ":
        return _other_prompt(case)
    if swapped == "kept":
        return _excluded(cause, case.said(TEMPLATE))
    if case.files_compared and not any(each.of == cause for each in case.differences):
        return _excluded(cause, "both arms have the same template and tokenizer files")
    if prompts == "equal" and not case.files_compared:
        return _excluded(cause, "both arms read the same prompt token ids")
    because = "the arms' files differ" if case.files_compared else "whether the arms' templates differ is not known"
    return _open(cause, because, _wanted(case, TEMPLATE, WANT_TEMPLATE))


def _other_prompt(case: Case) -> Suspicion:
    """The arms read other prompts: cleared only where the candidate read the baseline's and failed all the same."""
    cause: Suspect = "template_or_tokenizer"
    swapped, baseline = case.get(TEMPLATE), case.get(AS_FILED, "baseline")
    if swapped is not None and baseline is not None and swapped.effect == "kept":
        if swapped.prompt_sha256 == baseline.prompt_sha256:
            return _excluded(cause, case.said(TEMPLATE))
        because = "the prompt's token ids differ between the arms whatever files the candidate has"
        return _open(cause, because, "the same template in both arms, also on the command line")
    return _open(cause, "the prompt's token ids differ between the arms", WANT_TEMPLATE)


def _configuration(case: Case, found: Found) -> Suspicion:
    cause: Suspect = "eos_or_configuration"
    for factor in (CONFIGURATION, NEUTRAL):
        if case.effect(factor) == "gone":
            return _shown(cause, case.said(factor))
    if case.effect(CONFIGURATION) == "kept":
        return _excluded(cause, case.said(CONFIGURATION))
    if case.files_compared and not any(each.of == cause for each in case.differences):
        because = "both arms have the same EOS tokens and configuration"
        return _excluded(cause, because)
    because = (
        "the arms' files differ" if case.files_compared else "whether the arms' configuration differs is not known"
    )
    return _open(cause, because, _wanted(case, CONFIGURATION, WANT_CONFIGURATION))


def _load(case: Case, found: Found) -> Suspicion:
    cause: Suspect = "nondeterminism_under_load"
    if case.concurrency == 1:
        return _excluded(cause, "it fails with one request in flight")
    alone = case.effect(ONE_AT_A_TIME)
    if alone == "gone":
        return _shown(cause, case.said(ONE_AT_A_TIME))
    if alone == "kept":
        return _excluded(cause, case.said(ONE_AT_A_TIME))
    because = f"it was seen with {case.concurrency} requests in flight"
    return _open(cause, because, _wanted(case, ONE_AT_A_TIME, WANT_LOAD))


def _sampling(case: Case, found: Found) -> Suspicion:
    cause: Suspect = "sampling"
    if why := _not_sampling(case):
        return _excluded(cause, why)
    if case.effect(GREEDY) != "gone":
        missing = _wanted(case, GREEDY, WANT_GREEDY)
        return _open(cause, "whether it fails without chance in it is not clear", missing)
    if case.effect(AS_FILED, "baseline") != "kept":
        return _open(cause, case.said(GREEDY), _wanted(case, AS_FILED, WANT_BASELINE, "baseline"))
    if case.effect(GREEDY, "baseline") != "gone":
        return _open(cause, case.said(GREEDY), f"{WANT_GREEDY}, of the unquantized model")
    because = f"{case.said(GREEDY)}; {case.said(GREEDY, 'baseline')}; {case.said(AS_FILED, 'baseline')}"
    return _shown(cause, because)


def _not_sampling(case: Case) -> str | None:
    """What excludes it: no chance was in it, or it stays without, or equal chance does not do it."""
    nan = case.get(NAN)
    if case.temperature == 0:
        return "it was asked at temperature 0"
    if nan is not None and nan.nonfinite:
        return f"{nan.nonfinite} of {nan.tries} answers have a log-probability that is not finite"
    if case.effect(AS_FILED, "baseline") in {"gone", "less"}:
        return f"with equal sampling, {case.said(AS_FILED, 'baseline')}"
    arms: tuple[Arm, ...] = ("candidate", "baseline")
    return next((case.said(GREEDY, arm) for arm in arms if case.effect(GREEDY, arm) == "kept"), None)


def _kernel(case: Case, found: Found) -> Suspicion:
    cause: Suspect = "kernel_or_engine"
    for other in _is_shown(found, "template_or_tokenizer", "eos_or_configuration", "nondeterminism_under_load"):
        return _excluded(cause, _cleared(case, "the same engine and kernels", other))
    for each in case.levers("gone"):
        return _mended(case, each)
    shared = case.effect(AS_FILED, "baseline") == "kept"
    arm: Arm = "baseline" if shared else "candidate"
    broken = not shared and case.effect(REFERENCE, "baseline") in {"kept", "less"}
    for factor in (REFERENCE,) if shared else (DEQUANTIZED,) if broken else (REFERENCE, DEQUANTIZED):
        if case.effect(factor, arm) == "gone":
            return _mended(case, case.by_key[factor, arm])
        if case.effect(factor, arm) == "kept":
            return _excluded(cause, case.said(factor, arm))
    if case.engine_is_reference:
        because = "the candidate fails in the reference engine, whose arithmetic is plain"
        return _excluded(cause, because)
    others = [run for factor in (REFERENCE, DEQUANTIZED) if (run := case.get(factor, arm))]
    because, missing = "no other engine or kernel has run these weights", WANT_KERNEL
    if broken:
        because = f"the other engine fails with sound weights too ({case.said(REFERENCE, 'baseline')})"
    elif any(case.is_other_prompt(run) for run in others):
        because = "the other engine read other prompt token ids, so its answers say nothing"
    elif others:
        because, missing = told(others[0]), _wanted(case, others[0].factor, WANT_KERNEL, arm)
    return _open(cause, because, missing)


def _mended(case: Case, found: Experiment) -> Suspicion:
    """Another arithmetic took it away. It may have done so by chance, where all tries are one greedy answer."""
    narrow = ", so the range of its arithmetic is too narrow for it" if found.factor in WIDENING else ""
    return _shown("kernel_or_engine", told(found) + narrow, WANT_SEEDS if case.is_one_answer else None)


def _baseline_too(case: Case, found: Found) -> Suspicion:
    cause: Suspect = "baseline_too"
    effect = case.effect(AS_FILED, "baseline")
    if effect in {"gone", "less"}:
        return _excluded(cause, case.said(AS_FILED, "baseline"))
    if effect != "kept":
        because = "the unquantized model was not asked" if effect is None else case.said(AS_FILED, "baseline")
        return _open(cause, because, _wanted(case, AS_FILED, WANT_BASELINE, "baseline"))
    if not case.baseline_fails_alike:
        return _open(cause, f"it may fail more seldom ({case.said(AS_FILED, 'baseline')})", WANT_TRIES)
    others: tuple[Suspect, ...] = (
        "template_or_tokenizer", "eos_or_configuration", "nondeterminism_under_load", "sampling", "kernel_or_engine",
    )  # fmt: skip
    for other in _is_shown(found, *others):
        return _excluded(cause, _cleared(case, "the unquantized weights", other))
    return _shown(cause, case.said(AS_FILED, "baseline"))


def _weights(case: Case, found: Found) -> Suspicion:
    cause: Suspect = "weights"
    effect = case.effect(AS_FILED, "baseline")
    if case.baseline_fails_alike:
        because = f"the unquantized weights fail as often ({case.said(AS_FILED, 'baseline')})"
        return _excluded(cause, because)
    others: tuple[Suspect, ...] = (
        "template_or_tokenizer", "eos_or_configuration", "nondeterminism_under_load", "kernel_or_engine",
    )  # fmt: skip
    for other in _is_shown(found, *others):
        return _excluded(cause, _cleared(case, "the same weights", other))
    if effect not in {"gone", "less"}:
        because = "nothing is known of other weights" if effect is None else case.said(AS_FILED, "baseline")
        return _open(cause, because, _wanted(case, AS_FILED, WANT_BASELINE, "baseline"))
    kernel = found["kernel_or_engine"]
    if kernel.state == "excluded":
        because = f"{case.said(AS_FILED, 'baseline')}; {kernel.because}"
        return _shown(cause, because, WANT_RANGE if case.may_overflow else None)
    because = f"{case.said(AS_FILED, 'baseline')}, but so could a kernel of quantized layers behave"
    return _open(cause, because, kernel.missing)
