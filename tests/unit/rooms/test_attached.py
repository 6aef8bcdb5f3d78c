"""One server does not answer for two checkpoints, nor for the one that was there before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from qgate import pipeline
from qgate.errors import HungError, RecipeError
from qgate.io import recipe
from qgate.ports import load_engine
from qgate.rooms import arms
from qgate.rooms.attached import check_servers
from qgate.rooms.outlook import outlook
from qgate.rooms.prepare import prepare
from qgate.schemas.verdict import Verdict
from tests.http_stub import HttpStub, Request
from tests.unit import checkpoints
from tests.unit.recipes import small, write, write_evalset
from tests.unit.test_pipeline import Watcher, item, verdict_of

A, B = "http://127.0.0.1:8000/v1", "http://127.0.0.1:8001"


def check(folder: Path, base: dict[str, Any], w8a8: dict[str, Any], path: str = "w8a8") -> None:
    options = {"name": "openai", "options": {"base_url": A, **base}}
    variants = {"w8a8": {"checkpoint": {"path": path}, "precision": "W8A8", "engine_args": w8a8}}
    loaded = recipe.load(write(folder, small(engine=options, variants=variants)))
    check_servers(loaded, load_engine("openai"))


@pytest.mark.parametrize(
    ("base", "w8a8"),
    [
        ({}, {}),
        ({}, {"base_url": A + "/"}),
        ({}, {"base_url": "http://LocalHost:8000"}),
        ({}, {"base_url": "http://[::1]:8000/v1"}),
        ({"model": "m"}, {}),
        ({}, {"model": "m"}),
        ({"model": "m"}, {"model": "m"}),
    ],
)
def test_two_checkpoints_at_one_server_under_one_name_are_refused(
    tmp_path: Path, base: dict[str, Any], w8a8: dict[str, Any]
) -> None:
    with pytest.raises(
        RecipeError, match=r"variants\.w8a8: it would be asked at http://127\.0\.0\.1:8000 as baseline is"
    ):
        check(tmp_path, base, w8a8)


def test_a_scheme_s_own_port_may_be_left_out(tmp_path: Path) -> None:
    with pytest.raises(
        RecipeError, match=r"variants\.w8a8: it would be asked at https://chat\.example:443 as baseline is"
    ):
        check(tmp_path, {"base_url": "https://chat.example/v1"}, {"base_url": "https://Chat.example:443/v1"})


def test_servers_or_names_of_their_own_and_a_control_are_taken(tmp_path: Path) -> None:
    check(tmp_path, {}, {"base_url": B})
    check(tmp_path, {"model": "chat"}, {"model": "chat-w8a8"})
    check(tmp_path, {}, {}, path="model")


def test_an_engine_that_serves_the_checkpoint_itself_needs_none(tmp_path: Path) -> None:
    check_servers(recipe.load(write(tmp_path, small())), load_engine("fake"))


NUM_ITEMS = 60


class Remote:
    """Somebody else's server: what it says that it serves and how it answers is a test's to change."""

    def __init__(self) -> None:
        self.roots: dict[str, str | None] = {"m": "/models/w8a8"}
        self.is_down = False
        self.is_wrong = False
        self.refuses: frozenset[int] = frozenset()
        """Items whose request is a mistake of the asker's."""
        self.swaps_after: int | None = None
        """Answers after which it is another model."""
        self.asked: list[str] = []

    async def __call__(self, request: Request) -> tuple[int, Any]:
        if self.is_down:
            raise ConnectionError
        if request.path == "/v1/models":
            return 200, {
                "data": [{"id": name, "root": root, "created": len(self.asked)} for name, root in self.roots.items()]
            }
        if request.path != "/v1/chat/completions":
            return 404, ""
        text = request.body["messages"][-1]["content"]
        self.asked.append(text)
        if len(self.asked) == self.swaps_after:
            self.roots = {"m": "/models/other"}
        if any(f"of crate {number}?" in text for number in self.refuses):
            return 400, {"error": {"message": "maximum context length"}}
        code = "none" if self.is_wrong else text.split(" is ")[1].split(".")[0]
        message = {"role": "assistant", "content": f"The code is {code}"}
        return 200, {"choices": [{"message": message, "finish_reason": "stop"}], "usage": {"completion_tokens": 4}}


