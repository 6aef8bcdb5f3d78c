"""Items written by hand, prompt and reference: code, verse, letters left out, one language asked in another. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from writing import Draft


def drafts(entries: list[dict[str, Any]]) -> Iterator[Draft]:
    """The entries of texts/crafted.yaml as drafts; a check is a name alone or a name with its arguments."""
    for entry in entries:
        checks = [(one, {}) if isinstance(one, str) else next(iter(one.items())) for one in entry["checks"]]
        system = [("system", entry["system"])] if "system" in entry else []
        yield Draft(
            id=entry["id"],
            kind=entry["kind"],
            language=entry["id"].split("-", 1)[0],
            difficulty=entry["difficulty"],
            messages=(*system, ("user", entry["prompt"].strip())),
            checks=checks,
            reference=entry["reference"].strip("\n"),
            slices={"constraints": str(len(checks))},
        )
