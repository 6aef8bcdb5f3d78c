"""junit.xml: one test case per tier × variant × criterion. Pure: a run and its verdict sheet in, XML text out.

FAIL is a failure, INCONCLUSIVE and INVALID are errors (nobody may read them as passed), VOID and variants that a tier
does not allow are skipped, and so is what the second run of a sound baseline could not settle. The structure is Jenkins'
xUnit schema (junit-10), which GitLab and GitHub actions read too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from xml.etree import ElementTree as ET

from qgate.reports.visible import xml_text
from qgate.reports.words import criterion_name, interval, is_sound_baseline, labelled, precisions, tier_sentence
from qgate.schemas.run import Run
from qgate.schemas.verdict import CriterionResult, TierVerdict, VariantVerdict, Verdict, VerdictSheet
from qgate.wording import counted

_ELEMENT = {
    Verdict.FAIL: "failure",
    Verdict.INCONCLUSIVE: "error",
    Verdict.INVALID: "error",
    Verdict.VOID: "skipped",
}
_ATTRIBUTE = {"failure": "failures", "error": "errors", "skipped": "skipped"}


@dataclass(frozen=True)
class _Case:
    classname: str
    name: str
    outcome: str | None
    """Element that the case holds; None where it passed."""
    kind: str
    message: str
    detail: str = ""


def render(run: Run, sheet: VerdictSheet) -> str:
    """The whole document, with declaration."""
    suites = ET.Element("testsuites", {"name": xml_text(f"qgate {sheet.recipe}")})
    precision = precisions(run, sheet)
    for tier in sheet.tiers:
        suites.append(_suite(run, sheet, tier, tier_sentence(tier, precision)))
    for key in ("tests", "failures", "errors"):
        suites.set(key, str(sum(int(suite.get(key, "0")) for suite in suites)))
    ET.indent(suites)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(suites, encoding="unicode") + "\n"


def _suite(run: Run, sheet: VerdictSheet, tier: TierVerdict, sentence: str) -> ET.Element:
    cases = [case for variant in tier.variants for case in _cases(tier, variant)]
    if not cases:
        cases = [_Case(tier.tier, "is judged", "error", "INCONCLUSIVE", "nothing was judged in this tier")]
    suite = ET.Element("testsuite", {"name": xml_text(tier.tier), "tests": str(len(cases))})
    for outcome, attribute in _ATTRIBUTE.items():
        suite.set(attribute, str(sum(case.outcome == outcome for case in cases)))
    suite.set("time", f"{run.timings_s.get('total', sum(run.timings_s.values())):.3f}")
    suite.set("timestamp", datetime.fromisoformat(run.started_at).strftime("%Y-%m-%dT%H:%M:%S"))
    properties = ET.SubElement(suite, "properties")
    facts = {"run": run.run_id, "recipe_sha256": run.recipe_sha256, "engine": sheet.engine, "qgate": run.qgate_version}
    for name, value in {**facts, "verdict": tier.verdict.value, "decision": sentence}.items():
        ET.SubElement(properties, "property", {"name": name, "value": xml_text(value)})
    suite.extend(_element(case) for case in cases)
    ET.SubElement(suite, "system-out").text = xml_text(f"{sentence}\n{tier.reason}")
    return suite


def _cases(tier: TierVerdict, variant: VariantVerdict) -> Iterator[_Case]:
    """A case per criterion; one more where the variant's verdict is not that of any of its criteria."""
    classname = f"{tier.tier}.{labelled(variant.variant, {variant.variant: variant.precision})}"
    if not variant.allowed:
        for name in [criterion_name(criterion) for criterion in variant.criteria] or ["is allowed"]:
            yield _Case(classname, name, "skipped", "not allowed", variant.reason or "this tier does not allow it")
        return
    for criterion in variant.criteria:
        case = _criterion_case(classname, criterion)
        yield replace(case, outcome="skipped") if case.outcome and is_sound_baseline(variant) else case
    if variant.verdict not in {criterion.verdict for criterion in variant.criteria}:
        outcome = _ELEMENT.get(variant.verdict)
        yield _Case(classname, "may be served", outcome, variant.verdict.value, variant.reason)


def _criterion_case(classname: str, criterion: CriterionResult) -> _Case:
    estimate, floor = criterion.estimate, criterion.floor
    detail = [
        f"estimate {interval(criterion.metric, estimate)}, {estimate.method}",
        f"{counted(estimate.num_items, 'item')}, {counted(estimate.num_pairs, 'pair')}",
        f"floor {interval(criterion.metric, floor)}" if floor else "floor not measured",
        *criterion.flags,
    ]
    outcome = _ELEMENT.get(criterion.verdict)
    name = criterion_name(criterion)
    return _Case(classname, name, outcome, criterion.verdict.value, criterion.reason, "\n".join(detail))


def _element(case: _Case) -> ET.Element:
    element = ET.Element("testcase", {"classname": xml_text(case.classname), "name": xml_text(case.name)})
    if case.outcome is None:
        ET.SubElement(element, "system-out").text = xml_text("\n".join(filter(None, (case.message, case.detail))))
    else:
        attributes = {"type": case.kind, "message": xml_text(case.message)}
        ET.SubElement(element, case.outcome, attributes).text = xml_text(case.detail)
    return element
