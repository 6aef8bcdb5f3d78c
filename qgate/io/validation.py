"""A value checked against a model; what is wrong comes out with file, line, field and near match. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from qgate.crosscheck import Location, Problem
from qgate.errors import PluginError, RecipeError, UserError
from qgate.io.redact import redact
from qgate.io.yaml_tree import Tree
from qgate.schemas.base import faults
from qgate.schemas.recipe import NAME
from qgate.wording import near_or_known

M = TypeVar("M", bound=BaseModel)
Schema = dict[str, Any]
MAX_SHOWN = 8
WORDS = {
    "bool_type": "needs true or false, without quotes",
    "dict_type": "needs a mapping (`name: value`)",
    "model_type": "needs a mapping (`name: value`)",
    "float_type": "needs a number, without quotes",
    "int_type": "needs a whole number, without quotes",
    "path_type": "needs a path",
    "string_type": "needs text; put it in quotes",
    "tuple_type": "needs a list (`[a, b]`)",
}
"""Kinds of pydantic's errors in the words of somebody who writes YAML."""


class Document:
    """A parsed file and its name: what messages point into."""

    def __init__(self, name: str, tree: Tree, error: type[UserError] = RecipeError) -> None:
        """`error`: what a refusal is raised as."""
        self.name = name
        self.tree = tree
        self.error = error

    def fields(self, what: str, version: str) -> dict[str, Any]:
        """What the file says: a mapping, in a format that this qgate reads, which its field `version` tells."""
        value = self.tree.value
        if not isinstance(value, dict):
            raise self.refusal([Problem((), f"{what} is a mapping of fields, not {type(value).__name__}")])
        said = value.get(version)
        if isinstance(said, int) and said > 1:
            problem = f"{what.rsplit(maxsplit=1)[-1]} format {said} is newer than this qgate"
            raise self.refusal([Problem((version,), problem, "upgrade qgate")])
        return value

    def validate(self, model: type[M], value: Any, at: Location) -> M:
        """`value`, which stands at `at`, as a `model`. Raises `error`, by default RecipeError.

        Strictly: `true` is no number, "0.05" is text. As JSON, in which a list may be a tuple and text a path.
        """
        try:
            return model.model_validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            raise self.refusal(list(self._problems(error, model, at))) from error

    def refusal(self, problems: list[Problem]) -> UserError:
        """One error that shows every problem (up to eight) with its line."""
        lines = [self._line(problem) for problem in problems[:MAX_SHOWN]]
        if len(problems) > MAX_SHOWN:
            lines.append(f"… and {len(problems) - MAX_SHOWN} more")
        return self.error("\n".join(lines))

    @contextmanager
    def naming(self, location: Location) -> Iterator[None]:
        """Turns a PluginError of the block into an error that names the field and line."""
        try:
            yield
        except PluginError as error:
            raise self.refusal([Problem(location, error.message, error.advice)]) from error

    def _line(self, problem: Problem) -> str:
        fix = f" ({problem.advice})" if problem.advice else ""
        field = f", {_dotted(problem.location)}" if problem.location else ""
        return f"{self.name}, line {self.tree.line(problem.location)}{field}: {problem.message}{fix}"

    def _problems(self, error: ValidationError, model: type[BaseModel], at: Location) -> Iterator[Problem]:
        for detail in faults(error):
            is_about_key = detail["type"] in {"missing", "extra_forbidden"}
            location = self._location((*at, *detail["loc"]), keep_last=is_about_key)
            last = detail["loc"][-1] if detail["loc"] else ""
            if detail["type"] == "extra_forbidden":
                known = _known_fields(model, detail["loc"][:-1])
                yield Problem(location, f"unknown field `{last}`", near_or_known(str(last), known))
            elif detail["type"] == "missing":
                yield Problem(location, f"the field `{last}` is missing")
            else:
                yield Problem(location, _worded(detail))

    def _location(self, location: Location, *, keep_last: bool) -> Location:
        """`location` without the parts that name union members and are no fields of the document."""
        kept: list[str | int] = []
        here = self.tree.value
        for index, part in enumerate(location):
            is_last = index == len(location) - 1
            try:
                below = here[part]
            except (KeyError, IndexError, TypeError):
                if keep_last and is_last:
                    kept.append(part)
                continue
            if is_last or isinstance(below, dict | list):
                kept.append(part)
                here = below
            elif not keep_last and not any(_holds(here, later) for later in location[index + 1 :]):
                return (*kept, part)  # a value of several types: what follows names the one that it was tried as
        return tuple(kept)


def _holds(container: Any, part: str | int) -> bool:
    return isinstance(container, dict) and part in container


def reason(error: ValidationError) -> str:
    """The first thing that is wrong, without what was found: that may be a secret."""
    return error.errors(include_url=False)[0]["msg"].removeprefix("Value error, ")


def _worded(detail: ErrorDetails) -> str:
    found, message = detail["input"], WORDS.get(detail["type"], detail["msg"].removeprefix("Value error, "))
    if detail.get("ctx", {}).get("pattern") == NAME:
        message = (
            "a name has lower-case letters, digits, dots, hyphens and underscores, and starts with one of the first two"
        )
    message = re.sub(
        r"^\w+ should have at (\w+) (\d+) items? after validation, not (\d+)", r"needs at \1 \2, has \3", message
    )
    message = message[0].lower() + message[1:]
    return f"{message} (found {redact(found)[0]!r})" if isinstance(found, str | int | float | bool) else message


def _known_fields(model: type[BaseModel], location: Location) -> list[str]:
    """Names of the fields that may stand at `location` below `model`, read from its JSON Schema."""
    schema = model.model_json_schema()
    here = [schema]
    for part in location:
        here = [below for option in _options(here, schema) for below in _below(option, part)]
    return sorted({name for option in _options(here, schema) for name in option.get("properties", {})})


def _options(schemas: list[Schema], root: Schema) -> Iterator[Schema]:
    """The schemas with references followed and alternatives spread out."""
    for schema in schemas:
        if "$ref" in schema:
            yield from _options([root["$defs"][schema["$ref"].rsplit("/", 1)[-1]]], root)
        elif alternatives := schema.get("anyOf") or schema.get("oneOf") or schema.get("allOf"):
            yield from _options(alternatives, root)
        else:
            yield schema


def _below(schema: Schema, part: str | int) -> list[Schema]:
    if part in schema.get("properties", {}):
        return [schema["properties"][part]]
    if isinstance(part, int):
        return [schema["items"]] if "items" in schema else []
    if isinstance(schema.get("additionalProperties"), dict):
        return [schema["additionalProperties"]]
    if "patternProperties" in schema:
        return list(schema["patternProperties"].values())
    return [schema]  # `part` names a member of a union, not a field


def _dotted(location: Location) -> str:
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
