"""How well the minimiser finds a planted trigger: `python -m tests.bench.bench_shrink` prints a line per kind of failure.

Each run plants 12 words in 3,000, whole or in two halves, in a request whose failure has the given rate with the words
and the given background rate without them. Right: fresh tries confirmed the outcome, and it holds the words and at most
1.3 times as many.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from statistics import median

from qgate.judge.shrink import shrink
from qgate.judge.shrink_body import count
from qgate.judge.shrink_trials import Source
from tests.unit.judge.planted import TRIGGER, Model, chat, holds, prose, text_of

WORDS, NEAR = 3000, 1.3 * len(TRIGGER)
CASES = ((1.0, 0.0, 1, 149), (1.0, 0.0, 2, 149), (0.9, 0.0, 1, 600), (0.3, 0.0, 1, 1800), (0.3, 0.01, 1, 1800),
         (0.3, 0.0, 2, 1800), (0.1, 0.0, 1, 6000))  # fmt: skip
"""Rate, background rate, number of parts, budget."""


def run(seed: int, rate: float, background: float, num_parts: int, budget: int) -> tuple[bool, int, int]:
    """Whether it ended right, in how many calls, with how many words."""
    rng, size = random.Random(seed), len(TRIGGER) // num_parts
    parts = [TRIGGER[start : start + size] for start in range(0, len(TRIGGER), size)]
    body = chat(
        " ".join(prose(rng, WORDS // num_parts, part) for part in parts), temperature=0.0 if rate == 1 else 0.8
    )  # fmt: skip
    model = Model(lambda body: rate if holds(text_of(body), *parts) else background, seed)
    found = shrink(body, Source(model), rate=rate, budget=budget)
    course = found.course
    words = count(course.current.draft, "words")
    left = text_of(course.current.body(body))
    return found.verified and holds(left, *parts) and words <= NEAR, course.trials.num_calls, words


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    num = parser.parse_args(argv).runs
    print("rate  background  parts  budget  right    calls: median  p95    most  words: most")
    for rate, background, num_parts, budget in CASES:
        found = [run(seed, rate, background, num_parts, budget) for seed in range(num)]
        calls = sorted(calls for _, calls, _ in found)
        right = sum(right for right, _, _ in found)
        print(
            f"{rate:<5} {background:<11} {num_parts:<6} {budget:<7} {right}/{num:<6}"
            f"{median(calls):<14.0f} {calls[int(0.95 * num)]:<6} {calls[-1]:<5} {max(words for _, _, words in found)}"
        )


if __name__ == "__main__":
    main()
