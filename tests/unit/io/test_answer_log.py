"""The answer log: what was appended survives, a torn last line is dropped, damage elsewhere is an error."""

from pathlib import Path

import pytest

from qgate.errors import ArtefactError
from qgate.io.answer_log import AnswerLog, count_by_status, num_whole, read_answers, whole_answers
from qgate.schemas.answers import Answer


def answer(number: int) -> Answer:
    return Answer(
        id=f"s/i{number}/p/0", text="täxt\u2028\n" * number, status="ok", latency_s=0.5, token_ids=(1, number)
    )


def fill(folder: Path, count: int) -> None:
    with AnswerLog(folder) as log:
        for number in range(count):
            log.append(answer(number))


def test_round_trip(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    assert read_answers(tmp_path) == [answer(0), answer(1), answer(2)]


@pytest.mark.parametrize("cut", [1, 5, 40])
def test_torn_last_line(tmp_path: Path, cut: int) -> None:
    fill(tmp_path, 3)
    path = tmp_path / "answers.jsonl"
    path.write_bytes(path.read_bytes()[:-cut])
    assert list(whole_answers(tmp_path)) == [answer(0), answer(1)]
    with AnswerLog(tmp_path) as log:
        log.append(answer(2))
    assert read_answers(tmp_path) == [answer(0), answer(1), answer(2)]


def test_whoever_looks_leaves_a_line_that_is_being_written(tmp_path: Path) -> None:
    fill(tmp_path, 3)
    path = tmp_path / "answers.jsonl"
    path.write_bytes(torn := path.read_bytes()[:-5])
    assert num_whole(tmp_path) == 2
    assert path.read_bytes() == torn
    assert num_whole(tmp_path / "absent") == 0


def test_damage_in_the_middle(tmp_path: Path) -> None:
    fill(tmp_path, 2)
    path = tmp_path / "answers.jsonl"
    path.write_bytes(b"{}\n" + path.read_bytes())
    with pytest.raises(ArtefactError, match="no answer"):
        read_answers(tmp_path)


def test_counts() -> None:
    assert count_by_status([answer(0), answer(1), answer(2).model_copy(update={"status": "error"})]) == {
        "ok": 2,
        "error": 1,
    }