@pytest.fixture
def remotes() -> Iterator[tuple[HttpStub, Remote, HttpStub, Remote]]:
    """The baseline's and the variant's."""
    one, other = Remote(), Remote()
    with HttpStub(one) as first, HttpStub(other) as second:
        yield first, one, second, other


def made(
    folder: Path, base: HttpStub, variant: HttpStub, *, name: str | None = None, baseline: str | None = None
) -> Path:
    write_evalset(folder, [item(number) for number in range(NUM_ITEMS)])
    for number, each in enumerate(("model", "w8a8")):
        checkpoints.write(folder / each, number)
    engine = {"name": "openai", "options": {"base_url": base.url, "model": baseline}}
    args = {"base_url": variant.url, "model": name}
    variants = {"w8a8": {"checkpoint": {"path": "w8a8"}, "precision": "W8A8", "engine_args": args}}
    return write(
        folder,
        small(
            engine=engine,
            variants=variants,
            token_evidence={"enabled": False},
            statistics={"resamples": 1000},
            tiers__chat__engines=["openai"],
            tiers__chat__criteria=[{"metric": "score_loss", "margin": 0.1}],
        ),
    )


def run(folder: Path) -> tuple[pipeline.Outcome, Watcher]:
    watcher = Watcher()
    return pipeline.run(recipe.load(folder / "recipe.yaml"), folder / "results", watcher), watcher


def test_a_server_that_serves_another_model_by_now_is_asked_anew(
    tmp_path: Path, remotes: tuple[HttpStub, Remote, HttpStub, Remote]
) -> None:
    base, _, variant, remote = remotes
    made(tmp_path, base, variant)
    first, _ = run(tmp_path)
    assert verdict_of(first, "w8a8") is Verdict.PASS
    assert not any("not asked in this run" in finding for finding in first.sheet.findings)
    remote.roots, remote.is_wrong = {"m": "/models/other"}, True
    second, _ = run(tmp_path)
    assert verdict_of(second, "w8a8") is Verdict.FAIL
    assert len(remote.asked) == 2 * NUM_ITEMS
    assert str(second.run.engine_facts["w8a8"].details["model"]["root"]) == "other", "no folder travels"


def test_a_silent_server_s_stored_answers_count_and_the_verdict_says_of_when_they_are(
    tmp_path: Path, remotes: tuple[HttpStub, Remote, HttpStub, Remote]
) -> None:
    base, one, variant, other = remotes
    path = made(tmp_path, base, variant)
    run(tmp_path)
    one.is_down = other.is_down = True
    seen = len(base.seen) + len(variant.seen)
    lines = outlook(prepare(recipe.load(path), tmp_path / "results", Watcher()))
    assert {line.state for line in lines if line.kind == "generate"} == {"stored"}
    assert len(base.seen) + len(variant.seen) == seen, "a plan asks nobody"
    again, watcher = run(tmp_path)
    assert verdict_of(again, "w8a8") is Verdict.PASS
    assert "w8a8: its server does not say what it serves; what is stored counts" in watcher.notes
    (said,) = [finding for finding in again.sheet.findings if finding.startswith("w8a8: the server was not asked")]
    assert "for 1 step whose answers were stored before" in said


def test_answers_of_a_server_that_was_swapped_meanwhile_are_not_kept(
    tmp_path: Path, remotes: tuple[HttpStub, Remote, HttpStub, Remote]
) -> None:
    base, _, variant, remote = remotes
    made(tmp_path, base, variant)
    remote.swaps_after = NUM_ITEMS // 2
    outcome, _ = run(tmp_path)
    assert "changed during the run: it tells another root" in outcome.run.failures["w8a8"]
    remote.swaps_after = None
    run(tmp_path)
    assert len(remote.asked) == 2 * NUM_ITEMS


