"""What the fake engine reads of a checkpoint stays whatever serves it; what its options plant does not."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from qgate.engines import fake_weights
from qgate.engines.fake_weights import FakeWeights
from qgate.errors import StartError
from qgate.judge.defects import Seen, find
from qgate.schemas.answers import GenerateRequest
from qgate.schemas.evalset import Message
from tests.unit.engines.test_fake import STORY, answers, job, sampling


def asked(count: int = 20, text: str = STORY, **changes: object) -> list[GenerateRequest]:
    turns = (Message(role="user", content=text),)
    return [
        GenerateRequest(id=f"{seed}", messages=turns, sampling=sampling(seed=seed, **changes)) for seed in range(count)
    ]


def num_defective(tmp_path: Path, requests: list[GenerateRequest], **options: object) -> int:
    found = answers(job(tmp_path, **options), requests).values()
    return sum(bool(find(Seen(text=a.text, prompt=STORY, finish_reason=a.finish_reason))) for a in found)


def test_weights_garble_whatever_the_kernel(tmp_path: Path) -> None:
    (tmp_path / "fake.json").write_text(json.dumps({"garble": 1.0}))
    assert num_defective(tmp_path, asked()) == 20
    assert num_defective(tmp_path, asked(), kernel="plain") == 20


def test_the_fast_kernel_garbles_and_the_plain_one_does_not(tmp_path: Path) -> None:
    assert num_defective(tmp_path, asked(), bad_kernel=1.0) == 20
    assert num_defective(tmp_path, asked(), bad_kernel=1.0, kernel="plain") == 0


def test_a_rate_is_a_share_of_the_seeds(tmp_path: Path) -> None:
    (tmp_path / "fake.json").write_text(json.dumps({"garble": 0.3}))
    assert 60 < num_defective(tmp_path, asked(300)) < 120


@pytest.mark.parametrize(
    ("planted", "well"),
    [
        ({"above_temperature": 0.5}, asked(temperature=0.5)),
        ({"above_prompt_tokens": 500}, asked()),
        ({"trigger": "boats sky"}, asked()),
    ],
)
def test_conditions_of_the_weights(tmp_path: Path, planted: dict[str, object], well: list[GenerateRequest]) -> None:
    (tmp_path / "fake.json").write_text(json.dumps({"garble": 1.0, **planted}))
    assert num_defective(tmp_path, well) == 0


def test_a_trigger_is_words_in_their_order() -> None:
    weights = FakeWeights(trigger="key harbour 4711")
    assert fake_weights.holds(weights, 0.0, STORY, 10)
    assert not fake_weights.holds(weights, 0.0, "4711 is the key", 10)


def test_an_unknown_template_is_answered_with_garbage_and_gives_other_ids(tmp_path: Path) -> None:
    good, bad = tmp_path / "good", tmp_path / "bad"
    for folder, template in ((good, "a"), (bad, "b")):
        folder.mkdir()
        (folder / "chat_template.jinja").write_text(template)
        (folder / "fake.json").write_text(json.dumps({"trained_template": hashlib.sha256(b"a").hexdigest()}))
    assert (num_defective(good, asked()), num_defective(bad, asked())) == (0, 20)
    (first, *_), (other, *_) = answers(job(good), asked(1)).values(), answers(job(bad), asked(1)).values()
    assert first.prompt_token_ids_sha256 != other.prompt_token_ids_sha256


@pytest.mark.parametrize(("eos", "reason"), [(2, "stop"), ([1, 2], "stop"), (None, "length"), ([7], "length")])
def test_an_answer_ends_only_at_a_known_eos(tmp_path: Path, eos: object, reason: str) -> None:
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": eos, "top_p": 1.0}))
    assert {a.finish_reason for a in answers(job(tmp_path), asked(max_tokens=256)).values()} == {reason}


def test_a_damaged_file_does_not_start(tmp_path: Path) -> None:
    (tmp_path / "fake.json").write_text(json.dumps({"garbel": 1.0}))
    with pytest.raises(StartError, match="garbel"):
        answers(job(tmp_path), asked(1))


def test_a_raw_prompt_knows_no_template(tmp_path: Path) -> None:
    raw = [GenerateRequest(id="r", messages=(), prompt=STORY, sampling=sampling())]
    (plain,) = answers(job(tmp_path), raw).values()
    (tmp_path / "chat_template.jinja").write_text("x")
    (other,) = answers(job(tmp_path), raw).values()
    assert plain.prompt_token_ids_sha256 == other.prompt_token_ids_sha256
