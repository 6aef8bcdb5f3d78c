"""The score log: arrays come back as they went in, parts resume, a damaged part is an error."""

from pathlib import Path

import numpy as np
import pytest

from qgate.errors import ArtefactError
from qgate.io import score_log
from qgate.io.score_log import ScoreLog, read_scores
from qgate.schemas.answers import TokenScores


def scores(number: int, length: int = 5, top_k: int = 3) -> TokenScores:
    draw = np.random.default_rng(number)
    logprobs = draw.normal(size=length).astype(np.float32)
    logprobs[0] = -np.inf
    return TokenScores(
        id=f"s/i{number}/p/0",
        token_ids=draw.integers(0, 1000, length).astype(np.int32),
        logprobs=logprobs,
        top_ids=draw.integers(0, 1000, (length, top_k)).astype(np.int32),
        top_logprobs=draw.normal(size=(length, top_k)).astype(np.float32),
        prompt_token_ids_sha256="ab" if number % 2 else None,
    )


def same(one: TokenScores, other: TokenScores) -> bool:
    arrays = ("token_ids", "logprobs", "top_ids", "top_logprobs")
    equal = all(np.array_equal(getattr(one, name), getattr(other, name)) for name in arrays)
    return equal and (one.id, one.prompt_token_ids_sha256) == (other.id, other.prompt_token_ids_sha256)


def test_round_trip_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_log, "PART_POSITIONS", 12)
    log = ScoreLog(tmp_path)
    for number in range(7):
        log.append(scores(number, length=3 + number))
    log.flush()
    back = list(read_scores(tmp_path))
    assert len(list(tmp_path.glob("part-*.npz"))) > 1
    assert all(same(one, scores(number, length=3 + number)) for number, one in enumerate(back))
    assert ScoreLog(tmp_path).done == {scores(n).id for n in range(7)}


def test_without_alternatives(tmp_path: Path) -> None:
    log = ScoreLog(tmp_path)
    log.append(scores(1, top_k=0))
    log.flush()
    assert next(read_scores(tmp_path)).top_ids.shape == (5, 0)


def test_damaged_part(tmp_path: Path) -> None:
    (tmp_path / "part-00000.npz").write_bytes(b"PK nonsense")
    with pytest.raises(ArtefactError, match="damaged"):
        list(read_scores(tmp_path))
