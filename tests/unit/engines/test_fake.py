"""The fake engine: deterministic, paired between variants, and with the faults that were asked for."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from qgate.engines.fake import ENGINE, FakeEngine
from qgate.engines.fake_model import right_answer, tokenize
from qgate.engines.fake_options import FakeOptions
from qgate.errors import DiedError, HungError, StartError
from qgate.ports import Engine, ServeJob, Tool, load_engine
from qgate.schemas.answers import Answer, GenerateRequest, Sampling, ScoreRequest
from qgate.schemas.evalset import Message

STORY = "The sky was grey. The key of the harbour is 4711. Boats came in late. What is the key of the harbour?"


def sampling(**changes: object) -> Sampling:
    fields: dict[str, object] = {
        "temperature": 0.8,
        "top_p": 1.0,
        "top_k": -1,
        "min_p": 0.0,
        "max_tokens": 64,
        "seed": 1,
    }
    fields |= {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    return Sampling.model_validate({**fields, **changes})


def requests(count: int, **changes: object) -> list[GenerateRequest]:
    return [
        GenerateRequest(
            id=f"set/item-{index}/warm/1",
            messages=(Message(role="user", content=f"Part {index}. {STORY}"),),
            sampling=sampling(**changes),
        )
        for index in range(count)
    ]


def job(tmp_path: Path, *, name: str = "baseline", concurrency: int = 8, **options: object) -> ServeJob:
    return ServeJob(
        checkpoint=tmp_path, name=name, dtype="float16", options=FakeOptions.model_validate(options),
        tool=Tool(Path("python"), "none"), concurrency=concurrency, request_timeout_s=1.0, stall_timeout_s=0.01,
        repeatable=False, max_model_len=None, log=tmp_path / "serve.log", work=tmp_path,
    )  # fmt: skip


def answers(made: ServeJob, asked: list[GenerateRequest], engine: FakeEngine | None = None) -> dict[str, Answer]:
    with (engine or FakeEngine()).open(made) as session:
        found = list(session.generate(asked))
    assert len(found) == len(asked)
    return {answer.id: answer for answer in found}


def share(found: dict[str, Answer], text: str) -> float:
    return sum(text in (answer.text or "") for answer in found.values()) / len(found)


def test_is_registered_and_satisfies_the_protocol() -> None:
    assert isinstance(ENGINE, Engine)
    assert load_engine("fake") is ENGINE


def test_quotes_the_sentence_that_is_asked_for() -> None:
    assert "4711" in right_answer((Message(role="user", content=STORY),))
    assert "4711" in right_answer((Message(role="user", content=f"{STORY} Answer with the number only."),))


def test_same_variant_same_answers_and_other_seeds_other_answers(tmp_path: Path) -> None:
    asked = requests(50)
    assert answers(job(tmp_path), asked) == answers(job(tmp_path), asked)
    other = [one.model_copy(update={"sampling": sampling(seed=2)}) for one in asked]
    assert answers(job(tmp_path, accuracy=0.5), asked) != answers(job(tmp_path, accuracy=0.5), other)


def test_accuracy_is_a_share_and_losses_are_paired(tmp_path: Path) -> None:
    asked = requests(400)
    good = answers(job(tmp_path, accuracy=0.9), asked)
    bad = answers(job(tmp_path, name="bad", accuracy=0.6), asked)
    assert share(good, "4711") == pytest.approx(0.9, abs=0.05)
    assert share(bad, "4711") == pytest.approx(0.6, abs=0.08)
    assert not any("4711" in (bad[key].text or "") and "4711" not in (good[key].text or "") for key in good)


def test_noise_differs_between_askings_and_repeats_in_a_rerun(tmp_path: Path) -> None:
    asked, made = requests(100), job(tmp_path, noise=0.3)
    engine = FakeEngine()
    first, second = answers(made, asked, engine), answers(made, asked, engine)
    differing = sum(first[key].text != second[key].text for key in first)
    assert 20 < differing < 80
    assert answers(made, asked, FakeEngine()) == first


@pytest.mark.parametrize("fault", ["loop", "garble", "empty", "role_leak", "nonfinite", "error", "timeout"])
def test_planted_rate_is_met(tmp_path: Path, fault: str) -> None:
    asked = requests(400)
    clean = answers(job(tmp_path), asked)
    planted = answers(job(tmp_path, **{fault: 0.2}), asked)
    assert sum(clean[key] != planted[key] for key in clean) / 400 == pytest.approx(0.2, abs=0.06)


def test_loops_run_into_the_limit(tmp_path: Path) -> None:
    found = answers(job(tmp_path, loop=1.0), requests(5))
    assert {(answer.status, answer.finish_reason, answer.completion_tokens) for answer in found.values()} == {
        ("truncated", "length", 64)
    }


def test_faults_wait_for_their_temperature_and_length(tmp_path: Path) -> None:
    hot, cold = requests(20, temperature=1.0), requests(20, temperature=0.0)
    assert share(answers(job(tmp_path, loop=1.0, faults_above_temperature=0.5), hot), "4711. Th") > 0
    assert answers(job(tmp_path, loop=1.0, faults_above_temperature=0.5), cold) == answers(job(tmp_path), cold)
    assert answers(job(tmp_path, loop=1.0, faults_above_prompt_tokens=5000), hot) == answers(job(tmp_path), hot)


def test_race_needs_concurrency(tmp_path: Path) -> None:
    asked = requests(40)
    assert answers(job(tmp_path, race=0.5, concurrency=1), asked) == answers(job(tmp_path), asked)
    assert answers(job(tmp_path, race=0.5, concurrency=4), asked) != answers(job(tmp_path), asked)


def test_answers_by_prefix_take_the_longest(tmp_path: Path) -> None:
    made = job(tmp_path, accuracy=1.0, answers={"item": "{echo} / {seed}", "item-3": "three"})
    found = answers(made, requests(4))
    assert found["set/item-3/warm/1"].text == "three"
    assert (found["set/item-1/warm/1"].text or "").endswith(" / 1")


def test_logprobs_only_where_asked_and_none_where_not_finite(tmp_path: Path) -> None:
    asked = [one.model_copy(update={"logprobs": True}) for one in requests(3)]
    for answer in answers(job(tmp_path), asked).values():
        assert answer.logprobs is not None
        assert answer.token_ids is not None
        assert len(answer.logprobs) == len(answer.token_ids)
        assert all(value is not None and value <= 0 for value in answer.logprobs)
    assert {answer.logprobs for answer in answers(job(tmp_path), requests(3)).values()} == {None}
    broken = answers(job(tmp_path, nonfinite=1.0), asked)
    assert all(set(answer.logprobs or ()) == {None} for answer in broken.values())


def test_the_prompt_hash_is_that_of_little_endian_int32(tmp_path: Path) -> None:
    asked = requests(1)
    plain, drifted = answers(job(tmp_path), asked), answers(job(tmp_path, template_drift=True), asked)
    (one,), (other,) = plain.values(), drifted.values()
    assert one.prompt_token_ids_sha256 != other.prompt_token_ids_sha256
    assert len(one.prompt_token_ids_sha256 or "") == len(hashlib.sha256().hexdigest())


def test_scores_are_distributions_and_losses_show(tmp_path: Path) -> None:
    asked = [
        ScoreRequest(id=f"s{index}", messages=(Message(role="user", content=STORY),), completion_ids=(5, 6, 7 + index))
        for index in range(200)
    ]
    means = {}
    for name, options in {
        "baseline": {},
        "same": {},
        "worse": {"score_noise_nats": 0.3, "score_loss_nats": 1.0},
    }.items():
        with FakeEngine().open(job(tmp_path, name=name, **options)) as session:
            found = list(session.score(asked))
        assert [one.id for one in found] == [one.id for one in asked]
        for one in found:
            assert one.top_logprobs.shape == one.top_ids.shape == (3, 20)
            assert one.token_ids.dtype == np.int32
            assert (np.diff(one.top_logprobs, axis=1) <= 0).all()
            assert all(len(set(listed)) == 20 for listed in one.top_ids.tolist()), "no token is listed twice"
            assert np.exp(one.top_logprobs.astype(float)).sum(axis=1).max() < 1
        means[name] = float(np.mean([one.logprobs.mean() for one in found]))
    assert means["baseline"] == means["same"]
    assert means["worse"] < means["baseline"] - 0.1


def test_dies_after_n_and_only_so_often(tmp_path: Path) -> None:
    engine, made, asked = FakeEngine(), job(tmp_path, die_after=5, die_times=1), requests(20)
    got = []
    with engine.open(made) as session, pytest.raises(DiedError, match=r"serve\.log"):
        got.extend(iter(session.generate(asked)))
    with engine.open(made) as session:
        assert len(list(session.generate(asked))) == 20


def test_death_keeps_what_came_before(tmp_path: Path) -> None:
    got: list[Answer] = []
    with FakeEngine().open(job(tmp_path, die_after=5)) as session, pytest.raises(DiedError):
        for answer in session.generate(requests(20)):
            got.append(answer)  # noqa: PERF402  (what came before the error is the point)
    assert len(got) == 5


def test_hangs(tmp_path: Path) -> None:
    with FakeEngine().open(job(tmp_path, hang_after=0)) as session, pytest.raises(HungError, match=r"0\.01 s"):
        next(iter(session.generate(requests(1))))


def test_does_not_start_without_a_checkpoint(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="planted"), FakeEngine().open(job(tmp_path, refuse_start=True)):
        pass
    made = replace(job(tmp_path), checkpoint=tmp_path / "none")
    with pytest.raises(StartError, match="no such directory"), FakeEngine().open(made):
        pass


def test_rates_beyond_one_are_refused() -> None:
    with pytest.raises(ValidationError, match="add up to more than 1"):
        FakeOptions(loop=0.6, garble=0.6)


def test_pieces_join_to_the_text() -> None:
    text = "Ein Satz, 42 mal.\n\n你好，世界 🙂 end\u200b"
    assert "".join(tokenize(text)) == text
