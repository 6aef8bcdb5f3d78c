import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qgate.reports.strip import place
from qgate.schemas.verdict import Estimate
from tests.unit.reports import sample

BASE = sample.sheet().tiers[0].variants[1].criteria[0]
NUMBERS = st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True))


def criterion(margin, value, low, high, floor=None):
    estimate = Estimate(value=value, low=low, high=high, num_items=9, num_pairs=9, method="m")
    return BASE.model_copy(update={"margin": margin, "estimate": estimate, "floor": floor})


def test_the_margin_is_half_way_and_no_harm_a_quarter():
    strip = place(criterion(0.02, 0.01, 0.0, 0.02))
    assert (strip.zero, strip.value, strip.margin) == (0.25, 0.375, 0.5)
    assert (strip.interval.low, strip.interval.high) == (0.25, 0.5)
    assert not strip.interval.beyond_low and not strip.interval.beyond_high


def test_what_lies_beyond_is_drawn_at_the_end_and_said():
    strip = place(criterion(0.02, 0.5, 0.4, 0.6))
    assert strip.value == strip.interval.low == strip.interval.high == 1.0
    assert strip.interval.beyond_high and not strip.interval.beyond_low
    far_left = place(criterion(0.02, -0.5, -0.6, -0.4))
    assert far_left.value == 0.0
    assert far_left.interval.beyond_low and not far_left.interval.beyond_high


def test_a_margin_of_zero_puts_no_harm_on_the_margin():
    strip = place(criterion(0.0, 0.004, 0.0, 0.008))
    assert strip.zero == strip.margin == strip.interval.low
    assert strip.interval.high == pytest.approx(0.75)
    assert place(criterion(0.0, 0.0, 0.0, 0.0)).value == 0.5


def test_nothing_estimated_draws_nothing():
    strip = place(criterion(0.02, None, None, None))
    assert strip.value is None
    assert strip.interval is None
    assert strip.floor is None


@example(math.inf, math.inf, None, None)
@given(st.floats(min_value=0, allow_nan=False), NUMBERS, NUMBERS, NUMBERS)
def test_every_place_is_on_the_axis(margin, value, low, high):
    strip = place(criterion(margin, value, low, high))
    places = [strip.margin, strip.zero, strip.value]
    if strip.interval:
        places += [strip.interval.low, strip.interval.high]
    assert all(0.0 <= share <= 1.0 and not math.isnan(share) for share in places if share is not None)
