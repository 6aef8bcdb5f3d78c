"""A cause is named only with the experiment that separates it from the next likely one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qgate.judge import factors, suspects
from qgate.judge.attribution import NEAREST, attribute
from qgate.judge.case import Case
from qgate.judge.effects import Count, effect
from qgate.schemas.repro import Arm, Attribution, Experiment, FileDifference

ALWAYS, NEVER = (20, 20), (0, 20)
FACTORS = (
    factors.GREEDY, factors.ONE_AT_A_TIME, factors.TEMPLATE, factors.CONFIGURATION, factors.REFERENCE,
    factors.DEQUANTIZED, "engine:eager",
)  # fmt: skip
Seen = dict[tuple[str, Arm], tuple[int, int]]


def case(seen: Seen, *, filed: tuple[int, int] = ALWAYS, **fields: object) -> Case:
    experiments = [experiment(factor, arm, counts, filed) for (factor, arm), counts in seen.items()]
    values: dict[str, object] = {"temperature": 0.7, "concurrency": 1, "files_compared": True, **fields}
    return Case((experiment("as_filed", "candidate", filed, filed), *experiments), **values)  # type: ignore[arg-type]


def experiment(factor: str, arm: Arm, counts: tuple[int, int], filed: tuple[int, int]) -> Experiment:
    found = None if (factor, arm) == ("as_filed", "candidate") else effect(Count(*counts), Count(*filed))
    return Experiment(
        factor=factor, arm=arm, change=factor, cost="new request", failures=counts[0], tries=counts[1], effect=found
    )


def cause(seen: Seen, **fields: object) -> tuple[str, str | None]:
    found = attribute(case(seen, **fields))  # type: ignore[arg-type]
    return found.cause, found.confidence


CLEAN: Seen = {("as_filed", "baseline"): NEVER, ("greedy", "candidate"): ALWAYS, ("greedy", "baseline"): NEVER}
TEMPLATE = FileDifference(where="t", of="template_or_tokenizer", candidate="a", baseline="b")
EOS = FileDifference(where="e", of="eos_or_configuration", candidate="a", baseline="b")


@pytest.mark.parametrize(
    ("seen", "fields", "expected"),
    [
        (CLEAN | {("reference_engine", "candidate"): ALWAYS}, {}, ("weights", "high")),
        (CLEAN | {("dequantized", "candidate"): ALWAYS}, {}, ("weights", "high")),
        (CLEAN, {"engine_is_reference": True}, ("weights", "high")),
        (CLEAN | {("reference_engine", "candidate"): NEVER}, {}, ("kernel_or_engine", "high")),
        (CLEAN | {("engine:eager", "candidate"): NEVER}, {}, ("kernel_or_engine", "high")),
        (CLEAN | {("template", "candidate"): NEVER}, {"differences": (TEMPLATE,)}, ("template_or_tokenizer", "high")),
        (
            CLEAN | {("configuration", "candidate"): NEVER},
            {"differences": (EOS,)},
            ("eos_or_configuration", "high"),
        ),
        (
            CLEAN | {("one_at_a_time", "candidate"): NEVER, ("reference_engine", "candidate"): NEVER},
            {"concurrency": 8},
            ("nondeterminism_under_load", "high"),
        ),
        (
            {("as_filed", "baseline"): ALWAYS, ("greedy", "candidate"): NEVER, ("greedy", "baseline"): NEVER},
            {"engine_is_reference": True},
            ("sampling", "high"),
        ),
        (
            {("as_filed", "baseline"): ALWAYS, ("greedy", "candidate"): ALWAYS, ("greedy", "baseline"): ALWAYS},
            {"engine_is_reference": True},
            ("baseline_too", "high"),
        ),
        ({("as_filed", "baseline"): ALWAYS}, {"temperature": 0.0}, ("baseline_too", "medium")),
        (
            {("as_filed", "baseline"): ALWAYS, ("reference_engine", "baseline"): NEVER},
            {"temperature": 0.0},
            ("kernel_or_engine", "medium"),
        ),
    ],
)
def test_each_cause_is_named_by_its_experiments(
    seen: Seen, fields: dict[str, object], expected: tuple[str, str]
) -> None:
    assert cause(seen, **fields) == expected


@pytest.mark.parametrize(
    ("seen", "fields", "missing"),
    [
        ({}, {}, suspects.WANT_GREEDY),
        ({("greedy", "candidate"): NEVER}, {}, suspects.WANT_BASELINE),
        (CLEAN, {}, suspects.WANT_KERNEL),
        (CLEAN | {("reference_engine", "candidate"): ALWAYS}, {"differences": (EOS,)}, suspects.WANT_CONFIGURATION),
        (CLEAN | {("reference_engine", "candidate"): ALWAYS}, {"concurrency": 8}, suspects.WANT_LOAD),
        (CLEAN | {("reference_engine", "candidate"): ALWAYS}, {"files_compared": False}, suspects.WANT_TEMPLATE),
        ({("as_filed", "baseline"): ALWAYS}, {}, suspects.WANT_GREEDY),
    ],
)
def test_without_the_separating_experiment_no_cause_is_named(
    seen: Seen, fields: dict[str, object], missing: str
) -> None:
    found = attribute(case(seen, **fields))  # type: ignore[arg-type]
    assert found.cause == "undetermined"
    assert found.confidence is None
    assert missing in found.would_raise
    assert found.summary.endswith(f"missing: {found.would_raise[0]}")


def test_nothing_failed_is_not_reproduced_with_the_rate_that_is_excluded() -> None:
    found = attribute(case({}, filed=(0, 29)))
    assert found.cause == "not_reproduced"
    assert "29 tries: a failure rate above 9.8%" in found.summary


def in_dtypes(made: Case, dtypes: dict[str, str]) -> Case:
    """The same, with what served each of the candidate's experiments."""
    experiments = tuple(
        each.model_copy(update={"dtype": dtypes.get(each.factor, "float16")}) for each in made.experiments
    )
    return Case(experiments, made.temperature, made.concurrency, made.files_compared)