def test_two_names_of_one_model_at_one_server_are_refused_before_anything_is_asked(
    tmp_path: Path, remotes: tuple[HttpStub, Remote, HttpStub, Remote]
) -> None:
    base, remote, *_ = remotes
    made(tmp_path, base, base, baseline="m", name="w8a8")
    remote.roots = {"m": "/models/fp16", "w8a8": "/models/fp16"}
    with pytest.raises(RecipeError, match=r"where both names are /models/fp16, as baseline is"):
        run(tmp_path)
    assert not remote.asked
    remote.roots = {"m": None, "w8a8": None}  # a server that does not tell
    run(tmp_path)
    assert remote.asked


def test_what_did_not_come_is_asked_again_and_nothing_else(
    tmp_path: Path, remotes: tuple[HttpStub, Remote, HttpStub, Remote]
) -> None:
    base, one, variant, remote = remotes
    path = made(tmp_path, base, variant)
    remote.refuses = frozenset(range(0, NUM_ITEMS, 10))
    run(tmp_path)
    assert len(remote.asked) == NUM_ITEMS

    def states() -> list[str]:
        lines = outlook(prepare(recipe.load(path), tmp_path / "results", Watcher()))
        return [line.state for line in lines if line.kind == "generate" and line.label.startswith("w8a8")]

    assert states() == ["54 of 60 stored"]
    same, watcher = run(tmp_path)
    assert len(remote.asked) == NUM_ITEMS + 6, "those alone"
    assert "w8a8: tiny · greedy: 6 answers did not come before, asked again now" in watcher.notes
    assert same.run.arms[-1].num_by_status == {"ok": 54, "error": 6}
    remote.refuses = frozenset({0, 10})
    run(tmp_path)
    remote.is_down = True
    silent, _ = run(tmp_path)
    assert silent.run.arms[-1].num_by_status == {"ok": 58, "error": 2}, "stored answers count where nobody can be asked"
    remote.is_down, remote.refuses = False, frozenset()
    healed, _ = run(tmp_path)
    assert len(remote.asked) == NUM_ITEMS + 6 + 6 + 2
    assert healed.run.arms[-1].num_by_status == {"ok": 60}
    assert verdict_of(healed, "w8a8") is Verdict.PASS
    assert states() == ["stored"]
    run(tmp_path)
    assert len(remote.asked) == NUM_ITEMS + 14
    assert len(one.asked) == 2 * NUM_ITEMS


def test_stored_answers_count_where_asking_again_ends_the_server(
    tmp_path: Path, remotes: tuple[HttpStub, Remote, HttpStub, Remote], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What never answers beside others hangs alone: the verdict that there was must not be lost to it."""
    base, _, variant, remote = remotes
    made(tmp_path, base, variant)
    remote.refuses = frozenset({0})
    before, _ = run(tmp_path)

    def hangs(*_: Any) -> None:
        raise HungError("the server finished nothing for 300 s", advice="look at it")

    monkeypatch.setattr(arms, "generate", hangs)
    after, watcher = run(tmp_path)
    assert not after.run.failures
    assert after.run.arms[-1].num_by_status == before.run.arms[-1].num_by_status == {"ok": 59, "error": 1}
    assert "w8a8: tiny · greedy: the server finished nothing for 300 s; what is stored counts" in watcher.notes


def test_a_server_that_tells_less_than_before_is_the_same(
    tmp_path: Path, remotes: tuple[HttpStub, Remote, HttpStub, Remote]
) -> None:
    base, _, variant, remote = remotes
    made(tmp_path, base, variant)
    run(tmp_path)
    remote.roots = {"m": None}
    run(tmp_path)
    assert len(remote.asked) == NUM_ITEMS
