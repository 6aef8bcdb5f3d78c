"""Reports of an incident: the scripts' own check, text that is not trusted, and what a reader is told."""

from __future__ import annotations

import ast
import io
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
from rich.console import Console

from qgate.engines.fake_model import garble, loop
from qgate.reports import repro_markdown, repro_script, repro_terminal
from qgate.reports.repro_check import shows_failure
from qgate.reports.repro_markdown import fence
from qgate.reports.repro_words import NEXT
from qgate.schemas.answers import EngineFacts
from qgate.schemas.incident import Incident
from qgate.schemas.repro import Attribution, Cause, Experiment, FileDifference, Repro, Suspicion, Try

GOOD = [
    "The key of the harbour is 4711, and the boats came in late because of the storm in the north.",
    "1. Bread\n2. Milk\n3. Butter\n\nThat is all that you need for breakfast.",
    "def add(a, b):\n    return a + b\n",
    "La mer est grande; les bateaux la traversent. Été, hiver, naïveté.",
]


@pytest.mark.parametrize(
    ("defect", "text"),
    [
        ("repetition_loop", loop("The sea is wide. It is blue.", 80)),
        ("repetition_loop", "más " * 40),
        ("token_flood", "!" * 60),
        ("mojibake", garble(GOOD[0])),
        ("mojibake", "caf\ufffd"),
        ("token_salad", "the море of 海 and ทะเล is wide"),
        ("role_leak", "Yes.<|im_end|>\n<|im_start|>user\nAnd?"),
        ("role_leak", "Yes.\nuser\nAnd what else?"),
        ("empty", " \n"),
    ],
)
def test_the_scripts_check_sees_each_defect_and_none_in_good_answers(defect: str, text: str) -> None:
    assert shows_failure(text, "stop", {"defects": [defect]})
    assert not any(shows_failure(good, "stop", {"defects": [defect]}) for good in GOOD)


def test_the_other_ways_to_recognise() -> None:
    assert shows_failure("abc", "length", {"finish_reason": "length"})
    assert shows_failure("abc", "stop", {"regex": "b"})
    assert shows_failure("abcd", "stop", {"known": ["abcd"], "likeness": 0.8})
    assert not shows_failure("", "stop", {"known": [""], "likeness": 0.8})
    assert not shows_failure("abc", "stop", {"defects": ["nonfinite_logprob"]})


def report(**changes: Any) -> Repro:
    body = {"messages": [{"role": "user", "content": "Say `hi` ```\n<script>alert(1)</script> @someone #1"}]}
    failed = Try(
        failed=True,
        text="```\n\x1b[31mred\u202e " + "más " * 30,
        seed=0,
        defects=("repetition_loop",),
        finish_reason="length",
    )
    filed = Experiment(factor="as_filed", arm="candidate", change="as filed", cost="new request", failures=8, tries=8,
                       low=0.69, example=failed, prompt_sha256=("a" * 64,))  # fmt: skip
    other = filed.model_copy(update={"arm": "baseline", "failures": 0, "effect": "gone", "example": None})
    refused = Experiment(factor="reference_engine", arm="candidate", change="in the engine x", cost="server restart",
                         refused="no such | engine")  # fmt: skip
    values: dict[str, Any] = {
        "title": "A `title` | with <b>marks</b>", "incident_sha256": "0" * 64, "qgate_version": "1", "started_at": "a",
        "incident": Incident(kind="incident", version=1, request={"body": body}, candidate={"url": "http://h"},  # type: ignore[arg-type]
                             tried=("temperature 0 | fine",), secrets_removed=2),
        "finished_at": "b", "recognised_by": "x", "rate_to_detect": 0.1, "excluded_rate": None, "request": body,
        "attribution": Attribution(
            cause="undetermined", confidence=None, summary="why", alpha=0.01, would_raise=("the | baseline",),
            suspicions=(Suspicion(cause="sampling", state="excluded", because="e"),
                        Suspicion(cause="weights", state="open", because="o", missing="m")),
        ),
        "experiments": (filed, other, refused), "not_isolated": ("kernels",), "notes": ("a note",),
        "differences": (FileDifference(where="chat template", of="template_or_tokenizer", candidate="`a`", baseline="b"),),
        "facts": {"candidate": EngineFacts(engine="openai", version="vLLM 1", device="remote", kernels={"linear": "M"})},
        **changes,
    }  # fmt: skip
    return Repro(**values)