@pytest.mark.parametrize(
    ("wider", "dtypes", "expected"),
    [
        (None, {}, ("weights", "medium")),
        (None, {"reference_engine": "float32"}, ("weights", "high")),
        (None, {"as_filed": "bfloat16"}, ("weights", "high")),
        (ALWAYS, {"engine:float32": "float32"}, ("weights", "high")),
        (NEVER, {"engine:float32": "float32"}, ("kernel_or_engine", "high")),
    ],
)
def test_weights_that_fail_in_float16_are_sure_only_beside_a_wider_range(
    wider: tuple[int, int] | None, dtypes: dict[str, str], expected: tuple[str, str]
) -> None:
    seen = CLEAN | {("reference_engine", "candidate"): ALWAYS}
    if wider is not None:
        seen = seen | {("engine:float32", "candidate"): wider}
    found = attribute(in_dtypes(case(seen), dtypes))
    assert (found.cause, found.confidence) == expected
    assert found.would_raise == ((suspects.WANT_RANGE,) if expected[1] == "medium" else ())


def test_a_wider_range_that_mends_one_greedy_answer_may_do_so_by_chance() -> None:
    seen: Seen = {
        ("as_filed", "baseline"): NEVER, ("reference_engine", "candidate"): ALWAYS,
        ("engine:bfloat16", "candidate"): NEVER,
    }  # fmt: skip
    made = case(seen, temperature=0.0)
    found = attribute(made)
    assert (found.cause, found.confidence) == ("kernel_or_engine", "medium")
    assert found.would_raise == (suspects.WANT_SEEDS,)
    nan = experiment("look_for_nan", "candidate", ALWAYS, ALWAYS).model_copy(update={"nonfinite": 20})
    assert attribute(Case((*made.experiments, nan), 0.0, 1, True)).confidence == "high"


def test_what_is_kept_in_part_leaves_room_for_another_cause() -> None:
    seen = CLEAN | {("reference_engine", "candidate"): (10, 30)}
    found = attribute(case(seen, filed=(20, 30)))
    assert (found.cause, found.confidence) == ("weights", "medium")
    assert "10 of 30 fail" in found.would_raise[0]
    assert "it does at least 29% of the failures" in found.summary


