"""GitHub annotations: one workflow command per tier, shown beside a run's checks. Pure: values in, text out.

FAIL is an error, PASS a notice, everything between a warning. The format is `::level title=…::message`; per cent signs
and line ends are escaped in both, `:` and `,` in the title too (actions/toolkit, command.ts).
"""

from __future__ import annotations

from qgate.reports.visible import one_line
from qgate.reports.words import precisions, tier_sentence
from qgate.schemas.run import Run
from qgate.schemas.verdict import Verdict, VerdictSheet

_LEVEL = {Verdict.PASS: "notice", Verdict.FAIL: "error"}


def render(run: Run, sheet: VerdictSheet) -> str:
    """The commands, one a line; a sheet without tiers is an error, since nothing was judged."""
    if not sheet.tiers:
        return f"::error title={_title('qgate')}::{_data('nothing was judged')}\n"
    precision = precisions(run, sheet)
    lines = []
    for tier in sheet.tiers:
        level = _LEVEL.get(tier.verdict, "warning")
        said = f"{tier_sentence(tier, precision)}. {tier.reason}"
        lines.append(f"::{level} title={_title(f'qgate {tier.verdict.value}, {tier.tier}')}::{_data(said)}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return one_line(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _title(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
