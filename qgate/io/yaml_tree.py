"""YAML text in, plain values and the line of every field out. Pure but for PyYAML; refuses what could hurt.

Duplicate keys, merge keys, alias bombs, cycles, tags that build objects and numbers that say one thing to a person and
another to YAML 1.1 are errors; every error names its line.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

import yaml

from qgate.errors import RecipeError

MAX_BYTES = 1 << 20
MAX_NODES = 100_000
MAX_DEPTH = 50
MERGE = "tag:yaml.org,2002:merge"
DECIMAL = re.compile(r"[-+]?(0|[1-9][0-9_]*|[0-9_]*\.[0-9_]*([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
"""What YAML 1.1 reads as people do: not 010 (8), 0x10 (16) or 1:30 (90)."""
FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)[eE][-+]?[0-9]+\Z|[-+]\.[0-9]+\Z")
"""Numbers of JSON and YAML 1.2 that are text to YAML 1.1: 1e-3, 1.5e3, +.5."""

Path = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """Reads as numbers what JSON does."""


class Dumper(yaml.SafeDumper):
    """Puts text in quotes that `parse` would read as a number."""


for _each in (_Loader, Dumper):
    _each.add_implicit_resolver("tag:yaml.org,2002:float", FLOAT, list("-+.0123456789"))


@dataclass(frozen=True)
class Tree:
    """A parsed document: `value` of plain JSON types, `lines` from a field's path to its 1-based line."""

    value: Any
    lines: dict[Path, int] = field(default_factory=dict)

    def line(self, path: Path) -> int:
        """Line of the field at `path`, or of its nearest enclosing field that has one."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse(data: bytes, name: str, *, max_bytes: int = MAX_BYTES, finite: bool = True) -> Tree:
    """Parse UTF-8 YAML. `name` is the file's name for messages; `finite`: NaN and infinity are errors. Raises RecipeError."""
    if len(data) > max_bytes:
        raise RecipeError(f"{name} is {len(data)} bytes; it may have at most {max_bytes}")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise RecipeError(
            f"{name}, line {line}: not UTF-8 ({error.reason})", advice="save the file as UTF-8"
        ) from error
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        raise RecipeError(f"{name}{_mark(error)}: not valid YAML: {_problem(error)}") from error
    except RecursionError as error:
        raise RecipeError(f"{name}: nested too deeply") from error
    if root is None:
        raise RecipeError(f"{name} is empty", advice="`qgate init` writes a commented starter")
    _Weigher(name).weigh(root, 0)
    reader = _Reader(name, _Loader(""), finite)
    return Tree(reader.read(root, ()), reader.lines)


def _mark(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    return f", line {mark.line + 1}" if mark else ""


def _problem(error: yaml.YAMLError) -> str:
    return str(getattr(error, "problem", None) or error).splitlines()[0]


class _Weigher:
    """Counts what a document would be with every alias written out, without writing it out."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.sizes: dict[int, int] = {}
        self.open: set[int] = set()

    def weigh(self, node: yaml.Node, depth: int) -> int:
        line = node.start_mark.line + 1
        if id(node) in self.open:
            raise RecipeError(f"{self.name}, line {line}: an alias contains itself")
        if depth > MAX_DEPTH:
            raise RecipeError(f"{self.name}, line {line}: nested deeper than {MAX_DEPTH} levels")
        if id(node) not in self.sizes:
            self.open.add(id(node))
            size = 1 + sum(self.weigh(child, depth + 1) for child in _children(node))
            self.open.remove(id(node))
            if size > MAX_NODES:
                raise RecipeError(f"{self.name}, line {line}: aliases expand to more than {MAX_NODES} values")
            self.sizes[id(node)] = size
        return self.sizes[id(node)]


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


class _Reader:
    """Builds plain values from nodes and remembers lines."""

    def __init__(self, name: str, loader: _Loader, finite: bool) -> None:
        self.name = name
        self.loader = loader
        self.finite = finite
        self.lines: dict[Path, int] = {}

    def read(self, node: yaml.Node, path: Path) -> Any:
        self.lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(child, (*path, index)) for index, child in enumerate(node.value)]
        return self._scalar(node)

    def _mapping(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            key = self._key(key_node, line)
            if key in found:
                first = self.lines[(*path, key)]
                raise RecipeError(
                    f"{self.name}, line {line}: `{key}` stands here and on line {first}", advice="keep one"
                )
            found[key] = self.read(value_node, (*path, key))
            self.lines[(*path, key)] = line
        return found

    def _key(self, node: yaml.Node, line: int) -> str:
        if node.tag == MERGE:
            raise RecipeError(
                f"{self.name}, line {line}: merge keys (`<<`) are not read",
                advice="write the fields out, or alias a whole value",
            )
        key = self._scalar(node) if isinstance(node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            told = repr(key) if isinstance(node, yaml.ScalarNode) else "of several values"
            raise RecipeError(f"{self.name}, line {line}: the field name {told} is not text", advice="put it in quotes")
        return key

    def _scalar(self, node: yaml.Node) -> Any:
        try:
            value = self.loader.construct_object(node)
            if isinstance(value, str):  # JSON writes what lies beyond 16 bits as two halves, which YAML leaves apart
                value = value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError as error:
            line = node.start_mark.line + 1
            raise RecipeError(f"{self.name}, line {line}: a lone surrogate, which is no character") from error
        except (yaml.YAMLError, ValueError) as error:
            raise RecipeError(f"{self.name}, line {node.start_mark.line + 1}: {_problem_of(error)}") from error
        if type(value) in {int, float}:
            self._check_number(value, node)
        return value if value is None or isinstance(value, str | int | float | bool) else str(node.value)

    def _check_number(self, value: int | float, node: yaml.Node) -> None:
        here = f"{self.name}, line {node.start_mark.line + 1}: {node.value}"
        if isinstance(value, float) and not math.isfinite(value):
            if self.finite:
                raise RecipeError(f"{here} is no finite number")
        elif not DECIMAL.fullmatch(node.value):
            raise RecipeError(f"{here} would be read as {value}", advice="write it as a plain decimal; text in quotes")


def _problem_of(error: Exception) -> str:
    return _problem(error) if isinstance(error, yaml.YAMLError) else str(error)