@pytest.mark.parametrize(
    ("filed", "kept", "said"), [((20, 30), (60, 100), "at least 77%"), (ALWAYS, ALWAYS, ""), ((60, 100), (64, 64), "")]
)
def test_the_share_of_the_failures_that_a_cause_is_shown_for_is_said(
    filed: tuple[int, int], kept: tuple[int, int], said: str
) -> None:
    seen = CLEAN | {("reference_engine", "candidate"): kept, ("greedy", "candidate"): kept}
    found = attribute(case(seen, filed=filed))
    assert (found.cause, found.confidence) == ("weights", "high")
    assert said in found.summary
    assert ("may be chance, or a second cause" in found.summary) == bool(said)


@pytest.mark.parametrize("factor", ["engine:eager", "reference_engine", "dequantized"])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_one_greedy_answer_that_is_mended_is_not_sure(factor: str, temperature: float) -> None:
    seen: Seen = {("as_filed", "baseline"): NEVER, (factor, "candidate"): NEVER, ("greedy", "candidate"): ALWAYS}
    found = attribute(case(seen, temperature=temperature))
    assert (found.cause, found.confidence) == ("kernel_or_engine", "high" if temperature else "medium")
    assert found.would_raise == (() if temperature else (suspects.WANT_SEEDS,))


def test_what_fails_although_the_cause_was_taken_away_has_another_one() -> None:
    found = attribute(case(CLEAN | {("engine:eager", "candidate"): (3, 64)}, filed=(60, 64)))
    assert (found.cause, found.confidence) == ("kernel_or_engine", "medium")
    assert found.summary.startswith("two causes share in it: a kernel or the engine does the larger part (")
    assert found.summary.endswith(", a second one what still fails without it (3 of 64)")
    because = {each.cause: each.because for each in found.suspicions}
    assert because["weights"].startswith("the same weights fail far less otherwise (")
    assert "3 of 64 fail" in found.would_raise[0]


def test_a_change_that_takes_a_part_of_the_failures_away_is_no_cause_alone() -> None:
    found = attribute(case(CLEAN | {("reference_engine", "candidate"): (24, 64)}, filed=(60, 64)))
    assert found.cause == "undetermined"
    assert suspects.WANT_PARTS in found.would_raise


def test_the_one_setting_is_named_rather_than_all_at_once() -> None:
    seen = CLEAN | {(factors.ALL_LEVERS, "candidate"): NEVER, ("engine:eager", "candidate"): NEVER}
    assert "the candidate engine:eager: 0 of 20 fail" in attribute(case(seen)).summary


def test_what_was_asked_and_told_nothing_is_not_asked_for_again() -> None:
    seen: Seen = {
        ("as_filed", "baseline"): (0, 20), ("greedy", "candidate"): (2, 20), ("reference_engine", "candidate"): (0, 20),
    }  # fmt: skip
    found = attribute(case(seen, filed=(2, 20)))
    assert found.cause == "undetermined"
    assert found.would_raise == (suspects.WANT_RATE,)
    assert (
        "still possible are: sampling, a kernel or the engine, the model itself, the quantized weights" in found.summary
    )


def test_what_always_fails_is_not_asked_for_where_it_fails_more_often() -> None:
    found = attribute(
        case({("as_filed", "baseline"): (0, 20), ("reference_engine", "candidate"): (7, 20)}, filed=(8, 8))
    )
    assert suspects.WANT_PARTS in found.would_raise
    assert suspects.WANT_RATE not in found.would_raise


def test_a_baseline_that_fails_more_seldom_does_not_fail_alike() -> None:
    seen: Seen = {("as_filed", "baseline"): (10, 30), ("greedy", "candidate"): ALWAYS, ("greedy", "baseline"): ALWAYS}
    found = attribute(case(seen, filed=(20, 30)))
    assert found.cause == "undetermined"
    assert suspects.WANT_TRIES in found.would_raise


def test_either_of_two_swaps_mending_it_is_no_cause() -> None:
    seen = CLEAN | {("template", "candidate"): NEVER, ("configuration", "candidate"): NEVER}
    assert cause(seen, differences=(TEMPLATE, EOS))[0] == "undetermined"


