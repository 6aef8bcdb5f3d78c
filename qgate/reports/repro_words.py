"""What the reports of an incident say alike: experiments, causes and figures in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from qgate.judge.attribution import CAUSES
from qgate.judge.factors import AS_FILED
from qgate.schemas.minimised import Minimised, Size, Thresholds
from qgate.schemas.repro import Cause, Experiment, Repro, State, Suspicion, Try
from qgate.wording import counted

NEXT: dict[Cause, str] = {
    "weights": "serve another variant or the unquantized model meanwhile; quantize anew with other data, another scheme, or "
    "fewer layers",
    "kernel_or_engine": "serve with what made it go (above) meanwhile, and file this with the engine's makers",
    "sampling": "lower the temperature: quantization is not to blame",
    "template_or_tokenizer": "put the baseline's chat template and tokenizer files into the checkpoint",
    "eos_or_configuration": "put the baseline's EOS tokens and generation_config.json into the checkpoint",
    "nondeterminism_under_load": "bound the requests in flight or serve with batch-invariant kernels meanwhile, and file this "
    "with the engine's makers",
    "baseline_too": "change the prompt, the sampling or the model: quantization is not to blame",
    "not_reproduced": "file more of how it was served when it happened, and what is wrong with the answer under `recognise`",
    "undetermined": "provide what is missing, and run the same command: answers are kept",
}
"""What somebody who has the verdict does with it."""
EFFECTS = {"kept": "stays", "gone": "gone", "less": "less often", "unclear": "not clear", None: ""}
STATES: tuple[State, ...] = ("shown", "open", "excluded")


@dataclass(frozen=True)
class Row:
    """One factor: both arms beside each other."""

    change: str
    separates: str
    candidate: Experiment | None
    baseline: Experiment | None

    @property
    def effect(self) -> str:
        """What the change did to the candidate; for a change of the baseline alone, to that."""
        found = self.candidate or self.baseline
        return "could not be run" if found and found.refused else EFFECTS[found.effect if found else None]


def rows(report: Repro) -> Iterator[Row]:
    """The evidence table: in the order in which it was found, the arms of a factor in one row."""
    seen: set[str] = set()
    for each in report.experiments:
        if each.factor not in seen:
            seen.add(each.factor)
            arms = report.find(each.factor, "candidate"), report.find(each.factor, "baseline")
            yield Row(each.change, each.separates, *arms)


def causes(report: Repro) -> list[Suspicion]:
    """What is shown first, then what is open, then what is excluded."""
    return sorted(report.attribution.suspicions, key=lambda each: STATES.index(each.state))


def failed_of(found: Experiment | None) -> str:
    """`8 of 8 (100 %)`."""
    if found is None:
        return ""
    if found.refused:
        return "not run"
    if not found.tries:
        return f"no answer in {found.missing} tries"
    missing = f", {found.missing} without an answer" if found.missing else ""
    tries = f"{found.tries} seeds that failed" if found.of_failed else str(found.tries)
    return f"{found.failures} of {tries} ({found.failures / found.tries:.0%}){missing}"


def refusals(report: Repro) -> Iterator[str]:
    """Why experiments could not be run."""
    for each in report.experiments:
        if each.refused:
            yield f"not run, {each.arm} {each.change}: {each.refused}"


def verdict_line(report: Repro) -> str:
    """The verdict in one line."""
    found = report.attribution
    sure = f" (confidence: {found.confidence})" if found.confidence else ""
    return f"Cause: {CAUSES[found.cause]}{sure}"


def example(report: Repro) -> tuple[str, Try] | None:
    """The first answer that failed, under a heading; where none did, one that came instead."""
    found = [each.example for each in report.experiments if each.example is not None]
    failed = next((each for each in found if each.failed), None)
    if failed is not None:
        return "What comes back", failed
    return ("What comes instead", found[0]) if found else None


def other_defects(report: Repro) -> str:
    """What to do where nothing failed as was looked for, and an answer is broken all the same."""
    found = example(report)
    if found is None or found[1].failed or not found[1].defects:
        return ""
    names = ", ".join(found[1].defects)
    return f"it has a defect that was not looked for; where it is the failure: `recognise: {{defects: [{names}]}}`"


def prompts(report: Repro) -> str:
    """Whether both arms read the same prompt."""
    hashes = [set(each.prompt_sha256) for each in report.experiments if each.factor == AS_FILED]
    if not all(hashes) or not hashes:
        return "the servers do not tell their prompt token ids: that the prompts are equal is not proven"
    same = all(each == hashes[0] for each in hashes) and len(hashes[0]) == 1
    if len(hashes) == 1:
        return f"prompt token ids sha256 {min(hashes[0])[:12]}"
    return f"prompt token ids equal in both arms (sha256 {min(hashes[0])[:12]})" if same else "prompt token ids DIFFER"


def sampling(report: Repro) -> str:
    """What both arms were sent."""
    names = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
    said = [f"{name} {report.request[name]:g}" for name in names if report.request.get(name) is not None]
    return ", ".join(said) if said else "the server's own defaults (the request names none)"


def shrunk(minimal: Minimised) -> str:
    """How much shorter, in one line."""
    rate = "always fails" if minimal.deterministic else f"fails {minimal.rate.failures} of {minimal.rate.tries}"
    held = rate if minimal.verified else "not confirmed by fresh tries (`--calls` allows more)"
    return f"{_size(minimal.before)} → {_size(minimal.after)} in {minimal.num_calls} model calls; {held}"


def _size(size: Size) -> str:
    turns = f"{size.num_turns} turns, " if size.num_turns > 1 else ""
    return turns + counted(size.num_words, "word")


def thresholds(found: Thresholds) -> Iterator[str]:
    """Where the failure starts, as far as it was found."""
    if found.shortest_failing_words is not None:
        clear = found.longest_clear_words
        below = clear is not None and clear < found.shortest_failing_words
        yield f"fails with {counted(found.shortest_failing_words, 'word')}" + (
            f", and not with {clear}" if below else ""
        )
    if found.lowest_failing_temperature is not None:
        clear_at = found.highest_clear_temperature
        beside = f", and not at {clear_at:g}" if clear_at is not None else ""
        yield f"fails at temperature {found.lowest_failing_temperature:g}{beside}"
    if found.fewest_failing_max_tokens is not None:
        most = found.most_clear_max_tokens
        beside = f", and not with {most}" if most is not None else ""
        yield f"fails with max_tokens {found.fewest_failing_max_tokens}{beside}"
