"""What the servers said of themselves reaches the run's findings, once for all that it holds of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qgate.io import artefact
from qgate.plan import GenerateStep
from qgate.rooms.arms import FACTS, Arm
from qgate.rooms.servers import facts_by_variant, findings
from qgate.rooms.work import Work
from qgate.schemas.answers import EngineFacts
from qgate.schemas.run import ArmRecord

FULL = "12 preemptions: the KV cache was full"


def facts(start_s: float = 1.0, notes: tuple[str, ...] = (), **kernels: str) -> EngineFacts:
    return EngineFacts(
        engine="vllm", version="0.26.0", device="NVIDIA H200", notes=notes, kernels=kernels, start_s=start_s
    )


def arm(folder: Path, found: EngineFacts | None, **step: Any) -> Arm:
    folder.mkdir(parents=True)
    if found is not None:
        artefact.save(folder / FACTS, found)
    fields = {"step": "generate", "variant": "awq", "evalset": "s", "profile": "p", "key": "k", "cached": False}
    return Arm(ArmRecord(**fields, num_answers=1), folder)  # type: ignore[arg-type]


def step(variant: str, replicate: int = 0, evalset: str = "s") -> GenerateStep:
    return GenerateStep(variant, evalset, "p", replicate, ())


def test_notes_of_every_server_are_kept_and_the_last_says_the_rest(tmp_path: Path) -> None:
    work = Work()
    work.add_asked(step("awq"), arm(tmp_path / "1", facts(1.0, (FULL,))))
    work.add_asked(step("awq", 1), arm(tmp_path / "2", facts(2.0, ("another",), attention="FLASH_ATTN")))
    work.add_asked(step("gptq"), arm(tmp_path / "3", None))
    found = facts_by_variant(work)
    assert set(found) == {"awq"}
    assert found["awq"].notes == (FULL, "another")
    assert found["awq"].kernels == {"attention": "FLASH_ATTN"}


def test_a_servers_last_word_counts(tmp_path: Path) -> None:
    work = Work()
    work.add_asked(step("awq"), arm(tmp_path / "1", facts(1.0, ("2 preemptions: x",))))
    work.add_asked(step("awq", evalset="t"), arm(tmp_path / "2", facts(1.0, ("9 preemptions: x",))))
    assert facts_by_variant(work)["awq"].notes == ("9 preemptions: x",)


def test_a_note_is_told_once_with_all_that_it_holds_of() -> None:
    found = {"baseline": facts(notes=("on a CPU",)), "awq": facts(notes=("on a CPU", FULL))}
    assert findings(found) == ["baseline, awq: on a CPU.", f"awq: {FULL}."]


def test_servers_that_differ_in_what_should_be_alike_are_told() -> None:
    found = {
        "baseline": facts(model_runner="v2", linear="A"),
        "awq": facts(model_runner="v1", linear="B"),
        "x": facts(),
    }
    assert findings(found) == [
        "The model runner is not the same everywhere (baseline v2, awq v1): answers may differ by it alone."
    ]
