"""What a promotion writes: the policy that a deployer reads, and the model card that the hub reads."""

import shlex
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import ModelCard

from qgate.cli import main
from qgate.errors import ArtefactError, ExitCode
from qgate.judge.promotion import Demand
from qgate.rooms.promote import promote
from qgate.rooms.verify import verify
from tests.unit.promoted import Promoted

NOW = datetime.now(UTC) + timedelta(hours=12)
"""After the run that is held against it, however long the tests before that run took."""


def written(run: Promoted, tiers: tuple[str, ...] = ("chat",)) -> dict[str, Any]:
    found = verify(run.good, run.evidence, Demand(tiers), NOW)
    promote(found, run.folder / "policy.yaml", NOW)
    value: dict[str, Any] = yaml.safe_load((run.folder / "policy.yaml").read_text(encoding="utf-8"))
    return value


def test_every_interface_has_its_server(promoted: Promoted) -> None:
    policy = written(promoted)
    served = {name: interface["server"] for name, interface in policy["interfaces"].items()}
    assert served == {"chat": "good", "batch": "baseline", "judge": "baseline"}
    assert policy["interfaces"]["chat"]["fallbacks"] == [{"server": "baseline", "needs_restart": True}]
    assert policy["interfaces"]["judge"]["fallbacks"] == []
    batch = policy["interfaces"]["batch"]
    assert (batch["default"], batch["verdict"]) == ("bad", "FAIL")
    assert policy["qgate"] == {"kind": "policy", "version": 1}


def test_only_what_was_hashed_is_verified(promoted: Promoted) -> None:
    servers = written(promoted)["servers"]
    assert {name: server["verified"] for name, server in servers.items()} == {"good": True, "baseline": False}
    words = shlex.split(servers["good"]["command"])
    assert words[:5] == ["vllm", "serve", str(promoted.good), "--served-model-name", "good"]
    assert servers["good"]["notes"] == ["judged on the engine fake, not on vLLM: this command was never judged"]


def test_an_interface_that_may_serve_nothing(promoted: Promoted) -> None:
    def close(value: dict[str, Any]) -> None:
        value["predicate"]["tiers"]["batch"].update(serve=None, fallback=None)

    promoted.edit(close)
    batch = written(promoted)["interfaces"]["batch"]
    assert (batch["server"], batch["fallbacks"]) == (None, [])


def test_equal_bytes_and_options_need_no_restart(promoted: Promoted) -> None:
    def twice(value: dict[str, Any]) -> None:
        said = value["predicate"]["tiers"]["chat"]["variants"]
        said["twin"] = said["good"]

    promoted.twin("twin")
    promoted.edit(twice)
    backs = written(promoted)["interfaces"]["chat"]["fallbacks"]
    assert backs == [{"server": "twin", "needs_restart": False}, {"server": "baseline", "needs_restart": True}]


def test_a_hub_model_is_served_at_its_commit(promoted: Promoted) -> None:
    source = {"hub": "org/model", "revision": "main", "commit": "0" * 40}
    promoted.edit(lambda value: value["predicate"]["variants"]["baseline"].update(source=source))
    command = written(promoted)["servers"]["baseline"]["command"]
    assert "vllm serve org/model " in command
    assert command.endswith(f"--revision {'0' * 40}")


def test_a_new_card_holds_results_that_the_hub_reads(promoted: Promoted) -> None:
    written(promoted)
    card = ModelCard.load(promoted.good / "README.md")
    (result,) = card.data.eval_results
    assert (result.dataset_type, result.metric_type) == ("tiny", "mean_score")
    assert 0 <= result.metric_value <= 1
    (index,) = card.data.to_dict()["model-index"]
    assert index["name"] == "good"
    assert "| chat | PASS | good | baseline |" in card.text
    assert "| judge | not allowed | baseline | — |" in card.text
    assert "UNSIGNED" in card.text
    assert " ran it on fake " in card.text


