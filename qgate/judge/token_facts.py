"""Token tables in, what must be known of them and each arm's figures out. Touches nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from qgate.judge.compare import KL_QUANTILES, MEAN_TOKEN_METRICS, Case
from qgate.judge.quantiles import kl_quantiles
from qgate.judge.sample import of_tokens
from qgate.judge.tokens import TokenTable
from qgate.schemas.answers import TokenScores
from qgate.schemas.evidence import Evidence
from qgate.schemas.recipe import BASELINE, TOKEN_METRICS, Recipe


def tell(case: Case, evidence: Evidence, recipe: Recipe) -> list[str]:
    """Sentences: scores that are not there or not finite, and how tight the bound of KL is."""
    return [*_of_answers(case, recipe), *_of_references(case, evidence.reference_scores)]


def _of_answers(case: Case, recipe: Recipe) -> list[str]:
    wanted = any(criterion.metric in TOKEN_METRICS for tier in recipe.tiers.values() for criterion in tier.criteria)
    if not case.tokens:
        return ["There are no token scores: token metrics could not be judged (token_evidence)."] if wanted else []
    said = []
    for arm, tokens in sorted(case.tokens.items()):
        if tokens.num_not_finite:
            said.append(f"{arm} gave {tokens.num_not_finite} token scores that are not finite numbers.")
    covered = float(np.mean([np.nanmean(tokens.covered) for tokens in case.tokens.values()]))
    said.append(
        f"KL is a lower bound: {100 * covered:.1f} % of the baseline's probability lies in tokens that both "
        f"top-{recipe.token_evidence.top_k} lists hold, compared one by one; the rest is compared in two sums."
    )
    return said


def _of_references(case: Case, scores: Mapping[str, Mapping[str, TokenScores]]) -> Iterator[str]:
    """A right answer that has no score is told: too long or without a token, or other tokens than the baseline's."""
    for arm, tokens in sorted(case.references.items()):
        if tokens.num_not_finite:
            yield f"{arm} gave {tokens.num_not_finite} token scores of right answers that are not finite numbers."
    baseline = scores.get(BASELINE, {})
    for arm in sorted(scores):
        mine = baseline if arm == BASELINE else scores[arm]
        empty = sum(not each.token_ids.size for each in mine.values())
        other = sum(
            not np.array_equal(each.token_ids, baseline[key].token_ids)
            for key, each in mine.items()
            if each.token_ids.size and key in baseline and baseline[key].token_ids.size
        )
        if empty:
            what = f"{arm} cannot score {empty} of {len(mine)} right answers"
            yield f"{what}: they have no token or too many, or its server scores none."
        if other:
            yield f"{arm} reads {other} of {len(mine)} right answers as other tokens than the baseline: its tokenizer differs."


def figures(case: Case, arm: str) -> dict[str, Any]:
    """An arm's figures on the baseline's own answers, and as `reference_…` on right answers, where there are any."""
    own, references = case.tokens.get(arm), case.references.get(arm)
    found = {} if own is None else _of_table(own)
    if references is not None:
        told = {"num_answers": len(references.rows), **_of_table(references)}
        found |= {f"reference_{name}": value for name, value in told.items()}
    return found


def _of_table(tokens: TokenTable) -> dict[str, Any]:
    """Every item weighs the same, as in the criteria."""
    use, inside = np.isfinite(tokens.kl), np.ones(len(tokens.rows), dtype=bool)
    kl = tokens.kl[use]
    if not kl.size:
        return {"num_positions": 0}
    means = {name: of_tokens(tokens, of(tokens), inside, support) for name, (of, support) in MEAN_TOKEN_METRICS.items()}
    quantiles = kl_quantiles(kl, tokens.cluster[use], (0.5, *KL_QUANTILES.values()))
    disagree = means["top1_disagreement"]
    return {
        "num_positions": int(kl.size),
        "kl_mean": means["kl_mean"].value,
        **dict(zip(("kl_median", *KL_QUANTILES), quantiles.tolist(), strict=True)),
        "kl_max": float(kl.max()),
        "top1_agreement": 1.0 - disagree.value if disagree.num_items else None,
        "probability_drop": means["probability_drop"].value,
        "ln_perplexity_ratio": means["perplexity_increase"].value,
    }
