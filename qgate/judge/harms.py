"""One metric read off every pair of an arm: pairs in, columns out, and samples of any part of them. Touches nothing."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from qgate.judge.arms import Bools, Ints, Laid, Pair
from qgate.judge.criteria import RowMetric, Support
from qgate.judge.observe import came
from qgate.judge.resample import Floats
from qgate.judge.sample import Sample, means_by_item, of_items

NOTHING = (float("nan"), float("nan"), float("nan"))


@dataclass(frozen=True)
class Harms:
    """N pairs of one arm under one metric.

    float64[N]: `harm` (the greatest where the other arm did not answer; NaN where nothing can be said), `before` and
    `after`, the levels of the reference and of the arm. bool[N]: `expected`, whether the pair should have had a harm,
    and `missing`, whether it had none. `request` and `cluster` as in `arms.Laid`.
    """

    harm: Floats
    before: Floats
    after: Floats
    expected: Bools
    missing: Bools
    request: Ints
    cluster: Ints
    support: Support

    def sample(self, inside: Bools | None = None) -> Sample:
        """The mean over items of the mean harm over an item's pairs, of the pairs `inside` (default: all)."""
        inside = np.ones(self.harm.size, dtype=bool) if inside is None else inside
        use = inside & ~np.isnan(self.harm)
        return replace(
            of_items(means_by_item(self.cluster[use], self.harm[use]), self.support, int(use.sum())),
            num_missing=int((self.missing & inside).sum()),
            num_expected=int((self.expected & inside).sum()),
            bases=means_by_item(self.cluster[use], self.before[use]),
            other_value=_level(means_by_item(self.cluster[use], self.after[use])),
        )

    def over(self, noise: Harms) -> Harms:
        """The harm beyond what another arm has at the same request (its mean there; 0 where it has none).

        Both arms being held against the same reference, the difference of two shares or scores stays within [−1, 1].
        """
        known = ~np.isnan(noise.harm) & ~noise.missing
        size = int(max(self.request.max(initial=0), noise.request.max(initial=0))) + 1
        sums = np.bincount(noise.request[known], weights=noise.harm[known], minlength=size)
        counts = np.bincount(noise.request[known], minlength=size)
        at_request = sums / np.maximum(counts, 1)
        over = np.where(self.missing, self.harm, self.harm - at_request[self.request])
        if self.support.open:
            return replace(self, harm=over)
        return replace(self, harm=np.clip(over, -1.0, 1.0), support=Support(-1, 1))


def read(laid: Laid, metric: RowMetric) -> Harms:
    """Read a metric off every pair.

    Where the reference answered and the other arm did not, the pair counts as the greatest harm (a metric without one
    loses the pair); where the reference did not answer, nothing can be said. Both are missing. A pair that the metric
    says nothing of is neither expected nor missing.
    """
    applies = np.array([metric.applies(pair.row) for pair in laid.pairs], dtype=bool)
    columns = np.array([_of_pair(pair, metric) for pair in laid.pairs], dtype=np.float64).reshape(-1, 3)
    harm, before, after = columns.T
    answered = np.array([pair.reference is not None and came(pair.reference) for pair in laid.pairs], dtype=bool)
    # a metric without a greatest harm is scored on a part of the answers only: the others are not expected
    expected = applies & ~(answered & np.isnan(before)) if metric.support.open else applies
    missing = expected & np.isnan(harm)
    if not metric.support.open:
        harm = np.where(missing & ~np.isnan(before), metric.support.greatest, harm)
    return Harms(harm, before, after, expected, missing, laid.request, laid.cluster, metric.support)


def _of_pair(pair: Pair, metric: RowMetric) -> tuple[float, float, float]:
    reference, other = pair.reference, pair.other
    if reference is None or not came(reference) or not metric.applies(reference):
        return NOTHING
    before = metric.level(reference)
    if other is None or not came(other) or np.isnan(before):
        return (float("nan"), before, float("nan"))
    return metric.harm(reference, other), before, metric.level(other)


def _level(means: Floats) -> float | None:
    return float(means.mean()) if means.size else None
