"""The experiments of an incident in, its cause out, or what is missing to name one. Pure.

A cause is named only where it is shown and each of its nearest rivals is excluded by an experiment. Causes further off
that are still open lower the confidence, and so does an experiment that would make the cause sure and was not run; these
experiments are what would raise it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgate.judge.case import Case, told
from qgate.judge.effects import ALPHA, WHOLE_SHARE, Count
from qgate.judge.factors import AGAIN, AS_FILED
from qgate.judge.suspects import WANT_TRIES, suspicions
from qgate.schemas.repro import Attribution, Cause, Confidence, Experiment, Suspect, Suspicion

NEAREST: Mapping[Suspect, tuple[Suspect, ...]] = {
    "template_or_tokenizer": ("eos_or_configuration",),
    "eos_or_configuration": ("template_or_tokenizer",),
    "nondeterminism_under_load": ("kernel_or_engine",),
    "sampling": ("baseline_too",),
    "kernel_or_engine": ("weights", "nondeterminism_under_load"),
    "baseline_too": ("sampling", "weights"),
    "weights": (
        "kernel_or_engine", "template_or_tokenizer", "eos_or_configuration", "nondeterminism_under_load", "baseline_too",
    ),
}  # fmt: skip
"""What one would most easily take a cause for."""
CAUSES: Mapping[Cause, str] = {
    "weights": "the quantized weights",
    "kernel_or_engine": "a kernel or the engine",
    "sampling": "sampling",
    "template_or_tokenizer": "the chat template or tokenizer",
    "eos_or_configuration": "the EOS tokens or configuration",
    "nondeterminism_under_load": "nondeterminism under load",
    "baseline_too": "the model itself",
    "not_reproduced": "not reproduced",
    "undetermined": "undetermined",
}
IN_WORDS: Mapping[Cause, str] = {
    "weights": "quantization did it: the weights themselves",
    "kernel_or_engine": "a kernel or the engine did it, not the weights",
    "sampling": "sampling did it: the unquantized model fails alike at this temperature, and neither fails without it",
    "template_or_tokenizer": "the chat template or the tokenizer did it",
    "eos_or_configuration": "the EOS tokens or the configuration did it",
    "nondeterminism_under_load": "load did it: alone on the server the same request does not fail",
    "baseline_too": "the model itself does it: the unquantized model fails as often",
    "not_reproduced": "not reproduced",
    "undetermined": "the cause is not determined",
}
NOT_REPRODUCED_ADVICE = (
    "more tries for a rarer failure (--rate)",
    "the concurrency, the seed, the launch arguments and the hardware of the time",
)


def attribute(case: Case) -> Attribution:
    """The cause, and why. Raises ValueError where the candidate was not asked as filed."""
    filed = case.get(AS_FILED)
    if filed is None:
        raise ValueError("no experiment of the candidate as filed")
    if not filed.failures:
        return _not_reproduced(Count(filed.failures, filed.tries))
    found = suspicions(case)
    if changed := [
        each for each in case.experiments if each.factor == AGAIN and (not each.ran or each.effect != "kept")
    ]:
        return _undetermined(found, f"the server did not stay as it was ({told(changed[0])})")
    shown = [each for each in found if each.state == "shown"]
    if not shown:
        names = ", ".join(CAUSES[each.cause] for each in found if each.state == "open")
        return _undetermined(found, f"no experiment shows a cause; still possible are: {names}")
    top = shown[0]
    rivals = [each for each in found if each.cause in NEAREST[top.cause] and each.state != "excluded"]
    if rivals:
        names = " or ".join(CAUSES[each.cause] for each in rivals)
        why = f"the likely cause is {CAUSES[top.cause]}, but nothing tells it from {names}"
        return _undetermined(found, why, first=rivals)
    left = [each for each in found if each is not top and each.state != "excluded"]
    parts = [each for each in (case.left_over(top.because), _not_whole(case)) if each is not None]
    confidence: Confidence = "medium" if left or top.missing or parts else "high"
    return Attribution(
        cause=top.cause,
        confidence=confidence,
        summary=_summary(case, top),
        suspicions=found,
        would_raise=(*_missing([top, *left]), *(f"{WANT_TRIES} ({told(each)})" for each in parts)),
        alpha=ALPHA,
    )


def _not_whole(case: Case) -> Experiment | None:
    """What clears a cause although more than half of the failures may be that cause's."""
    least = case.least_kept
    return None if least is None or least[1] > WHOLE_SHARE else least[0]


def _summary(case: Case, top: Suspicion) -> str:
    """The cause, what shows it, and how much of the failure it is shown to do: a second cause may do the rest."""
    if (over := case.left_over(top.because)) is not None:
        rest = f"a second one what still fails without it ({over.failures} of {over.tries})"
        return f"two causes share in it: {CAUSES[top.cause]} does the larger part ({top.because}), {rest}"
    said = f"{IN_WORDS[top.cause]} ({top.because})"
    if case.least_kept is not None and case.comes_and_goes and case.least_kept[1] < 1:
        found, share = case.least_kept
        said += (
            f"; it does at least {share:.0%} of the failures ({told(found)}): the rest may be chance, or a second cause"
        )
    return said


def _not_reproduced(count: Count) -> Attribution:
    said = f"not reproduced in {count.tries} tries: a failure rate above {count.high:.1%} is excluded at 95 %"
    return Attribution(
        cause="not_reproduced", confidence=None, summary=said, would_raise=NOT_REPRODUCED_ADVICE, alpha=ALPHA
    )


def _undetermined(found: tuple[Suspicion, ...], why: str, first: Sequence[Suspicion] = ()) -> Attribution:
    missing = _missing([*first, *(each for each in found if each.state == "open")])
    return Attribution(
        cause="undetermined",
        confidence=None,
        summary=f"{why}; missing: {missing[0]}" if missing else why,
        suspicions=found,
        would_raise=missing,
        alpha=ALPHA,
    )


def _missing(suspicions: Sequence[Suspicion]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each.missing for each in suspicions if each.missing))
