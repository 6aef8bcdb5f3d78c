from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qgate.judge.defects import Seen, examine, find

MIXED = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("图书館はカ가나абвגדأبกขअआαβ <|im_end|>\n\t.!?Ã©�▁Ġ0123abc\ud83d\x00"),
    ),
    max_size=400,
)
LOOPED = MIXED.flatmap(lambda text: st.sampled_from([text, text * 5, text * 40]))
FINISHES = st.sampled_from(["stop", "length", None, "tool_calls", "content_filter", "?"])
LOGPROBS = st.none() | st.lists(st.none() | st.floats(), max_size=5).map(tuple)
SEEN = st.builds(
    Seen,
    text=st.none() | LOOPED,
    prompt=st.none() | MIXED,
    finish_reason=FINISHES,
    completion_tokens=st.none() | st.integers(0, 500),
    logprobs=LOGPROBS,
    tool_calls=st.integers(0, 2),
    language=st.sampled_from([None, "en", "zh", "zh-TW", "xx", ""]),
    reference=st.none() | st.builds(Seen, text=st.none() | LOOPED, finish_reason=FINISHES),
)
UNITS = st.text(st.sampled_from("abcdefg xyz,.图书馆каталог"), min_size=2, max_size=60).filter(
    lambda unit: sum(map(str.isalpha, unit)) >= 2
)


@given(SEEN)
def test_never_raises_and_every_hit_lies_inside_the_text(seen: Seen) -> None:
    hits = find(seen)
    size = len(seen.text or "")
    assert all(0 <= hit.start < max(size, 1) for hit in hits)
    assert len({hit.name for hit in hits}) == len(hits)


@given(MIXED, UNITS)
@example(text="The parcel leaves at nine. ", unit="'m")
def test_twenty_copies_before_the_limit_are_always_a_loop(text: str, unit: str) -> None:
    hits = find(Seen(text=text + unit * 20, finish_reason="length"))
    assert "repetition_loop" in {hit.name for hit in hits}


@given(SEEN)
def test_what_the_baseline_does_too_is_no_fault(seen: Seen) -> None:
    same = Seen(seen.text, seen.prompt, seen.finish_reason, tool_calls=seen.tool_calls, language=seen.language)
    excused = examine(Seen(seen.text, seen.prompt, seen.finish_reason, tool_calls=seen.tool_calls,
                           language=seen.language, reference=same))  # fmt: skip
    assert excused.hits == ()


def test_an_excuse_is_named() -> None:
    loop = "Please keep the receipt. " * 20
    seen = Seen(loop, "How?", "length", reference=Seen("Well. " + loop, finish_reason="length"))
    assert examine(seen).excused == ("repetition_loop",)
    assert examine(Seen(loop, "How?", "length")).excused == ()


def test_hits_are_in_order_of_offset() -> None:
    text = "Ready.<|im_end|> The caf\ufffd is open. " + "Please keep the receipt. " * 20
    assert [hit.name for hit in find(Seen(text, finish_reason="length"))] == [
        "role_leak",
        "mojibake",
        "repetition_loop",
    ]


@pytest.mark.parametrize(
    ("text", "name", "start"),
    [
        ("Good start. " + "Please keep it. " * 20, "repetition_loop", 12),
        ('{"city": "Lisb頻on"}', "stray_token", 14),
        ("It boils at 100 degrees.<|im_end|>", "role_leak", 24),
        ("Die Br\ufffd\ufffdcke", "mojibake", 6),
        ("First unplug the router and wait. 然后按住重置按钮直到指示灯闪烁为止。", "language_switch", 34),
    ],
)
def test_the_offset_is_where_it_begins(text: str, name: str, start: int) -> None:
    (hit,) = find(Seen(text, "How do I do that, please?", "length"))
    assert (hit.name, hit.start) == (name, start)


@pytest.mark.parametrize(
    "text",
    ["\0" * 60_000, "ab" * 30_000, "a" * 59_999 + "b", "a图" * 20_000, "あ図" * 20_000, "(图" * 20_000, "α a " * 20_000,
     "Рџ" * 20_000, "<|" * 20_000, "\nuser:" * 10_000, "`" * 60_000, "12 " * 20_000, " " * 60_000 + "x", "縺a" * 20_000,
     "é" * 200_000],
    ids=lambda text: repr(text[:4]),
)  # fmt: skip
def test_long_adversarial_texts_end(text: str) -> None:
    began = time.process_time()
    find(Seen(text, "How?", "length"))
    assert time.process_time() - began < 20  # half a second; what is quadratic takes minutes
