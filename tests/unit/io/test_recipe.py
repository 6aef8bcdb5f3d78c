"""Recipe reading: every mistake is answered with the file, the line, the field and the near match."""

from pathlib import Path
from typing import Any

import pytest

from qgate.errors import RecipeError
from qgate.io.recipe import load
from tests.unit.recipes import small, write


def test_paths_are_absolute_and_options_validated(tmp_path: Path) -> None:
    loaded = load(write(tmp_path, small()))
    assert loaded.recipe.model.path == tmp_path / "model"  # type: ignore[union-attr]
    assert loaded.recipe.variants["w8a8"].checkpoint.path == tmp_path / "w8a8"  # type: ignore[union-attr]
    assert set(loaded.variant_engine_options) == {"w8a8"}
    assert loaded.base == tmp_path


OF_REFERENCES = {"metric": "kl_mean", "margin": 0.1, "of": "references"}
CASES: list[tuple[dict[str, Any], str, list[str]]] = [
    ({"evalsets": [{"lm_eval": {"tasks": []}}]}, "too few", ["evalsets[0].lm_eval.tasks: needs at least 1, has 0"]),
    ({"temprature": 1}, "unknown field", ["line", "`temprature`", "known:"]),
    ({"sampling__greedy__temprature": 0}, "near match", ["sampling.greedy.temprature", "did you mean 'temperature'?"]),
    ({"tiers__chat__criteria": [{"metric": "score_los", "margin": 0.1}]}, "metric", ["criteria[0].metric", "score_loss"]),
    ({"tiers__chat__criteria": []}, "no criteria", ["tiers.chat", "criteria"]),
    ({"tiers__chat__criteria": ...}, "criteria missing", ["tiers.chat", "criteria"]),
    ({"tiers__chat__default": "w8a9"}, "unknown default", ["tiers.chat.default", "did you mean 'w8a8'?"]),
    ({"tiers__chat__allow": ["awk"]}, "unknown allowed", ["tiers.chat.allow[0]", "'awk'"]),
    ({"tiers__chat__fallback": "base"}, "unknown fallback", ["tiers.chat.fallback", "did you mean 'baseline'?"]),
    ({"tiers__chat__engines": ["fakee"]}, "tier's engine", ["tiers.chat.engines[0]", "did you mean 'fake'?"]),
    ({"engine__name": "vlm"}, "engine", ["engine.name", "did you mean 'vllm'?"]),
    ({"engine__options": {"no_such": 1}}, "engine option", ["engine.options.no_such", "unknown field"]),
    ({"model": {"pth": "x"}}, "model source", ["model", "`hub`", "`gguf`"]),
    ({"model": {"hub": "a/b"}}, "hub without revision", ["model.revision", "missing"]),
    ({"variants": {}}, "no variants", ["variants"]),
    ({"variants__w8a8__quantizer": "x"}, "two origins", ["variants.w8a8", "exactly one"]),
    ({"variants__baseline": {"checkpoint": {"path": "x"}}}, "reserved name", ["variants.baseline"]),
    ({"evalsets": []}, "no sets", ["evalsets"]),
    ({"evalsets": [{"name": "./tiny"}, {"name": "tiny@1"}]}, "set twice", ["evalsets[1].name", "twice"]),
    ({"sampling__greedy__seeds": [0, 1]}, "greedy seeds", ["sampling.greedy", "greedy"]),
    ({"qgate": 2}, "newer format", ["newer", "upgrade qgate"]),
    ({"tiers__chat__criteria": [{"metric": "score_loss", "margin": 0.1, "evalset": "tin"}]}, "set", ["did you mean 'tiny'?"]),
    ({"tiers__chat__criteria": [{"metric": "defect_rate", "margin": 0.1, "defects": ["loop"]}]}, "defect", ["defects[0]"]),
    ({"tiers__chat__criteria": [{"metric": "defect_rate", "margin": 0.1, "defects": []}]}, "none", ["defects: needs at least 1"]),
    (
        {"tiers__chat__criteria": [{"metric": "defect_rate", "margin": 0.1, "defects": ["nonfinite_logprob"]}]},
        "a defect that nobody looks for", ["criteria[0].defects", "generation_logprobs: true"],
    ),
    ({"tiers__chat__criteria": [{"metric": "defect_increase", "margin": 2}]}, "points", ["criteria[0].margin", "0.02"]),
    ({"tiers__chat__criteria": [{"metric": "top1_disagreement", "margin": 1}]}, "never fails", ["criteria[0].margin", "never"]),
    ({"tiers__chat__criteria": [{"metric": "kl_mean", "margin": float("inf")}]}, "endless margin", [".inf is no finite"]),
    ({"tiers__chat__criteria": [{"metric": "kl_mean", "margin": float("nan")}]}, "no margin", [".nan is no finite"]),
    ({"tiers__chat__criteria": [{"metric": "kl_mean", "margin": "0.1"}]}, "text margin", ["needs a number, without quotes"]),
    ({"sampling__greedy__temperature": False}, "boolean number", ["sampling.greedy.temperature: needs a number"]),
    ({"sampling__greedy__seeds": [-1]}, "no seed to vLLM", ["sampling.greedy.seeds[0]", "(found -1)"]),
    ({"token_evidence": {"enabled": "no"}}, "text switch", ["token_evidence.enabled: needs true or false"]),
    ({"engine__options": {"loop": "0.5"}}, "text option", ["engine.options.loop: needs a number"]),
    ({"model": {"hub": "a/b", "revision": "c", "path": "d"}}, "two sources", ["give one of `hub`"]),
    ({"variants": ["w8a8"]}, "list of variants", ["variants: needs a mapping"]),
    ({"variants__W8A8": {"checkpoint": {"path": "x"}}}, "upper case", ["variants.W8A8: a name has lower-case letters"]),
    ({"variants__w8a8__precision": "W9A9"}, "precision", ["variants.w8a8.precision", "no precision named 'W9A9'"]),
    ({"evalsets": [{"name": "./tiny", "profiles": []}]}, "no profile", ["evalsets[0].profiles: needs at least 1"]),
    ({"evalsets": [{"name": "./tiny", "profiles": ["greedy"] * 2}]}, "profile twice", ["profiles[1]", "twice"]),
    ({"token_evidence": {"enabled": False}, "tiers__chat__criteria": [{"metric": "kl_mean", "margin": 0.1}]}, "tokens", ["off"]),
    ({"tiers__chat__criteria": [OF_REFERENCES | {"metric": "score_loss"}]}, "no tokens", ["goes with token metrics"]),
    ({"tiers__chat__criteria": [OF_REFERENCES | {"profile": "greedy"}]}, "not sampled", ["scored once, however"]),
    ({"tiers__chat__criteria": [OF_REFERENCES | {"where": {"temperature": "0"}}]}, "no temperature", ["scored once, however"]),
    ({"tiers__chat__criteria": [OF_REFERENCES | {"of": "reference"}]}, "of what", ["criteria[0].of"]),
    ({"tiers__chat__criteria": [OF_REFERENCES], "token_evidence": {"references": False}}, "off", ["criteria[0].of", "is off"]),
    ({"sampling__references": {"temperature": 0, "max_tokens": 9, "seeds": [0]}}, "taken", ["profile of right answers"]),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "name", "said"), CASES, ids=[case[1] for case in CASES])
