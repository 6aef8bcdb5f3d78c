"""Checks that the whole answer is data or code: JSON, JSON to a schema, YAML, Python that parses. Pure."""

from __future__ import annotations

import ast
import json
import re
import warnings
from functools import lru_cache
from typing import Any, Literal

import yaml
from jsonschema import Draft202012Validator, SchemaError
from pydantic import Field, field_validator
from referencing import Registry
from referencing.exceptions import Unresolvable
from referencing.jsonschema import DRAFT202012

from qgate.schemas.base import Frozen
from qgate.scorers.checks.check import Check

_FENCED = re.compile(r"\A\s*```[\w+-]*[ \t]*\n(.*?)\n?[ \t]*```\s*\Z", re.DOTALL)
_REFERENCE = re.compile(r'"\$(?:ref|dynamicRef)": "([^"]*)')
_FENCE = re.compile(r"^[ \t]*```[\w+-]*[ \t]*\n(.*?)\n?^[ \t]*```[ \t]*$", re.DOTALL | re.MULTILINE)


class JsonArgs(Frozen):
    """Arguments of `detectable_format:json_format`."""

    fence: bool = Field(default=True, description="Whether the JSON may stand in a code fence")


@lru_cache(maxsize=1024)
def _schema_fault(schema: str) -> str | None:
    """What is wrong with a schema (as JSON text); remembered, since each item's is looked at once per answer."""
    value = json.loads(schema)
    try:
        Draft202012Validator.check_schema(value)
        within = Registry().with_resource("", DRAFT202012.create_resource(value)).resolver()
        for ref in _REFERENCE.findall(schema):
            within.lookup(ref)
    except SchemaError as error:
        return f"is no JSON Schema: {error.message}"
    except Unresolvable as error:
        return f"refers to {error.ref!r}, which is not in it; nothing is fetched while scoring"
    return None


class SchemaArgs(JsonArgs):
    """Arguments of `detectable_format:json_schema`."""

    schema_: dict[str, Any] = Field(
        alias="schema", description="JSON Schema, draft 2020-12, without outside references"
    )

    @field_validator("schema_")
    @classmethod
    def _sound(cls, value: dict[str, Any]) -> dict[str, Any]:
        fault = _schema_fault(json.dumps(value))
        if fault is not None:
            raise ValueError(fault)
        return value


def _bare(text: str, *, fence: bool) -> str:
    """The answer without the code fence around all of it."""
    fenced = _FENCED.match(text) if fence else None
    return fenced[1] if fenced else text.strip()


def _parsed(text: str) -> Any:
    """The JSON value; ValueError where `text` is none, NaN and Infinity included."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _json(text: str, args: JsonArgs, language: str) -> bool:
    try:
        value = _parsed(_bare(text, fence=args.fence))
    except ValueError:
        return False
    return isinstance(value, dict | list)


def _schema(text: str, args: SchemaArgs, language: str) -> bool:
    try:
        value = _parsed(_bare(text, fence=args.fence))
        return Draft202012Validator(args.schema_).is_valid(value)
    except (ValueError, RecursionError):
        return False


class YamlArgs(Frozen):
    """Arguments of `detectable_format:yaml`."""

    keys: tuple[str, ...] = Field(min_length=1, description="Keys that the mapping must have")


def _yaml(text: str, args: YamlArgs, language: str) -> bool:
    try:
        value = yaml.safe_load(_bare(text, fence=True))
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError, TypeError, KeyError):
        return False  # PyYAML's constructors raise more than YAMLError on damaged input
    return isinstance(value, dict) and all(value.get(key) is not None for key in args.keys)


class CodeArgs(Frozen):
    """Arguments of `detectable_format:code`."""

    language: Literal["python"] = Field(default="python", description="Language that the code must parse as")
    defines: tuple[str, ...] = Field(default=(), description="Functions or classes that it must define")
    fence: bool | None = Field(default=None, description="true: a code fence is wanted; false: none; null: either")
    only: bool = Field(default=False, description="Nothing may stand around the code")


def _code(text: str, args: CodeArgs, language: str) -> bool:
    fences = _FENCE.findall(text)
    if args.fence is not None and args.fence != bool(fences):
        return False
    if args.only and fences and _FENCED.match(text) is None:
        return False
    tree = _python("\n".join(fences) if fences else text.strip("\n"))
    if tree is None or not any(
        not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in tree.body
    ):
        return False
    named = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return named.issuperset(args.defines)


def _python(source: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in the answer's code is not ours to report
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


CHECKS = (
    Check("detectable_format:json_format", "The whole answer is a JSON object or array", JsonArgs, _json),
    Check(
        "detectable_format:json_schema", "The whole answer is JSON that satisfies a JSON Schema", SchemaArgs, _schema
    ),
    Check("detectable_format:yaml", "The whole answer is a YAML mapping with these keys", YamlArgs, _yaml),
    Check("detectable_format:code", "Python that parses and defines what it should", CodeArgs, _code),
)
