"""Every kind of finding by name: those of `examine` and those on weights. Pure; docs/inspect.md lists the same."""

from __future__ import annotations

from qgate.inspection import examine, weights

CODES = {code.name: code for code in (*examine.CODES, *weights.CODES)}
