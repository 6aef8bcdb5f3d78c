"""report.html: one file that opens from disk, with everything in it. Pure: a bundle in, HTML text out.

Nothing in the file is trusted but its own scripts: Jinja2 escapes every value, characters that act or hide are written
out, answers travel as compressed JSON and become text nodes, and a content security policy lets only the scripts run
whose hashes it names, and nothing reach the network.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from qgate.judge import units
from qgate.reports import pack, strip, words
from qgate.reports.bundle import ReportBundle
from qgate.reports.chart import colours
from qgate.reports.cost import cost_charts
from qgate.reports.damage import damage_charts
from qgate.reports.visible import visible
from qgate.schemas.recipe import BASELINE
from qgate.schemas.verdict import VariantVerdict, Verdict, VerdictSheet
from qgate.wording import counted

SCRIPTS = ("theme", "visible", "diff", "answers", "list", "detail", "figures", "start")
LIBRARIES = ("vega.min.js", "vega-lite.min.js", "vega-interpreter.js")
_FILTERS = (
    counted,
    words.bounds,
    units.number,
    words.rise,
    words.share,
    words.size,
    units.harm,
    words.interval,
    words.metric_words,
    words.moment,
)


def render(bundle: ReportBundle) -> str:
    """The whole report. It can be encoded as UTF-8 whatever the answers hold."""
    parts = "\n".join(_text("templates", f"{name}.js") for name in SCRIPTS)
    own = Markup(f'(() => {{\n"use strict";\n{parts}\n}})();')
    libraries = [Markup(_text("vendor", name)) for name in LIBRARIES]
    scripts = {"app": own, "libraries": libraries, "csp": _policy([own, *libraries])}
    template = _environment().get_template("report.html.j2")
    return template.render(**scripts, css=Markup(_text("templates", "report.css")), **_context(bundle))


def json_in_html(value: Any) -> Markup:
    """`value` as JSON that cannot end a script element: `<`, `>` and `&` are written as escapes."""
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=True)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))


def _context(bundle: ReportBundle) -> dict[str, Any]:
    run, sheet = bundle.run, bundle.sheet
    precision = words.precisions(run, sheet)
    code = sheet.exit_code
    packed = pack.pack(bundle)
    return {
        "run": run,
        "sheet": sheet,
        "recipe": bundle.recipe,
        "recipe_json": bundle.recipe.model_dump_json(indent=2, exclude_defaults=True),
        "precision": precision,
        "code": code.value,
        "meaning": words.EXIT_MEANING[code],
        "overall": {0: "PASS", 1: "FAIL"}.get(code.value, "INCONCLUSIVE"),
        "headline": headline(sheet),
        "findings": words.findings_of(run, sheet),
        "names": words.variants_of(sheet),
        "evalsets": words.evalsets_of(sheet),
        "has_references": words.has_references(sheet),
        "colours": colours(sheet),
        "cost": cost_charts(sheet, precision),
        "damage": damage_charts(sheet, precision),
        "packed": packed,
        "answers": Markup(packed.answers),
        "requests": Markup(packed.requests),
    }


def headline(sheet: VerdictSheet) -> str:
    """How many tiers pass, fail and are open, in one sentence."""
    counts = Counter(tier.verdict for tier in sheet.tiers)
    total, passed, failed = len(sheet.tiers), counts[Verdict.PASS], counts[Verdict.FAIL]
    if not total:
        return "Nothing was judged"
    if passed == total:
        return "The only tier passes" if total == 1 else f"All {total} tiers pass"
    parts = (
        (passed, "pass", "passes"),
        (failed, "fail", "fails"),
        (total - passed - failed, "are not settled", "is not settled"),
    )
    said = [f"{number} {one if number == 1 else many}" for number, many, one in parts if number]
    return f"Of {counted(total, 'tier')}, {', '.join(said)}"


def _environment() -> Environment:
    loader = PackageLoader("qgate.reports")
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters.update({function.__name__: function for function in _FILTERS})
    environment.filters.update(
        json_in_html=json_in_html, strip=strip.place, criteria_rows=criteria_rows, methods=methods
    )
    environment.globals.update(
        tier_sentence=words.tier_sentence,
        verdict_word=words.verdict_word,
        in_tier=words.in_tier,
        labelled=words.labelled,
        summary_of=words.summary_of,
        BASELINE=BASELINE,
    )
    return environment


def criteria_rows(variants: tuple[VariantVerdict, ...]) -> list[VariantVerdict]:
    """The variants whose criteria are drawn: those that the tier allows and that were judged."""
    return [variant for variant in variants if variant.allowed and variant.criteria]


def methods(variants: Sequence[VariantVerdict]) -> list[str]:
    """How the intervals of `variants` were made, each name once."""
    return list(dict.fromkeys(criterion.estimate.method for variant in variants for criterion in variant.criteria))


def _shown(value: Any) -> Any:
    return value if isinstance(value, Markup) else visible(str(value), keep_newlines=True)


def _text(folder: str, name: str) -> str:
    return resources.files("qgate.reports").joinpath(folder, name).read_text(encoding="utf-8")


def _policy(scripts: list[Markup]) -> str:
    """A content security policy (CSP 3) that runs these inline scripts and loads nothing."""
    hashes = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in hashes)
    rest = "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    return f"default-src 'none'; script-src {allowed}; {rest}"
