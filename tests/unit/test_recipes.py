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
from qgate.io import evalsets, hashes, recipe
from qgate.judge.reach import out_of_reach
from qgate.rooms import calibration
from qgate.schemas.variant import HubSource
from tests.http_stub import HttpStub, Request
from tests.unit.sizing import models
from tests.unit.tiny_checkpoint import PLAIN, write_checkpoint

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
STARTER = Path(str(files("qgate.commands").joinpath("starter.yaml")))
GENERAL = ROOT / "recipes" / "calibration" / "general.jsonl"
PUBLISHED: dict[str, dict[str, Any]] = {
    "qwen2.5-7b": models.QWEN_2_5_7B | {"architectures": ["Qwen2ForCausalLM"], "max_position_embeddings": 32_768},
    "llama-3.1-8b": models.LLAMA_3_8B | {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 131_072},
    "mistral-7b": models.MISTRAL_7B_V01 | {"architectures": ["MistralForCausalLM"], "max_position_embeddings": 32_768},
}
"""The models of the recipes that quantize a model of the hub, in its config.json's words."""
by_name = pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)


def test_the_common_cases_are_there() -> None:
    assert {*PUBLISHED, "demo", "demo-vllm", "ready-checkpoint", "running-server"} <= {path.stem for path in RECIPES}


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
def test_it_asks_enough_items_for_each_of_its_criteria_to_pass(path: Path) -> None:
    asked = recipe.load(path).recipe
    sets = {evalset_name(use.name): evalsets.load(use, path.parent).items for use in asked.evalsets}
    counts = {name: len({item.twin_of or item.id for item in items}) for name, items in sets.items()}
    assert not list(out_of_reach(asked, counts, {}))


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


@pytest.mark.parametrize("num_gpus", [1, 2, 4])
@pytest.mark.parametrize("name", PUBLISHED)
def test_a_model_of_the_hub_is_planned_without_an_environment(
    name: str, num_gpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Group sizes, calibration and tensor parallelism are checked against the model's shapes (one layer of it)."""
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr(hashes, "sha256_file", lambda file: "0" * 64)
    written = yaml.safe_load((ROOT / "recipes" / f"{name}.yaml").read_text(encoding="utf-8"))
    models.write_checkpoint(tmp_path / "model", PUBLISHED[name] | {"num_hidden_layers": 1, "vocab_size": 1024})
    written["model"] = {"path": str(tmp_path / "model")}
    written["engine"]["options"] = {"tensor_parallel_size": num_gpus}
    written["evalsets"] = [{"name": "instruction@1", "limit": 3}]
    (tmp_path / "calibration").symlink_to(GENERAL.parent)
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    gpus = ["--gpu-memory", "80GiB", "--gpus", str(num_gpus)]
    code = cli.main(["plan", str(tmp_path / "r.yaml"), "--results", str(tmp_path / "results"), *gpus])
    said = " ".join(capsys.readouterr().out.split())
    assert code == 3, "the environments are missing, and it says so"
    for lock in ("vllm", "llmcompressor"):
        assert f"the environment '{lock}' is not built: qgate env build {lock}" in said
    for variant in ("w8a8", "fp8", "awq", "gptq"):
        assert f"{variant}, by llmcompressor to make" in said
        assert f"{variant} ~" in said, "its memory is told"
    assert "does not fit" not in said


def test_every_environment_that_a_recipe_needs_is_named_before_anything_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("QGATE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("COLUMNS", "160")
    written = yaml.safe_load((ROOT / "recipes" / "four-backends.yaml").read_text(encoding="utf-8"))
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    written["model"] = {"gguf": "model.gguf"}
    written["evalsets"] = [{"name": "instruction@1", "limit": 3}]
    (tmp_path / "calibration").symlink_to(GENERAL.parent)
    (tmp_path / "r.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    assert cli.main(["plan", str(tmp_path / "r.yaml"), "--results", str(tmp_path / "results")]) == 3
    said = capsys.readouterr().out
    for package in ("llmcompressor", "autoawq", "autogptq", "gptqmodel"):
        assert f"qgate env build {package}" in said


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
    norms = ("input_layernorm", "post_attention_layernorm")
    whole = PLAIN | {f"model.layers.0.{norm}.weight": ("F16", (96,)) for norm in norms}
    for name in ("chat-7b", "chat-7b-w8a8"):
        write_checkpoint(tmp_path / "models" / name, whole)
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