CARD = """\
---
license: apache-2.0  # as the base
base_model: org/model
language: [en, no]  # Norwegian: the hub reads YAML 1.2
tags:
- chat
model-index:
- name: Mine
  results:
  - task:
      type: text-generation
    dataset:
      name: GSM8K
      type: gsm8k
    metrics:
    - type: accuracy
      value: 0.5
      name: Accuracy

# said of training
datasets: null
---
# Mine

Words of mine.
"""


def test_a_card_keeps_all_else_and_is_written_again_in_place(promoted: Promoted) -> None:
    path = promoted.good / "README.md"
    path.write_text(CARD, encoding="utf-8")
    written(promoted)
    first = path.read_text(encoding="utf-8")
    assert [line for line in CARD.splitlines()[:10] if line not in first.splitlines()] == []
    assert "\n\n# said of training\ndatasets: null\n" in first
    written(promoted)
    assert path.read_text(encoding="utf-8") == first
    card = ModelCard(first)
    assert card.text.startswith("# Mine\n\nWords of mine.\n\n<!-- qgate: begin -->")
    assert first.count("## Where it may serve") == 1
    assert {result.dataset_type for result in card.data.eval_results} == {"gsm8k", "tiny"}
    assert (card.data.model_name, card.data.base_model, card.data.license) == ("Mine", "org/model", "apache-2.0")


@pytest.mark.parametrize(
    "front",
    ["{license: mit, model-index: [{name: Mine, results: []}]}\n", '"model-index": [{name: Mine, results: []}]\n'],
)
def test_a_card_that_is_written_otherwise_is_laid_anew(promoted: Promoted, front: str) -> None:
    path = promoted.good / "README.md"
    path.write_text(f"---\n{front}---\nWords.\n", encoding="utf-8")
    written(promoted)
    card = ModelCard.load(path)
    assert (card.data.model_name, len(card.data.eval_results)) == ("Mine", 1)
    assert card.text.startswith("Words.\n\n<!-- qgate: begin -->")


def test_a_card_from_windows(promoted: Promoted) -> None:
    path = promoted.good / "README.md"
    path.write_bytes(b"\xef\xbb\xbf---\r\nlicense: mit\r\n---\r\nWords.\r\n")
    written(promoted)
    raw = path.read_bytes()
    assert raw.startswith(b"---\r\nlicense: mit\r\nmodel-index:\r\n")
    assert raw.count(b"\n") == raw.count(b"\r\n")
    assert ModelCard(raw.decode()).data.license == "mit"


def test_words_after_the_section_stay(promoted: Promoted) -> None:
    path = promoted.good / "README.md"
    written(promoted)
    path.write_text(path.read_text(encoding="utf-8") + "\nMore words.\n", encoding="utf-8")
    written(promoted)
    assert path.read_text(encoding="utf-8").endswith("<!-- qgate: end -->\n\nMore words.\n")


@pytest.mark.parametrize(
    "text", ["---\n- a list\n---\n", "---\na: [\n---\n", "---\nmodel-index: [1]\n---\n", "---\nlicense: mit\n"]
)
def test_a_broken_card_is_left_alone(promoted: Promoted, text: str) -> None:
    (promoted.good / "README.md").write_text(text, encoding="utf-8")
    with pytest.raises(ArtefactError):
        written(promoted)
    assert (promoted.good / "README.md").read_text(encoding="utf-8") == text
    assert not (promoted.folder / "policy.yaml").exists()


def test_what_is_promoted_can_be_verified_again(promoted: Promoted) -> None:
    written(promoted)
    assert verify(promoted.good, promoted.evidence, Demand(("chat",)), NOW).variant == "good"


def test_the_verb(promoted: Promoted, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["promote", str(promoted.good), "--evidence", str(promoted.evidence)]
    words += ["--out", str(promoted.folder / "p.yaml")]
    assert main([*words, "--tier", "batch"]) == ExitCode.FAIL
    assert not (promoted.folder / "p.yaml").exists()
    assert not (promoted.good / "README.md").exists()
    assert main([*words, "--tier", "chat"]) == ExitCode.PASS
    assert "chat: serves good, falls back to baseline" in capsys.readouterr().out
    assert Path(promoted.folder / "p.yaml").exists()
