"""Stored files name their kind and version; older ones are upgraded, newer and other ones refused."""

import json
from pathlib import Path
from typing import ClassVar

import pytest

from qgate.errors import ArtefactError
from qgate.io import artefact
from qgate.schemas.base import Stored


class Box(Stored):
    KIND: ClassVar[str] = "box"
    VERSION: ClassVar[int] = 3
    colour: str


def upgraded(fields: dict[str, object]) -> dict[str, object]:
    return {"colour": fields["color"]}


def test_round_trip(tmp_path: Path) -> None:
    artefact.save(tmp_path / "a.json", Box(colour="grün"))
    assert artefact.load(tmp_path / "a.json", Box) == Box(colour="grün")
    assert json.loads((tmp_path / "a.json").read_text())["qgate"] == {"kind": "box", "version": 3}


def test_older_versions_go_through_the_chain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(artefact.UPGRADES, ("box", 1), lambda fields: {"color": fields["kolor"]})
    monkeypatch.setitem(artefact.UPGRADES, ("box", 2), upgraded)
    (tmp_path / "a.json").write_text('{"qgate": {"kind": "box", "version": 1}, "kolor": "red"}')
    assert artefact.load(tmp_path / "a.json", Box).colour == "red"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ("[]", "is no box file"),
        ('{"colour": "red"}', "is no box file"),
        ('{"qgate": {"kind": "crate", "version": 1}}', "is no box file (kind: crate)"),
        ('{"qgate": {"kind": "box", "version": 4}, "colour": "red"}', "reads up to 3"),
        ('{"qgate": {"kind": "box", "version": 0}, "colour": "red"}', "is a box of version 0"),
        ('{"qgate": {"kind": "box", "version": [3]}, "colour": "red"}', "is a box of version [3]"),
        ("[" * 100_000, "is not JSON"),
        ('{"qgate": {"kind": "box", "version": 3}, "colour": 5}', "colour"),
    ],
)
def test_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(ArtefactError) as caught:
        artefact.load(tmp_path / "a.json", Box)
    assert said in caught.value.message


def test_missing(tmp_path: Path) -> None:
    with pytest.raises(ArtefactError, match="cannot read"):
        artefact.load(tmp_path / "a.json", Box)