def test_mistakes(tmp_path: Path, changes: dict[str, Any], name: str, said: list[str]) -> None:
    with pytest.raises(RecipeError) as caught:
        load(write(tmp_path, small(**changes)))
    shown = f"{caught.value.message} {caught.value.advice or ''}"
    for part in ["recipe.yaml, line ", *said]:
        assert part in shown, shown


def test_a_list_is_not_called_short_when_its_entry_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load(write(tmp_path, small(evalsets=[{"name": 7}])))
    assert caught.value.message == "recipe.yaml, line 13, evalsets[0].name: needs text; put it in quotes (found 7)"


def test_line_is_the_fields_own(tmp_path: Path) -> None:
    text = "qgate: 1\nname: x\nmodel: {path: m}\nvariants:\n  a: {checkpoint: {path: c}, presicion: W8A8}\n"
    with pytest.raises(RecipeError, match=r"line 5, variants\.a\.presicion.*did you mean 'precision'"):
        load(write(tmp_path, text))


@pytest.mark.parametrize("text", ["", "[]", "just text", "{}"])
def test_no_recipe_at_all(tmp_path: Path, text: str) -> None:
    with pytest.raises(RecipeError):
        load(write(tmp_path, text))


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="cannot read the recipe"):
        load(tmp_path / "none.yaml")
