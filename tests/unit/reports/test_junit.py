from collections import Counter

import pytest
from lxml import etree

from qgate.reports import junit, markdown
from qgate.schemas.verdict import Verdict
from tests.unit.reports import sample
from tests.unit.reports.golden import FOLDER, same_as_golden

SCHEMA = etree.XMLSchema(etree.parse(FOLDER / "xunit.xsd"))


def parsed(sheet):
    root = etree.fromstring(junit.render(sample.run(), sheet).encode())
    SCHEMA.assertValid(root)
    return root


def with_variant(**changes):
    sheet = sample.sheet()
    variant = sheet.tiers[0].variants[1].model_copy(update=changes)
    return sheet.model_copy(update={"tiers": (sheet.tiers[0].model_copy(update={"variants": (variant,)}),)})


def outcomes(root):
    return Counter(child.tag for case in root.iter("testcase") for child in case if child.tag != "system-out")


def test_golden_and_schema():
    parsed(sample.sheet())
    same_as_golden(junit.render(sample.run(), sample.sheet()), "junit.xml")


def test_one_case_per_tier_variant_and_criterion():
    sheet = sample.sheet()
    root = parsed(sheet)
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(names) == len(set(names))
    for tier in sheet.tiers:
        for variant in tier.variants:
            count = sum(name.startswith(f"{tier.tier}.{variant.variant} ") for name, _ in names)
            assert variant.variant == "baseline" or count == max(1, len(variant.criteria))


def test_counts_add_up():
    root = parsed(sample.sheet())
    found = outcomes(root)
    assert int(root.get("failures")) == found["failure"] == 9
    assert int(root.get("errors")) == found["error"]
    assert sum(int(suite.get("skipped")) for suite in root) == found["skipped"]
    assert int(root.get("tests")) == len(list(root.iter("testcase")))


@pytest.mark.parametrize(
    ("verdict", "element"),
    [("FAIL", "failure"), ("INCONCLUSIVE", "error"), ("INVALID", "error"), ("VOID", "skipped"), ("PASS", None)],
)
def test_every_verdict_has_its_element(verdict, element):
    criterion = sample.sheet().tiers[0].variants[1].criteria[0].model_copy(update={"verdict": Verdict(verdict)})
    root = parsed(with_variant(criteria=(criterion,), verdict=Verdict(verdict)))
    assert dict(outcomes(root)) == ({element: 1} if element else {})


@pytest.mark.parametrize("verdict", ["INCONCLUSIVE", "INVALID", "FAIL"])
def test_a_variant_that_could_not_be_judged_is_never_green(verdict):
    for criteria in ((), sample.sheet().tiers[0].variants[1].criteria):
        root = parsed(with_variant(criteria=criteria, verdict=Verdict(verdict), reason="the server died"))
        assert sum(outcomes(root).values()) == 1
        assert "the server died" in etree.tostring(root, encoding="unicode")


def test_a_tier_without_variants_is_an_error():
    sheet = sample.sheet()
    root = parsed(sheet.model_copy(update={"tiers": (sheet.tiers[0].model_copy(update={"variants": ()}),)}))
    assert dict(outcomes(root)) == {"error": 1}


def test_forbidden_variants_are_skipped_even_where_they_fail():
    root = parsed(with_variant(allowed=False, verdict=Verdict.FAIL))
    assert set(outcomes(root)) == {"skipped"}


def test_what_a_sound_baseline_cannot_settle_against_itself_is_nobodys_error():
    sheet = sample.sheet()
    tier = sheet.tiers[0]
    open_one = tier.variants[1].criteria[0].model_copy(update={"verdict": Verdict.INCONCLUSIVE})
    baseline = tier.variants[0].model_copy(update={"criteria": (open_one,)})
    assert (baseline.variant, baseline.verdict) == ("baseline", Verdict.PASS)
    alone = sheet.model_copy(update={"tiers": (tier.model_copy(update={"variants": (baseline,)}),)})
    assert outcomes(parsed(alone)) == {"skipped": 1}
    assert "What did not pass" not in markdown.render(sample.run(), alone)
    noisy = baseline.model_copy(update={"verdict": Verdict.INCONCLUSIVE})
    unsound = sheet.model_copy(update={"tiers": (tier.model_copy(update={"variants": (noisy,)}),)})
    assert outcomes(parsed(unsound)) == {"error": 1}
    assert "What did not pass" in markdown.render(sample.run(), unsound)


def test_characters_that_xml_forbids_are_replaced():
    root = parsed(with_variant(criteria=(), verdict=Verdict.FAIL, reason="a\x00\x1b\ud800\uffff]]><script>&"))
    (failure,) = root.iter("failure")
    assert failure.get("message") == "a\ufffd\ufffd\ufffd\ufffd]]><script>&"
