"""The worst answers of each variant, beside the baseline's: pairs in, examples out. Touches nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qgate.judge.arms import Arms, Pair
from qgate.judge.observe import came
from qgate.schemas.evidence import DefectHit, Row
from qgate.schemas.verdict import Example

NUM_EXAMPLES = 5
PROMPT_TAIL_CHARS = 400


def worst(
    arms: Arms, variants: Sequence[str], prompts: Mapping[tuple[str, str], str], num_each: int = NUM_EXAMPLES
) -> tuple[Example, ...]:
    """The `num_each` worst answers of every variant, one per item, only such as are worse than the baseline's."""
    found: list[Example] = []
    for variant in variants:
        ranked = sorted((pair for pair in arms.pairs(variant).pairs if _badness(pair) > (0, 0, 0)), key=_rank)
        seen: set[tuple[str, str]] = set()
        for pair in ranked:
            if pair.row.cluster not in seen and len(seen) < num_each:
                seen.add(pair.row.cluster)
                found.append(_example(variant, pair, prompts))
    return tuple(found)


def _rank(pair: Pair) -> tuple[float, float, float, tuple[str, str, str, int]]:
    first, second, third = _badness(pair)
    return (-first, -second, -third, pair.row.pair)


def _badness(pair: Pair) -> tuple[float, float, float]:
    """Lost score, new defects, and dissimilarity; nothing without a loss or a defect is bad."""
    other, reference = pair.other, pair.reference
    if other is None or reference is None:
        return (0, 0, 0)
    lost = max(0.0, (reference.score or 0.0) - (other.score or 0.0))
    defects = len({hit.name for hit in other.defects}) + (0 if came(other) else 1)
    if not lost and not defects:
        return (0, 0, 0)
    return (lost + (defects > 0), defects, 1.0 - (other.similarity or 0.0))


def _example(variant: str, pair: Pair, prompts: Mapping[tuple[str, str], str]) -> Example:
    other, reference = pair.other, pair.reference
    assert other is not None and reference is not None
    evalset, item, _, _ = pair.row.pair
    hits = sorted(other.defects, key=lambda hit: (hit.start, hit.name))
    return Example(
        id=pair.row.request_id,
        evalset=evalset,
        variant=variant,
        prompt_tail=prompts.get((evalset, item), "")[-PROMPT_TAIL_CHARS:],
        baseline_text=reference.text,
        variant_text=other.text,
        baseline_score=reference.score,
        variant_score=other.score,
        defects=tuple(dict.fromkeys(hit.name for hit in hits)),
        where=_where(hits, other),
    )


def _where(hits: Sequence[DefectHit], other: Row) -> str:
    if hits:
        detail = f" ({hits[0].detail})" if hits[0].detail else ""
        return f"char {hits[0].start}: {hits[0].name}{detail}"
    if not came(other):
        return f"no answer: {other.ending}"
    if other.first_divergence is not None:
        return f"leaves the baseline's answer at token {other.first_divergence}"
    return ""
