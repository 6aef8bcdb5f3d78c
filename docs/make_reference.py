"""Writes docs/reference.md from what qgate itself declares: the parser, the schemas, the plugins' options, the errors.

    python docs/make_reference.py

tests/unit/test_reference.py fails where the committed page is another one. The parser's own help text is not used: its
layout differs between Python versions.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

from qgate.arguments import parser
from qgate.errors import ExitCode, QgateError
from qgate.judge.decide import NAMES
from qgate.judge.defects import DEFECTS
from qgate.ports import load_engine, load_quantizer
from qgate.reports.words import EXIT_MEANING
from qgate.schemas.recipe import TOKEN_METRICS, Metric, Recipe

PAGE = Path(__file__).with_name("reference.md")
ENGINES = ("vllm", "transformers", "openai", "fake")
QUANTIZERS = ("autoawq", "autogptq", "gptqmodel", "llmcompressor", "noise")
HEAD = """\
# Reference

Made by `python docs/make_reference.py` from the command line's parser, the schemas and the plugins; a test holds it to
them. What the numbers mean is in [method.md](method.md), the scorers are in [scorers.md](scorers.md), and
[tutorial.md](tutorial.md) walks through a run.
"""
BOUNDS = {
    "minimum": "at least",
    "exclusiveMinimum": "above",
    "maximum": "at most",
    "exclusiveMaximum": "below",
}
Schema = Mapping[str, Any]


def page() -> str:
    """The whole page, with a final newline."""
    parts = [HEAD, *_command_line(), *_exit_codes(), *_recipe(), *_plugins(), *_metrics(), *_defects()]
    return "\n".join(parts)


def _command_line() -> Iterator[str]:
    yield "## Command line\n"
    for name, verb in _verbs(parser(), ""):
        arguments = [action for action in verb._actions if not isinstance(action, argparse._HelpAction)]
        in_order = sorted(arguments, key=lambda action: bool(action.option_strings))
        yield f"### `{name}`\n\n{verb.description}\n\n    {' '.join([name, *map(_usage, in_order)])}\n"
        rows = [(f"`{_spelled(action)}`", _meaning(action)) for action in arguments if _meaning(action)]
        if rows:
            yield _table(("argument", "meaning"), rows)


def _verbs(top: argparse.ArgumentParser, prefix: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every verb that does something, under its full name."""
    below = [action for action in top._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield f"qgate {prefix}", top
    for action in below:
        for name, child in action.choices.items():
            yield from _verbs(child, f"{prefix} {name}".strip())


def _spelled(action: argparse.Action) -> str:
    """`--results DIR`, or a positional argument's name."""
    name = action.metavar if isinstance(action.metavar, str) else action.dest
    if action.choices:
        name = "{" + ",".join(action.choices) + "}"
    values = {"?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}.get(str(action.nargs), name)
    if not action.option_strings:
        return values
    return action.option_strings[0] if action.nargs == 0 else f"{action.option_strings[0]} {values}"


def _usage(action: argparse.Action) -> str:
    return f"[{_spelled(action)}]" if action.option_strings and not action.required else _spelled(action)


def _meaning(action: argparse.Action) -> str:
    """The help text, with the default where it does not say it itself."""
    meaning = action.help or ""
    if isinstance(action.default, str | Path) and str(action.default) and "default" not in meaning:
        meaning += f" (default: {Path(action.default).as_posix()})"
    return meaning


def _exit_codes() -> Iterator[str]:
    yield "## Exit codes\n"
    kinds = [kind for kind in QgateError.__subclasses__() if kind.__module__ == QgateError.__module__]
    rows = []
    for code in ExitCode:
        meanings = [EXIT_MEANING[code]] if code in EXIT_MEANING else []
        meanings += [_summary(kind) for kind in kinds if kind.exit_code is code]
        rows.append((str(int(code)), "; or: ".join(meanings) or "a bug in qgate: any other error"))
    yield _table(("code", "meaning"), rows)


def _summary(kind: type) -> str:
    """The first sentence of a docstring, to stand within a line."""
    text = (kind.__doc__ or "").strip().splitlines()[0].rstrip(".")
    return text if text.startswith("Ctrl") else text[0].lower() + text[1:]


def _recipe() -> Iterator[str]:
    schema = Recipe.model_json_schema()
    yield f"## Recipe\n\n{schema['description']}\n\nUnknown fields are refused, with the line and the nearest known name.\n"
    yield _fields(schema)
    for name in _in_order(schema):
        part = schema["$defs"][name]
        yield f"### {name}\n\n{part['description']}\n"
        yield _fields(part)


def _in_order(schema: Schema) -> list[str]:
    """Names of the parts, in the order in which the recipe comes to them."""
    found: dict[str, None] = {}
    waiting = [schema]
    while waiting:
        for name in _references(waiting.pop(0).get("properties", {})):
            if name not in found:
                found[name] = None
                waiting.append(schema["$defs"][name])
    return list(found)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        if "$ref" in value:
            yield value["$ref"].rsplit("/", 1)[-1]
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _references(each)


def _plugins() -> Iterator[str]:
    for kind, names, load in (("engine", ENGINES, load_engine), ("quantizer", QUANTIZERS, load_quantizer)):
        for name in names:
            schema = load(name).options.model_json_schema()
            yield f"## Options of the {kind} `{name}`\n\n{schema['description']}\n"
            yield _fields(schema)


def _fields(schema: Schema) -> str:
    required = schema.get("required", ())
    rows = [
        (f"`{name}`", _type(field), "required" if name in required else _default(field), field.get("description", ""))
        for name, field in schema["properties"].items()
    ]
    return _table(("field", "type", "default", "meaning"), rows)


def _default(field: Schema) -> str:
    """The default as YAML would have it; parts and collections that are left out have their own."""
    if "default" not in field:
        return "empty" if field.get("type") in {"object", "array"} else "its defaults"
    if isinstance(field["default"], dict):
        return "its defaults"
    return f"`{json.dumps(field['default'], ensure_ascii=False)}`"


def _type(field: Schema) -> str:
    """A field's type in words: `integer, at least 1`, `list of strings`."""
    if "$ref" in field:
        name = field["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#{name.lower()})"
    if options := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(_type(option) for option in options)
    if "enum" in field or "const" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field.get("enum") or [field["const"]])
    if field.get("type") == "array":
        return "list of " + _type(field["items"])
    if field.get("type") == "object":
        values = [*field.get("patternProperties", {}).values(), field.get("additionalProperties")]
        inner = next((value for value in values if isinstance(value, Mapping)), None)
        return "map of names to " + (_type(inner) if inner else "values")
    bounds = [f"{words} {_number(field[key])}" for key, words in BOUNDS.items() if key in field]
    return ", ".join([str(field.get("type", "any")), *bounds])


def _number(value: float) -> str:
    return f"{int(value):,}" if value == int(value) else f"{value:g}"


def _metrics() -> Iterator[str]:
    yield "## Metrics\n\nEach is a harm: 0 is none. [method.md](method.md#the-metrics) defines them.\n"
    rows = [(f"`{name}`", NAMES[name], _source(name)) for name in get_args(Metric)]
    yield _table(("metric", "called in reports", "from"), rows)


def _source(metric: str) -> str:
    if metric == "garble_nll_increase":
        return "the variant's answers, scored under the baseline (`token_evidence.garble`)"
    return (
        "the baseline's answers, or right ones (`of`), scored through the variant (`token_evidence`)"
        if metric in TOKEN_METRICS
        else "answers"
    )


def _defects() -> Iterator[str]:
    yield "## Defects\n\nWhat the prompt asks for, or the baseline's answer to it has too, is excused.\n"
    yield _table(("defect", "what it is"), [(f"`{each.name}`", each.summary) for each in DEFECTS.values()])


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
