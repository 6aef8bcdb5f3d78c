"""A recipe file in, a validated recipe out: paths absolute, every plugin's options checked. Reads the disk."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from qgate.crosscheck import Location, Problem, crosscheck
from qgate.errors import RecipeError
from qgate.io.validation import Document
from qgate.io.yaml_tree import parse
from qgate.ports import load_engine, load_quantizer, plugin_names
from qgate.schemas.recipe import EvalsetUse, Recipe
from qgate.schemas.variant import Calibration, GgufSource, LocalSource, Source, Variant
from qgate.wording import near_or_known


@dataclass(frozen=True)
class LoadedRecipe:
    """A recipe, its plugins' validated options, and the bytes that it came from. Every path is absolute."""

    recipe: Recipe
    written: Recipe
    """The same with paths as they were written: what reports show."""
    path: Path
    text: str
    sha256: str
    engine_options: BaseModel
    variant_engine_options: Mapping[str, BaseModel]
    """Engine options of each variant: the recipe's with the variant's `engine_args` over them."""
    quantizer_options: Mapping[str, BaseModel]

    @property
    def base(self) -> Path:
        """The folder that relative paths of the recipe are relative to."""
        return self.path.parent


def read(path: Path) -> Recipe:
    """The recipe as a run kept it: nothing that it names is looked up. Raises RecipeError."""
    return _recipe(Document(path.name, parse(_bytes(path), path.name)))


def load(path: Path) -> LoadedRecipe:
    """Read and validate a recipe. Raises RecipeError with every problem found (up to eight), each with its line."""
    data = _bytes(path)
    document = Document(path.name, parse(data, path.name))
    recipe = _recipe(document)
    _check_tier_engines(recipe, document)
    engine = _engine_options(recipe, document)
    return LoadedRecipe(
        recipe=_absolute(recipe, path.resolve().parent),
        written=recipe,
        path=path.resolve(),
        text=data.decode(),
        sha256=hashlib.sha256(data).hexdigest(),
        engine_options=engine,
        variant_engine_options=_variant_engine_options(recipe, document),
        quantizer_options=_quantizer_options(recipe, document),
    )


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        advice = "`qgate init` writes a commented starter"
        raise RecipeError(f"cannot read the recipe {path}: {error.strerror}", advice=advice) from error


def _recipe(document: Document) -> Recipe:
    recipe = document.validate(Recipe, document.fields("a recipe", "qgate"), ())
    if problems := crosscheck(recipe):
        raise document.refusal(problems)
    return recipe


def _check_tier_engines(recipe: Recipe, document: Document) -> None:
    """A misspelt engine in a tier would make every verdict INCONCLUSIVE after the whole run."""
    known = plugin_names("engines")
    for name, tier in recipe.tiers.items():
        for index, engine in enumerate(tier.engines):
            if engine not in known:
                at = ("tiers", name, "engines", index)
                raise document.refusal([Problem(at, f"no engine named {engine!r}", near_or_known(engine, known))])


def _engine_options(recipe: Recipe, document: Document) -> BaseModel:
    with document.naming(("engine", "name")):
        engine = load_engine(recipe.engine.name)
    return document.validate(engine.options, recipe.engine.options, ("engine", "options"))


def _variant_engine_options(recipe: Recipe, document: Document) -> dict[str, BaseModel]:
    model, base = load_engine(recipe.engine.name).options, recipe.engine.options
    return {
        name: document.validate(model, {**base, **variant.engine_args}, ("variants", name, "engine_args"))
        for name, variant in recipe.variants.items()
    }


def _quantizer_options(recipe: Recipe, document: Document) -> dict[str, BaseModel]:
    made = {name: variant for name, variant in recipe.variants.items() if variant.quantizer is not None}
    return {name: _options_of(variant, ("variants", name), document) for name, variant in made.items()}


def _options_of(variant: Variant, at: Location, document: Document) -> BaseModel:
    with document.naming((*at, "quantizer")):
        quantizer = load_quantizer(str(variant.quantizer))
    options = document.validate(quantizer.options, variant.options, (*at, "options"))
    if quantizer.needs_calibration(options) and variant.calibration is None:
        advice = "add `calibration: {file: ...}` to the variant"
        raise document.refusal([Problem(at, "this algorithm needs `calibration` texts", advice)])
    return options


def _absolute(recipe: Recipe, base: Path) -> Recipe:
    variants = {key: _absolute_variant(variant, base) for key, variant in recipe.variants.items()}
    uses = tuple(_absolute_use(use, base) for use in recipe.evalsets)
    model = absolute_source(recipe.model, base)
    return recipe.model_copy(update={"model": model, "variants": variants, "evalsets": uses})


def _absolute_use(use: EvalsetUse, base: Path) -> EvalsetUse:
    if use.lm_eval is None or use.lm_eval.include_path is None:
        return use
    own = use.lm_eval.model_copy(update={"include_path": base / use.lm_eval.include_path})
    return use.model_copy(update={"lm_eval": own})


def _absolute_variant(variant: Variant, base: Path) -> Variant:
    update: dict[str, Any] = {}
    if variant.checkpoint is not None:
        update["checkpoint"] = absolute_source(variant.checkpoint, base)
    calibration: Calibration | None = variant.calibration
    if calibration is not None and calibration.file is not None:
        update["calibration"] = calibration.model_copy(update={"file": base / calibration.file})
    return variant.model_copy(update=update)


def absolute_source(source: Source, base: Path) -> Source:
    """The same with its path, if it has one, below `base`."""
    if isinstance(source, LocalSource):
        return LocalSource(path=base / source.path)
    if isinstance(source, GgufSource):
        return source.model_copy(update={"gguf": base / source.gguf})
    return source
