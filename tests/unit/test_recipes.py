"""The recipes that come with qgate: they load, and what they name in this repository is there."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import yaml

from qgate import cli
from qgate.crosscheck import evalset_name
from qgate.io import evalsets, recipe
from qgate.rooms import calibration
from qgate.schemas.recipe import HubSource
from tests.http_stub import HttpStub, Request
from tests.unit.tiny_checkpoint import write_checkpoint

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
STARTER = Path(str(files("qgate.commands").joinpath("starter.yaml")))
GENERAL = ROOT / "recipes" / "calibration" / "general.jsonl"
COLUMNS = {"qwen2.5-7b": (3584, 18_944), "llama-3.1-8b": (4096, 14_336), "mistral-7b": (4096, 14_336)}
"""Columns of each model's linear layers (hidden and intermediate size): groups must divide them."""
by_name = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


def test_the_common_cases_are_there() -> None:
    assert {*COLUMNS, "demo", "demo-vllm", "ready-checkpoint", "running-server"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("path", [*RECIPES, STARTER], ids=lambda path: path.stem)
def test_it_loads(path: Path) -> None:
    assert recipe.load(path).recipe.tiers


@by_name
def test_it_is_named_as_its_file(path: Path) -> None:
    assert recipe.load(path).recipe.name == path.stem


@by_name
def test_its_calibration_texts_are_there_and_enough(path: Path) -> None:
    for variant in recipe.load(path).recipe.variants.values():
        if variant.calibration is not None:
            assert variant.calibration.file is not None
            assert variant.calibration.file.resolve() == GENERAL
            assert len(calibration.check(variant.calibration)) >= variant.calibration.num_samples


@by_name
def test_its_evaluation_sets_have_items_for_every_slice_that_it_asks_for(path: Path) -> None:
    for use in recipe.load(path).recipe.evalsets:
        items = evalsets.load(use, path.parent).items
        assert items, use.name
        for key, values in use.where.items():
            assert {item.slices[key] for item in items} == set(values), f"{evalset_name(use.name)}: {key}"


@by_name
def test_a_pinned_revision_is_a_whole_commit(path: Path) -> None:
    loaded = recipe.load(path).recipe
    sources = [loaded.model, *(variant.checkpoint for variant in loaded.variants.values())]
    for source in sources:
        if isinstance(source, HubSource):
            assert source.revision == "main" or re.fullmatch(r"[0-9a-f]{40}", source.revision)


@pytest.mark.parametrize("name", COLUMNS)
def test_groups_divide_the_columns_of_the_model(name: str) -> None:
    variants = recipe.load(ROOT / "recipes" / f"{name}.yaml").recipe.variants
    assert {str(variant.options["scheme"]) for variant in variants.values()} == {
        "W8A8", "FP8_DYNAMIC", "W4A16_ASYM", "W4A16",
    }  # fmt: skip
    for variant in variants.values():
        size = variant.options.get("group_size", 1)
        assert all(columns % size == 0 for columns in COLUMNS[name])


def test_the_attached_servers_of_baseline_and_variant_are_two() -> None:
    loaded = recipe.load(ROOT / "recipes" / "running-server.yaml")
    urls = {model.model_dump()["base_url"] for model in loaded.variant_engine_options.values()}
    assert loaded.engine_options.model_dump()["base_url"] not in urls


async def some_server(request: Request) -> tuple[int, Any]:
    """A server that is not vLLM: it lists one model and says the same to everybody."""
    if request.path == "/v1/models":
        return 200, {"data": [{"id": "chat-7b"}]}
    if request.path == "/v1/chat/completions":
        choice = {"message": {"role": "assistant", "content": "It is in the attic."}, "finish_reason": "stop"}
        return 200, {"choices": [choice], "usage": {"prompt_tokens": 9, "completion_tokens": 6}}
    return 404, {}


def test_attached_servers_are_each_asked_for_their_own_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    written = yaml.safe_load((ROOT / "recipes" / "running-server.yaml").read_text(encoding="utf-8"))
    write_checkpoint(tmp_path / "models" / "chat-7b")
    write_checkpoint(tmp_path / "models" / "chat-7b-w8a8")
    with HttpStub(some_server) as first, HttpStub(some_server) as second:
        written["engine"]["options"]["base_url"] = f"{first.url}/v1"
        written["variants"]["w8a8"] |= {"engine_args": {"base_url": f"{second.url}/v1"}, "precision": "W8A8"}
        written["evalsets"] = [{"name": "instruction@1", "limit": 3}]
        written["token_evidence"] = {"enabled": False}
        written["noise_floor"] = {"replicates": 1}
        criteria = written["tiers"]["public-chat"]["criteria"]
        written["tiers"]["public-chat"]["criteria"] = [each for each in criteria if each["metric"] != "kl_mean"]
        (tmp_path / "recipes").mkdir()
        (tmp_path / "recipes" / "r.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
        code = cli.main(["run", str(tmp_path / "recipes" / "r.yaml"), "--results", str(tmp_path / "out"), "--quiet"])
        asked = [Counter(request.path for request in stub.seen)["/v1/chat/completions"] for stub in (first, second)]
    assert code == 3, "three items settle nothing"
    assert asked == [2 * 3 * 3, 3 * 3], "items × (greedy + two warm seeds), the baseline twice"


def test_what_the_starter_has_commented_out_loads_too(tmp_path: Path) -> None:
    text = STARTER.read_text(encoding="utf-8")
    opened = text.replace("  # ready:  ", "  ready:  ").replace("  #   checkpoint:", "    checkpoint:")
    (tmp_path / "recipe.yaml").write_text(opened, encoding="utf-8")
    assert "ready" in yaml.safe_load(opened)["variants"]
    assert recipe.load(tmp_path / "recipe.yaml").recipe.variants["ready"].checkpoint is not None
