import base64
import hashlib
import random
import re
from dataclasses import replace
from importlib import resources

import pytest
from lxml import html as parser

from qgate.reports import html
from qgate.schemas.evalset import Message
from qgate.schemas.verdict import Verdict
from tests.unit.reports import sample

BUNDLE = sample.bundle(60)
VENDORED = {
    "vega.min.js": "8f6a3587cf8d4f42c7e08120e3eb05d067e746d554e39d2dcf52acc0bd5ba28f",
    "vega-lite.min.js": "843d20762ca6e52ff5ceab7a3296219272a9c0b5364402d6814f3c7738f4be5e",
    "vega-interpreter.js": "2e302daad0f44fc0257d0eb85d782e25698d78fd908e0fb19272429d99051d04",
}
HOSTILE = (
    "</script><script>window.hit = 1</script><img src=x onerror='window.hit=2'>{{ 7*7 }}{% raw %}"
    "<!--<script>\u202egnp.exe\u2069\x00\x1b[2J\ud800]]>&lt;"
)


def page(bundle=BUNDLE):
    text = html.render(bundle)
    text.encode("utf-8")
    return parser.document_fromstring(text)


def hostile_bundle():
    sheet = BUNDLE.sheet
    tier = sheet.tiers[2]
    criterion = (
        tier.variants[3].criteria[0].model_copy(update={"reason": HOSTILE, "scope": HOSTILE, "flags": (HOSTILE,)})
    )
    variant = tier.variants[3].model_copy(update={"reason": HOSTILE, "criteria": (criterion,), "precision": HOSTILE})
    tier = tier.model_copy(update={"tier": HOSTILE, "reason": HOSTILE, "description": HOSTILE, "variants": (variant,)})
    example = sheet.examples[0].model_copy(
        update={
            "variant_text": HOSTILE,
            "baseline_text": HOSTILE,
            "id": HOSTILE,
            "defects": (HOSTILE,),
            "where": HOSTILE,
        }
    )
    part = sheet.breakdowns[0].model_copy(update={"axis": HOSTILE, "labels": tuple(HOSTILE + x for x in "abcde")})
    sheet = sheet.model_copy(
        update={
            "tiers": (tier,),
            "findings": (HOSTILE,),
            "examples": (example,),
            "breakdowns": (part,),
            "recipe": HOSTILE,
        }
    )
    rows = [replace(row, text=HOSTILE, item=HOSTILE + row.item, language=HOSTILE) for row in BUNDLE.rows]
    requests = {
        name: request.model_copy(update={"messages": (Message(role="user", content=HOSTILE),)})
        for name, request in BUNDLE.requests.items()
    }
    return replace(BUNDLE, sheet=sheet, rows=tuple(rows), requests=requests)


def test_the_verdict_of_every_tier_in_words():
    document = page()
    assert document.cssselect("h1")[0].text_content() == "Of 4 tiers, 2 pass, 1 fails, 1 is not settled"
    cards = [card.text_content() for card in document.cssselect(".card h2")]
    assert cards == [
        "public-chat may serve w8a8 (W8A8).",
        "agents may serve w8a8 (W8A8) instead: awq (W4A16) is not settled.",
        "batch-summaries stays FP16: gptq (W4A16) fails.",
        "evaluation-api stays FP16.",
    ]


def test_every_criterion_is_drawn_and_one_that_does_not_pass_says_why():
    document = page()
    criteria = [
        criterion
        for tier in BUNDLE.sheet.tiers
        for variant in tier.variants
        if variant.allowed
        for criterion in variant.criteria
    ]
    assert len(document.cssselect("svg.strip")) == len(criteria)
    text = document.cssselect("#criteria")[0].text_content()
    assert all(criterion.reason in text for criterion in criteria if criterion.verdict is not Verdict.PASS)


def test_provenance_names_every_hash():
    text = page().cssselect("#provenance")[0].text_content()
    run = BUNDLE.run
    for checkpoint in run.checkpoints.values():
        assert checkpoint.digest in text
        assert all(record.sha256 in text for record in checkpoint.files.values())
    assert all(digest in text for digest in run.evalsets.values())
    assert run.recipe_sha256 in text
    assert "Intel Xeon Platinum 8488C" in text


