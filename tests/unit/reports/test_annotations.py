from qgate.reports import annotations
from tests.unit.reports import sample


def test_a_line_per_tier():
    assert annotations.render(sample.run(), sample.sheet()).splitlines() == [
        "::notice title=qgate PASS%2C public-chat::public-chat may serve w8a8 (W8A8). all 4 criteria pass",
        "::warning title=qgate INCONCLUSIVE%2C agents::agents may serve w8a8 (W8A8) instead: awq (W4A16) is not settled. "
        "score loss not settled: 190 more items would",
        "::error title=qgate FAIL%2C batch-summaries::batch-summaries stays FP16: gptq (W4A16) fails. "
        "13.1 pp more defects (1 pp allowed)",
        "::notice title=qgate PASS%2C evaluation-api::evaluation-api stays FP16. only FP16 is allowed here",
    ]


def test_no_reason_can_start_a_command_of_its_own():
    sheet = sample.sheet()
    tier = sheet.tiers[0].model_copy(update={"reason": "50 %\r\n::set-output name=x::y\x1b[0m"})
    text = annotations.render(sample.run(), sheet.model_copy(update={"tiers": (tier,)}))
    assert text.count("\n") == 1
    assert text.endswith(". 50 %25 ::set-output name=x::y⟦U+001B⟧[0m\n")


def test_nothing_judged_is_an_error():
    text = annotations.render(sample.run(), sample.sheet().model_copy(update={"tiers": ()}))
    assert text == "::error title=qgate::nothing was judged\n"
