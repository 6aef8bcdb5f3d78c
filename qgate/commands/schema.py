"""`qgate schema`: the JSON Schema of recipes, of incidents, or of one plugin's options, to standard output."""

from __future__ import annotations

import argparse
import json
import sys

from qgate.errors import ExitCode
from qgate.ports import load_engine, load_quantizer
from qgate.schemas.incident import Incident
from qgate.schemas.recipe import Recipe


def schema(arguments: argparse.Namespace) -> ExitCode:
    """Print a schema."""
    model = Recipe
    if arguments.engine:
        model = load_engine(arguments.engine).options  # type: ignore[assignment]
    elif arguments.incident:
        model = Incident  # type: ignore[assignment]
    elif arguments.quantizer:
        model = load_quantizer(arguments.quantizer).options  # type: ignore[assignment]
    sys.stdout.write(json.dumps(model.model_json_schema(), indent=1, ensure_ascii=False) + "\n")
    return ExitCode.PASS