def test_nothing_is_loaded_and_only_own_scripts_may_run():
    text = html.render(BUNDLE)
    document = parser.document_fromstring(text)
    assert not document.xpath("//*[@src]")
    assert [link.get("href") for link in document.xpath("//link")] == ["data:,"]
    assert not [a for a in document.xpath("//a/@href") if not a.startswith("#")]
    (policy,) = document.xpath("//meta[@http-equiv='Content-Security-Policy']/@content")
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    allowed = set(re.findall(r"'sha256-([^']+)'", policy))
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert {base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts} == allowed
    assert len(scripts) == 4


def test_hostile_text_never_becomes_markup():
    bundle = hostile_bundle()
    text = html.render(bundle)
    document = parser.document_fromstring(text)
    assert len(document.xpath("//script")) == len(document.xpath("//script[not(@type)]")) + 3 + len(
        document.cssselect("figure.chart")
    )
    assert not document.xpath("//img")
    assert not document.xpath("//@onerror")
    assert not document.xpath("//comment()")
    assert "window.hit" not in "".join(script.text or "" for script in document.xpath("//script[not(@type)]"))
    body = "".join(document.xpath("//main//text()[not(parent::script)]"))
    assert "<script>window.hit = 1</script>" in body
    assert "{{ 7*7 }}" in body
    assert not {"\u202e", "\u2069", "\x00", "\x1b"} & set(text)
    assert "⟦U+202E⟧" in body


def test_json_cannot_end_its_script():
    assert html.json_in_html({"a": "</script><!--&"}) == '{"a":"\\u003c/script\\u003e\\u003c!--\\u0026"}'


def test_headlines():
    tiers = {tier.verdict: tier for tier in BUNDLE.sheet.tiers}

    def said(*verdicts):
        return html.headline(BUNDLE.sheet.model_copy(update={"tiers": tuple(tiers[verdict] for verdict in verdicts)}))

    assert said() == "Nothing was judged"
    assert said("PASS") == "The only tier passes"
    assert said("PASS", "PASS") == "All 2 tiers pass"
    assert said("FAIL") == "Of 1 tier, 1 fails"
    assert said("INCONCLUSIVE", "INCONCLUSIVE", "PASS") == "Of 3 tiers, 1 passes, 2 are not settled"


def test_an_empty_run_makes_a_page():
    sheet = BUNDLE.sheet.model_copy(
        update={"tiers": (), "findings": (), "breakdowns": (), "examples": (), "summary": {}}
    )
    run = BUNDLE.run.model_copy(update={"checkpoints": {}, "engine_facts": {}, "failures": {}, "arms": ()})
    text = page(replace(BUNDLE, sheet=sheet, run=run, rows=(), requests={})).text_content()
    assert "Nothing was judged" in text
    assert "could not be settled" in text


def test_answers_left_out_are_said(monkeypatch):
    monkeypatch.setattr("qgate.reports.pack.MAX_ANSWERS_BYTES", 3_000)
    assert re.search(r"The \d+ least damaged answers are left out", page().text_content())


def test_ten_thousand_different_answers_fit():
    """Ten thousand answers of 200 words that share nothing, which is the worst that compression can meet."""
    dice = random.Random(3)
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randint(2, 9))) for _ in range(20_000)]
    bundle = sample.bundle(6_000)
    assert len(bundle.rows) == 10_000
    rows = tuple(replace(row, text=" ".join(dice.choices(words, k=200)), identical=False) for row in bundle.rows)
    text = html.render(replace(bundle, rows=rows))
    assert len(text.encode()) < 20_000_000
    assert "are left out" not in text


@pytest.mark.parametrize("name", VENDORED)
def test_the_embedded_library_is_the_pinned_one(name):
    data = resources.files("qgate.reports").joinpath("vendor", name).read_bytes()
    assert hashlib.sha256(data).hexdigest() == VENDORED[name]


def test_what_no_cell_says_is_not_explained():
    bundle = sample.bundle(20)
    tiers = [tier for tier in bundle.sheet.tiers if all(variant.allowed for variant in tier.variants)]
    assert tiers and len(tiers) < len(bundle.sheet.tiers)
    everywhere = replace(bundle, sheet=bundle.sheet.model_copy(update={"tiers": tuple(tiers)}))
    assert "does not allow this variant" in html.render(bundle)
    assert "does not allow this variant" not in html.render(everywhere)
