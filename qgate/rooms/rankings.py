"""Finished rank steps in, a row per document and arm out. Reads the store."""

from __future__ import annotations

from collections.abc import Iterator

from qgate.io.score_log import read_scores
from qgate.judge.observe import Place
from qgate.judge.ranked import Ranking, ranked
from qgate.plan import RankStep, item_of
from qgate.rooms.prepare import Prepared
from qgate.rooms.work import Work, key_of
from qgate.schemas.answers import Sampling, TokenScores
from qgate.schemas.evidence import Row
from qgate.schemas.recipe import BASELINE

NOT_SAMPLED = Sampling(
    temperature=0.0, top_p=1.0, top_k=-1, min_p=0.0, repetition_penalty=1.0, presence_penalty=0.0,
    frequency_penalty=0.0, max_tokens=1, seed=0,
)  # fmt: skip
"""Nothing is sampled where options are ranked: one row per document, as if greedy."""

Rankings = dict[str, Ranking]
"""By `evalset/item`."""


def ranked_rows(prepared: Prepared, work: Work) -> Iterator[Row]:
    """The rows of every rank step that was done. Raises ArtefactError."""
    found: dict[tuple[str, int, str], Rankings] = {}
    options = _options(prepared)
    for step in prepared.plan.rank:
        arm = work.ranked.get(key_of(step))
        if arm is None:
            continue
        scores = {each.id: each for each in read_scores(arm.folder)}
        asked: dict[str, list[TokenScores]] = {}
        for request in step.requests:
            asked.setdefault(item_of(request.id), []).append(scores[request.id])
        found[step.variant, step.replicate, step.evalset] = {
            item: Ranking(options[item], tuple(mine[: len(options[item])])) for item, mine in asked.items()
        }
        yield from _rows_of(prepared, work, step, found)


def _options(prepared: Prepared) -> dict[str, tuple[str, ...]]:
    """`evalset/item` to its options, in the order in which they were asked."""
    return {f"{name}/{doc.item}": doc.options for name, tasks in prepared.tasks.items() for doc in tasks.docs}


def _rows_of(
    prepared: Prepared, work: Work, step: RankStep, found: dict[tuple[str, int, str], Rankings]
) -> Iterator[Row]:
    """An arm is read beside the baseline's first run, a variant's repeat beside its own first."""
    mine = found[step.variant, step.replicate, step.evalset]
    first = (step.variant, 0) if step.replicate else (BASELINE, 0)
    beside = {} if first == (step.variant, step.replicate) else found.get((*first, step.evalset), {})
    scores = work.task_scores.get((step.variant, step.replicate, step.evalset), {})
    lengths = {item_of(request.id): len(request.prompt or ()) for request in step.requests}
    items = prepared.items
    for item, ranking in mine.items():
        place = Place(step.variant, step.replicate, step.evalset, step.profile, items[item], NOT_SAMPLED)
        yield ranked(place, lengths[item], ranking, beside.get(item), scores.get(items[item].id))
