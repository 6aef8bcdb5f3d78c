"""Tries of candidates → failure rate over prompt length and temperature, and where it starts. Pure.

Only two kinds of candidates tell something about length: those on the path to the final request, which hold all that
the failure needs, and cuts of the final request, which are shorter than it. The others missed a part that is needed,
and say nothing about their length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

from qgate.judge.shrink_course import DEFAULT_TEMPERATURE, Course
from qgate.judge.shrink_rate import measured
from qgate.judge.shrink_trials import Candidate
from qgate.schemas.minimised import Cell, RateMap, Size, Thresholds

MOST_LENGTHS = 5
"""Bins of length: equal steps on a logarithmic scale."""
TEMPERATURES = (0.0, 0.5, 1.0)
"""Where the picture is looked at, beside what was tried on the way."""


def telling(course: Course, planned: Iterable[Candidate]) -> list[tuple[Size, int, int]]:
    """Size, failures and tries of what tells something about length: the path, what was planned, and cuts of the outcome.

    Of what was found to fail only the tries count that had no part in finding it.
    """
    trials, shortest = course.trials, course.current.size().num_characters
    shorter = [
        record.candidate for record in trials.records.values() if record.candidate.size().num_characters < shortest
    ]
    found = []
    for candidate in dict.fromkeys((*course.path, *planned, *shorter)):
        record = trials.record(candidate)
        results = record.fair if record.keeps else record.results
        if results:
            found.append((candidate.size(), sum(results), len(results)))
    return found


def planned(course: Course) -> list[Candidate]:
    """Candidates that fill the picture: a few lengths of the path, each at a few temperatures; the smallest first."""
    by_length = {candidate.size().num_characters: candidate for candidate in course.path}
    lengths = sorted(by_length)
    last = len(lengths) - 1
    chosen = sorted({lengths[round(last * step / (MOST_LENGTHS - 2))] for step in range(MOST_LENGTHS - 1)})
    filed = course.path[0].temperature
    temperatures = sorted({*TEMPERATURES, DEFAULT_TEMPERATURE if filed is None else filed})
    limit = course.path[0].max_tokens
    return [
        Candidate(by_length[length].draft, temperature, limit) for length, temperature in product(chosen, temperatures)
    ]


def rate_map(sized: Sequence[tuple[Size, int, int]], shortest: int) -> RateMap:
    """The picture of (size, failures, tries) of telling candidates and of planned ones.

    `shortest`: characters of the final request; what is shorter has a bin of its own.
    """
    lengths = [size.num_characters for size, _, _ in sized]
    shorter, others = [one for one in lengths if one < shortest], [one for one in lengths if one >= shortest]
    bins = [(min(shorter), max(shorter))] if shorter else []
    bins += _bins(others)
    temperatures = sorted({size.temperature for size, _, _ in sized}, key=lambda one: -1.0 if one is None else one)
    counted: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for size, failures, tries in sized:
        length = next(index for index, (_, longest) in enumerate(bins) if size.num_characters <= longest)
        cell = counted[length, temperatures.index(size.temperature)]
        cell[0], cell[1] = cell[0] + failures, cell[1] + tries
    cells = [
        Cell(length=length, temperature=temperature, rate=measured(failures, tries))
        for (length, temperature), (failures, tries) in sorted(counted.items())
        if tries
    ]
    return RateMap(lengths=tuple(bins), temperatures=tuple(temperatures), cells=tuple(cells))


def _bins(lengths: Sequence[int]) -> list[tuple[int, int]]:
    """Bins in equal steps of the logarithm, those that hold nothing left out, ends drawn to what they hold."""
    if not lengths:
        return []
    low, high = max(1, min(lengths)), max(1, *lengths)
    edges = [round(low * (high / low) ** (step / MOST_LENGTHS)) for step in range(1, MOST_LENGTHS + 1)]
    held: dict[int, list[int]] = defaultdict(list)
    for length in lengths:
        held[next(index for index, edge in enumerate(edges) if length <= edge)].append(length)
    return [(min(held[index]), max(held[index])) for index in sorted(held)]


def thresholds(course: Course) -> Thresholds:
    """Between which values the failure starts."""
    final = course.current.size()
    records = [record for record in course.trials.records.values() if record.keeps is not None]
    clear = [record.candidate for record in records if not record.keeps]
    of_final = [one.size().num_words for one in clear if _is_cut(one, course.current)]
    same = [one for one in clear if one.draft in {candidate.draft for candidate in course.path}]
    cooler = [one.temperature for one in same if one.temperature is not None and one.temperature < _top(final)]
    fewer = [
        one.max_tokens for one in same if one.max_tokens is not None and one.max_tokens < (final.max_tokens or 1 << 30)
    ]
    return Thresholds(
        longest_clear_words=max(of_final, default=None),
        shortest_failing_words=final.num_words,
        highest_clear_temperature=max(cooler, default=None),
        lowest_failing_temperature=final.temperature,
        most_clear_max_tokens=max(fewer, default=None),
        fewest_failing_max_tokens=final.max_tokens,
    )


def _top(size: Size) -> float:
    return DEFAULT_TEMPERATURE if size.temperature is None else size.temperature


def _is_cut(one: Candidate, final: Candidate) -> bool:
    """Whether `one` is shorter than the final request and made of parts of it."""
    texts = {(part.turn, part.place): part.content for part in final.draft}
    return one.draft != final.draft and all(
        (part.turn, part.place) in texts and _within(part.content, texts[part.turn, part.place]) for part in one.draft
    )


def _within(cut: object, whole: object) -> bool:
    """Whether the pieces of `cut` stand in `whole` in this order."""
    if isinstance(cut, str | tuple) and isinstance(whole, str | tuple):
        rest = iter(whole)
        return all(piece in rest for piece in cut)
    return cut == whole