def test_a_logprob_that_is_not_finite_is_no_sampling() -> None:
    seen: Seen = {("as_filed", "baseline"): ALWAYS, ("greedy", "candidate"): NEVER, ("greedy", "baseline"): NEVER}
    made = case(seen, engine_is_reference=True)
    nan = experiment("look_for_nan", "candidate", ALWAYS, ALWAYS).model_copy(update={"nonfinite": 3})
    found = attribute(Case((*made.experiments, nan), 0.7, 1, True, engine_is_reference=True))
    assert found.cause != "sampling"


def test_other_prompt_ids_in_the_arms_keep_the_template_suspect() -> None:
    seen = CLEAN | {("reference_engine", "candidate"): ALWAYS}
    made = case(seen, files_compared=False)
    hashed = tuple(
        each.model_copy(update={"prompt_sha256": (each.arm,)}) if each.factor == "as_filed" else each
        for each in made.experiments
    )
    found = attribute(Case(hashed, 0.7, 1, files_compared=False))
    assert found.cause == "undetermined"
    assert suspects.WANT_TEMPLATE in found.would_raise


@pytest.mark.parametrize(
    ("swapped", "hashed", "expected"),
    [
        (NEVER, "baseline", ("template_or_tokenizer", "high")),
        (ALWAYS, "baseline", ("weights", "high")),
        (ALWAYS, "candidate", ("undetermined", None)),
    ],
)
def test_other_prompts_are_cleared_only_by_failing_on_the_baselines(
    swapped: tuple[int, int], hashed: str, expected: tuple[str, str | None]
) -> None:
    seen = CLEAN | {("reference_engine", "candidate"): ALWAYS, ("template", "candidate"): swapped}
    experiments = tuple(
        each.model_copy(update={"prompt_sha256": (hashed if each.factor == "template" else each.arm,)})
        for each in case(seen).experiments
    )
    found = attribute(Case(experiments, 0.7, 1, files_compared=True))
    assert (found.cause, found.confidence) == expected


def test_another_engine_that_read_another_prompt_says_nothing() -> None:
    for counts in (ALWAYS, NEVER):
        made = case(CLEAN | {("reference_engine", "candidate"): counts}).experiments
        experiments = tuple(
            each.model_copy(update={"prompt_sha256": ("x" if each.factor == "reference_engine" else "a",)})
            for each in made
        )
        found = attribute(Case(experiments, 0.7, 1, files_compared=True))
        assert found.cause == "undetermined"
        assert any("other prompt token ids" in each.because for each in found.suspicions)


def test_the_candidate_as_filed_must_have_been_asked() -> None:
    with pytest.raises(ValueError, match="as filed"):
        attribute(Case((), 0.7, 1, files_compared=True))


counts = st.sampled_from([ALWAYS, NEVER, (3, 20), (0, 2), (10, 20)])
seen_by_chance = st.dictionaries(
    st.tuples(st.sampled_from(("as_filed", *FACTORS)), st.sampled_from(["candidate", "baseline"])).filter(
        lambda key: key != ("as_filed", "candidate")
    ),
    counts,
)


@given(
    seen=seen_by_chance,
    temperature=st.sampled_from([0.0, 0.7]),
    concurrency=st.sampled_from([1, 8]),
    compared=st.booleans(),
    differences=st.sampled_from([(), (TEMPLATE,), (EOS,), (TEMPLATE, EOS)]),
    reference=st.booleans(),
)
def test_whatever_is_seen_a_named_cause_is_shown_and_its_nearest_are_excluded(
    seen: Seen,
    temperature: float,
    concurrency: int,
    compared: bool,
    differences: tuple[FileDifference, ...],
    reference: bool,
) -> None:
    found = attribute(
        case(
            seen, temperature=temperature, concurrency=concurrency, files_compared=compared,
            differences=differences, engine_is_reference=reference,
        )
    )  # fmt: skip
    _is_consistent(found)


def _is_consistent(found: Attribution) -> None:
    states = {each.cause: each for each in found.suspicions}
    if found.cause == "undetermined":
        assert found.confidence is None
        return
    assert states[found.cause].state == "shown"  # type: ignore[index]
    assert all(states[rival].state == "excluded" for rival in NEAREST[found.cause])  # type: ignore[index]
    assert (found.confidence == "high") == all(
        each.state == "excluded" for each in found.suspicions if each.cause != found.cause
    )
    assert found.alpha == 0.01
