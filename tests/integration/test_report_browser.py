"""report.html in a real browser: Chromium, driven by Playwright, without a network."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from dataclasses import replace

import pytest

from qgate.reports import html
from qgate.schemas.evalset import Message
from tests.unit.reports import sample

CHROMIUM = os.environ.get("QGATE_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed (pip install qgate[browser])")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found (QGATE_CHROMIUM names one)"),
]
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update")
PATIENCE_MS = 120_000
WIDTHS = {"desktop": 1280, "phone": 390}
HOSTILE = (
    "</script><script>window.hit=1</script><img src=x onerror='window.hit=2'>\u202egnp.exe\u2069\x00\x1b[2J\ud800 café"
)


@pytest.fixture(scope="module")
def chromium():
    with sync_api.sync_playwright() as playwright:
        sync_api.expect.set_options(timeout=PATIENCE_MS)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS), timeout=PATIENCE_MS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return written(tmp_path_factory, sample.bundle(240))


@pytest.fixture(scope="module")
def big_report(tmp_path_factory):
    return written(tmp_path_factory, sample.bundle(10_000))


def written(tmp_path_factory, bundle):
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(html.render(bundle), encoding="utf-8")
    return path


@pytest.fixture
def opened(chromium):
    """Opens a file in a page of its own; whatever the page complains about or asks for fails the test."""
    contexts, complaints = [], []

    def open_page(path, *, theme="light", width=1280, fragment=""):
        context = chromium.new_context(color_scheme=theme, viewport={"width": width, "height": 900}, offline=True)
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: (complaints.append("a dialog"), dialog.dismiss()))
        page.on("request", lambda asked: complaints.append(asked.url) if not allowed(asked.url) else None)
        page.goto(path.as_uri() + fragment)
        page.wait_for_selector("html[data-charts=drawn]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert complaints == []


def allowed(url):
    return url.startswith("file:") or url == "data:,"


def count(page):
    return int(page.text_content("#count").split(" ")[0].replace(",", ""))


def chosen(page):
    return page.text_content("#detail h3")


def test_opens_with_every_chart_and_the_worst_answer(opened, report):
    page = opened(report)
    drawn = page.locator("figure.chart .plot svg").count()
    assert drawn == page.locator("figure.chart").count() > 8
    assert count(page) == 240
    assert page.locator("#detail .flag, #detail .chips .defect").count() > 0
    assert page.locator("#detail mark.new").count() + page.locator("#detail .none").count() > 0


def test_filters_narrow_the_list_and_clear(opened, report):
    page = opened(report)
    rows = [row for row in sample.bundle(240).rows if row.variant not in {"baseline"}]
    page.select_option("#f-defect", label="repetition loop")
    loops = [row for row in rows if any(hit.name == "repetition_loop" for hit in row.defects)]
    assert count(page) == len(loops) > 0
    page.select_option("#f-language", label="zh")
    assert count(page) == sum(row.language == "zh" for row in loops)
    page.select_option("#f-arm", "gptq")
    assert count(page) == sum(row.language == "zh" and row.variant == "gptq" for row in loops)
    page.click("#filters button[type=reset]")
    sync_api.expect(page.locator("#count")).to_have_text(re.compile(r"^240\b"))
    page.fill("#f-text", "RECEIPT. please")
    assert count(page) == sum("receipt. please" in (row.text or "").lower() for row in rows)
    page.fill("#f-text", "no answer holds this")
    assert count(page) == 0
    assert "No answer passes" in page.text_content("#detail")
    page.select_option("#f-arm", "baseline again #1")
    page.fill("#f-text", "")
    assert count(page) == 80


def test_orders(opened, report):
    page = opened(report)
    page.select_option("#f-order", "item")
    ids = page.locator("#rows .row .id").all_text_contents()
    assert len(ids) > 5
    assert chosen(page).startswith("instruction/")


def test_keyboard_alone(opened, report):
    page = opened(report)
    first = chosen(page)
    page.focus("#list")
    page.keyboard.press("ArrowDown")
    assert chosen(page) != first
    assert page.get_attribute("#list", "aria-activedescendant") == "row-1"
    page.keyboard.press("End")
    assert page.get_attribute("#list", "aria-activedescendant") == "row-239"
    assert page.locator("#row-239[aria-selected=true]").is_visible()
    page.keyboard.press("Home")
    assert chosen(page) == first
    page.focus("#theme")
    page.keyboard.press("Enter")
    assert page.get_attribute("html", "data-theme") == "dark"


def test_the_theme_is_the_systems_until_chosen_and_then_kept(opened, report):
    def paper(page):
        return page.evaluate("getComputedStyle(document.body).backgroundColor")

    light, dark = opened(report), opened(report, theme="dark")
    assert paper(light) != paper(dark)
    light.click("#theme")
    assert paper(light) == paper(dark)
    light.reload()
    light.wait_for_selector("html[data-charts=drawn]")
    assert paper(light) == paper(dark)
    light.click("#theme")
    assert paper(light) != paper(dark)


def test_a_link_opens_its_answer(opened, report):
    target = next(row for row in sample.bundle(240).rows if row.variant == "awq" and row.identical)
    name = "/".join(map(str, target.pair))
    page = opened(report, fragment=f"#awq%7C{name.replace('/', '%2F')}")
    assert chosen(page) == name
    assert "identical" in page.text_content("#detail .chips")


def test_the_request_as_curl_is_the_request(opened, report):
    page = opened(report)
    page.click("#detail summary")
    page.wait_for_selector("#detail pre.code")
    words = shlex.split(page.text_content("#detail pre.code"))
    assert words[:3] == ["curl", "-s", "http://localhost:8000/v1/chat/completions"]
    body = json.loads(words[words.index("-d") + 1])
    request = sample.bundle(240).requests[chosen(page)]
    assert body.pop("model") in sample.PRECISION
    assert body.pop("messages") == [message.model_dump() for message in request.messages]
    assert body == request.sampling.model_dump()


def test_the_prompt_stands_above_the_answers(opened, report):
    page = opened(report)
    page.wait_for_selector("#detail .asked .said")
    request = sample.bundle(240).requests[chosen(page)]
    assert page.text_content("#detail .asked .said") == request.messages[-1].content


def test_of_a_long_prompt_the_beginning_and_the_end_are_shown(opened, tmp_path_factory):
    bundle = sample.bundle(30)
    long = (Message(role="user", content="First " + "x" * 5_000 + " last?"),)
    requests = {name: request.model_copy(update={"messages": long}) for name, request in bundle.requests.items()}
    page = opened(written(tmp_path_factory, replace(bundle, requests=requests)))
    page.wait_for_selector("#detail .asked .said")
    shown = page.text_content("#detail .asked .said")
    assert shown.startswith("First ") and shown.endswith(" last?") and "4,412 characters" in shown
    assert len(shown) < 700


def test_hostile_answers_are_only_looked_at(opened, tmp_path_factory):
    bundle = sample.bundle(30)
    rows = [replace(row, text=HOSTILE + row.variant, item=HOSTILE + row.item) for row in bundle.rows]
    rows += [
        replace(rows[2], item="huge", text="x" * 1_000_000),
        replace(rows[2], item="lines", text="line\r\n" * 20_000),
    ]
    hostile = (Message(role="user", content=HOSTILE.replace("\ud800", "") + "'; rm -rf ~; echo '"),)
    requests = {
        "/".join(map(str, row.pair)): bundle.requests[
            "/".join(map(str, (row.evalset, row.item.removeprefix(HOSTILE), row.profile, row.seed)))
        ].model_copy(update={"messages": hostile})
        for row in rows
        if row.item not in {"huge", "lines"}
    }
    page = opened(written(tmp_path_factory, replace(bundle, rows=tuple(rows), requests=requests)))
    for name in (HOSTILE[:9], "huge", "lines"):
        page.fill("#f-text", name)
        assert count(page) > 0
    page.fill("#f-text", "json-schema")
    page.click("#detail summary")
    page.wait_for_selector("#detail pre.code")
    body = json.loads(shlex.split(page.text_content("#detail pre.code"))[-1])
    assert body["messages"][0]["content"] == hostile[0].content
    shown = page.text_content("#detail .pair .said >> nth=1")
    assert "<script>window.hit=1</script>" in shown
    assert "RLO" in shown and "NUL" in shown and "ESC" in shown
    assert "\u202e" not in page.content() and "\x00" not in page.content()
    assert page.evaluate("window.hit") is None
    assert page.locator("img").count() == 0


def test_a_huge_answer_is_shown_in_part_until_asked(opened, tmp_path_factory):
    bundle = sample.bundle(30)
    rows = (bundle.rows[0], replace(bundle.rows[2], text="word " * 30_000))
    page = opened(written(tmp_path_factory, replace(bundle, rows=rows)))
    assert len(page.text_content("#detail .pair .said >> nth=1")) < 13_000
    assert "150,000 characters" in page.text_content("#detail")
    page.click("#detail button:has-text('Show all')")
    assert len(page.text_content("#detail .pair .said >> nth=1")) > 50_000


def test_ten_thousand_answers_stay_usable(opened, big_report):
    """First paint within a second, a filter within 100 ms, at the best of several: other load only adds."""
    assert big_report.stat().st_size < 20_000_000
    pages = [opened(big_report) for _ in range(3)]
    page = pages[-1]
    assert count(page) >= 9_999
    paints = [each.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") for each in pages]
    assert min(paints) < 1_000
    assert page.locator("#rows .row").count() < 60
    for field, value in (("#f-defect", "any"), ("#f-order", "distance"), ("#f-text", "receipt")):
        slowest = fastest_of(page, field, value)
        assert slowest < 100, f"{field} took {slowest} ms"


def fastest_of(page, field, value, tries=5):
    """The shortest time in ms of several, from the event to the new layout: other load on the machine only adds."""
    return page.evaluate(
        """([field, value, tries]) => {
            const element = document.querySelector(field);
            let best = Infinity;
            for (let at = 0; at < tries; at += 1) {
                for (const next of [value, field === "#f-order" ? "worst" : ""]) {
                    element.value = next;
                    const began = performance.now();
                    element.dispatchEvent(new Event("input", { bubbles: true }));
                    document.body.getBoundingClientRect();
                    best = Math.min(best, performance.now() - began);
                }
            }
            return best;
        }""",
        [field, value, tries],
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", WIDTHS)
def test_axe_finds_nothing(opened, report, theme, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    page = opened(report, theme=theme, width=WIDTHS[size])
    page.evaluate("document.querySelectorAll('details').forEach((part) => { part.open = true; })")
    page.wait_for_selector("#detail pre.code")
    found = axe.Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


@pytest.mark.parametrize("size", WIDTHS)
def test_nothing_is_wider_than_the_page(opened, report, size):
    page = opened(report, width=WIDTHS[size])
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTHS[size]


def test_paper_shows_the_worst_answers_and_no_controls(opened, report):
    page = opened(report, theme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.locator(".worst .example").first.is_visible()
    assert not page.locator("#filters").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf(format="A4")) > 20_000


def test_without_scripts_the_verdicts_and_worst_answers_stand(chromium, report):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report.as_uri())
    assert "public-chat may serve w8a8" in page.text_content("main")
    assert page.locator(".worst .example").first.is_visible()
    assert not page.locator("#filters").is_visible()
    context.close()
