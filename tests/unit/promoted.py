"""For tests of promotion: a judged run on the fake engine, and copies of its evidence and checkpoints to tamper with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from qgate import pipeline
from qgate.io import recipe
from tests.unit.test_pipeline import Watcher, made


@dataclass(frozen=True)
class Promoted:
    """A copy of a run's evidence and checkpoints."""

    folder: Path

    @property
    def evidence(self) -> Path:
        """The bare statement."""
        return self.folder / "evidence.intoto.json"

    @property
    def good(self) -> Path:
        """The checkpoint of the variant that passed for the tier `chat`."""
        return self.folder / "good"

    @property
    def bad(self) -> Path:
        """The checkpoint of the variant that failed."""
        return self.folder / "bad"

    def edit(self, change: Callable[[dict[str, Any]], object]) -> Path:
        """Change the statement as somebody would who wants a checkpoint through."""
        value = json.loads(self.evidence.read_text(encoding="utf-8"))
        change(value)
        self.evidence.write_text(json.dumps(value), encoding="utf-8")
        return self.evidence

    def twin(self, name: str, of: str = "good") -> None:
        """Another variant with the same bytes."""

        def twice(value: dict[str, Any]) -> None:
            value["predicate"]["variants"][name] = value["predicate"]["variants"][of]
            mine = [subject for subject in value["subject"] if subject["name"].startswith(f"{of}/")]
            value["subject"] += [subject | {"name": subject["name"].replace(of, name, 1)} for subject in mine]

        self.edit(twice)

    def copy(self, folder: Path) -> Promoted:
        """The same in another folder."""
        shutil.copy(self.evidence, folder)
        for name in ("good", "bad", "model"):
            shutil.copytree(self.folder / name, folder / name)
        return Promoted(folder)


def judge(folder: Path) -> Promoted:
    """Run a recipe with two variants and three tiers in `folder`."""
    criteria = [{"metric": "score_loss", "margin": 0.1}, {"metric": "defect_increase", "margin": 0.1}]
    tier = {"engines": ["fake"], "criteria": criteria}
    tiers = {
        "chat": {"default": "good", "allow": ["W8A8", "W4A16", "baseline"], **tier},
        "batch": {"default": "bad", "allow": ["bad"], **tier},
        "judge": {"default": "baseline", "allow": ["baseline"], "engines": ["fake"]},
    }
    path = made(folder, tiers=tiers)
    for name in ("good", "bad", "model"):
        (folder / name / "tokenizer.json").write_text('{"version": "1.0"}', encoding="utf-8")
    outcome = pipeline.run(recipe.load(path), folder / "results", Watcher())
    shutil.copy(outcome.folder / "evidence.intoto.json", folder)
    return Promoted(folder)


def key_pair(folder: Path, name: str = "key") -> tuple[Path, Path]:
    """A private and a public PEM file."""
    key = Ed25519PrivateKey.generate()
    private, public = folder / f"{name}.pem", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return private, public