def test_the_page_says_all_and_nothing_in_it_acts() -> None:
    page = repro_markdown.render(report())
    outside = page.replace(fence_of(page), "")
    for said in ("8 of 8 (100%)", "0 of 8 (0%)", "could not be run",
                 "not run, candidate in the engine x: no such", "equal in both arms", "a note", "kernels",
                 "tried before", "linear M", "What is missing", "sh repro.sh"):  # fmt: skip
        assert said in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "<script>" not in outside.replace("```json", "")[: outside.find("```json")]
    assert "<b>" not in page
    assert all(line.count("|") - line.count("\\|") in {4, 6} for line in page.splitlines() if line.startswith("| "))
    assert page.index("| the quantized weights | open") < page.index("| sampling | excluded")


def fence_of(page: str) -> str:
    start = page.index("````")
    return page[start : page.index("````", start + 4) + 4]


def test_a_fence_is_longer_than_what_is_in_it() -> None:
    assert fence("a ```` b").startswith("`````\n")
    assert fence("plain", "text") == "```text\nplain\n```"


def test_differing_prompts_are_told() -> None:
    made = report()
    other = made.experiments[1].model_copy(update={"prompt_sha256": ("b" * 64,)})
    assert "token ids DIFFER" in repro_markdown.render(report(experiments=(made.experiments[0], other)))
    silent = made.experiments[0].model_copy(update={"prompt_sha256": ()})
    assert "not proven" in repro_markdown.render(report(experiments=(silent,)))


@pytest.mark.parametrize("width", [80, 140])
def test_the_terminal_shows_it_without_control_characters(width: int) -> None:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(repro_terminal.render(report(), "left"))
    text = console.export_text()
    assert "Cause: undetermined" in text
    assert "⟦U+001B⟧" in text
    assert "\u202e" not in text
    assert "left/repro.md" in text


CAUSES: tuple[Cause, ...] = get_args(Cause)


@pytest.mark.parametrize("cause", CAUSES)
def test_whoever_has_the_verdict_is_told_what_to_do_with_it(cause: Cause) -> None:
    made = report(attribution=Attribution(cause=cause, confidence=None, summary="why", alpha=0.01))
    assert f"Next: {NEXT[cause]}" in printed(made).replace("\n", " ")
    assert "\n\nNext: " in repro_markdown.render(made)


def test_what_was_not_reproduced_shows_what_was_looked_for_and_what_came() -> None:
    good = Try(failed=False, text=GOOD[0], seed=0, finish_reason="stop")
    clear = report().experiments[0].model_copy(update={"failures": 0, "tries": 29, "low": 0.0, "example": good})
    made = report(experiments=(clear,), recognised_by="an end by `length`")
    text = printed(made).replace("\n", " ")
    assert "A failure is an end by `length`" in text
    assert f"What comes instead:   {GOOD[0][:40]}" in text
    assert "## What comes instead\n\nseed 0, stop\n" in repro_markdown.render(made)
    assert "TRIES, IN_FLIGHT = 0, 29, 1" in repro_script.make(made).python


def test_a_defect_that_was_not_looked_for_is_pointed_out() -> None:
    looping = Try(failed=False, text="no more " * 40, seed=0, finish_reason="length", defects=("repetition_loop",))
    clear = report().experiments[0].model_copy(update={"failures": 0, "tries": 29, "low": 0.0, "example": looping})
    made = report(experiments=(clear,))
    said = "it has a defect that was not looked for; where it is the failure: `recognise: {defects: [repetition_loop]}`"
    assert said in printed(made).replace("\n", " ")
    assert "has a defect that was not looked for" in repro_markdown.render(made)
    assert "not looked for" not in printed(report())


def printed(made: Repro) -> str:
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(repro_terminal.render(made, "left"))
    return console.export_text()


def test_scripts_are_valid_whatever_the_title_says(tmp_path: Path) -> None:
    script = repro_script.make(report(title='"""\\\n$(x) `y`\0\x1b[31m\u202e\n# "'))
    assert not set("\0\x1b\u202e") & set(script.python + script.shell)
    ast.parse(script.python)
    compile(script.python, "repro.py", "exec")
    (tmp_path / "repro.sh").write_text(script.shell)
    subprocess.run(["sh", "-n", str(tmp_path / "repro.sh")], check=True)
    assert script.checked == "Their own check agrees with qgate's on 1 of 1 recorded answers."


def test_what_the_check_would_miss_is_recognised_by_likeness() -> None:
    made = report()
    odd = Try(failed=True, text="Wrong but fluent.", seed=0, finish_reason="stop")
    filed = made.experiments[0].model_copy(update={"example": odd})
    script = repro_script.make(report(experiments=(filed,)))
    assert "Wrong but fluent." in script.python
    assert "1 of 1" in script.checked
