"""How long judging takes: `python tests/bench/bench_judge.py` prints seconds for made-up runs of a real size."""

from __future__ import annotations

import argparse
import time
import tracemalloc
from collections.abc import Mapping

import numpy as np

from qgate.judge.verdict import judge
from qgate.schemas.answers import TokenScores
from qgate.schemas.evidence import DefectHit, Evidence, Row
from qgate.schemas.recipe import Recipe

NUM_TOKENS = 200
TOP_K = 20
VOCABULARY = 50_000
LOOP = (DefectHit("repetition_loop", 120),)
LANGUAGES = ("en", "zh", "ja", "ar")


def rows(variant: str, replicate: int, num_items: int, num_seeds: int, damage: float) -> list[Row]:
    """An arm in which `damage` of the answers are lost."""
    generator = np.random.default_rng([len(variant), replicate])
    right = np.random.default_rng(7).random((num_items, num_seeds)) < 0.6
    lost = generator.random(right.shape) < damage
    defect = generator.random(right.shape) < damage / 2
    return [
        Row(
            variant=variant,
            replicate=replicate,
            evalset=("long-text", "noisy-text", "instruction")[item % 3],
            item=f"item-{item:05d}",
            profile="warm",
            seed=seed,
            temperature=0.8,
            kind=f"kind-{item % 12}",
            language=LANGUAGES[item % 4],
            difficulty=1 + item % 5,
            slices={"length": ("1k", "2k", "4k")[item % 3], "noise": f"noise-{item % 6}", "severity": str(item % 4)},
            status="ok",
            finish_reason="stop",
            score=float(right[item, seed] and not lost[item, seed]),
            defects=LOOP if defect[item, seed] else (),
            text="word " * NUM_TOKENS,
            prompt_tokens=40 * (1 + item % 40),
            completion_tokens=NUM_TOKENS - int(lost[item, seed]),
            identical=None if (variant, replicate) == ("baseline", 0) else not lost[item, seed],
            first_divergence=None,
            similarity=1.0,
            latency_s=1.0,
            baseline_nll=1.0 + float(lost[item, seed]),
            excused=(),
        )
        for item in range(num_items)
        for seed in range(num_seeds)
    ]


def scores(reference: list[Row], noise: float, seed: int) -> dict[str, TokenScores]:
    """Top-k lists of the reference's answers, shifted by `noise`."""
    generator = np.random.default_rng(seed)
    made = {}
    for number, row in enumerate(reference):
        same = np.random.default_rng([1, number])
        ids = same.integers(0, VOCABULARY, (NUM_TOKENS, TOP_K)).astype(np.int32)
        logits = np.sort(same.normal(0, 2.5, (NUM_TOKENS, TOP_K)))[:, ::-1] + generator.normal(
            0, noise, (NUM_TOKENS, TOP_K)
        )
        logs = (logits - np.log(np.exp(logits).sum(-1, keepdims=True)) - 0.01).astype(np.float32)
        key = "/".join(map(str, row.pair))
        made[key] = TokenScores(key, ids[:, 0], logs[:, 0], ids, logs)
    return made


def recipe(variants: tuple[str, ...]) -> Recipe:
    """Three tiers with every metric."""
    margins: Mapping[str, float] = {
        "score_loss": 0.05, "relative_score_loss": 0.1, "defect_rate": 0.05, "defect_increase": 0.05,
        "truncation_increase": 0.02, "length_drift": 0.1, "flip_rate": 0.1, "output_disagreement": 0.5, "kl_mean": 0.06,
        "kl_p95": 0.2, "kl_p99": 0.5, "kl_p999": 1.0, "top1_disagreement": 0.1, "probability_drop": 0.05,
        "perplexity_increase": 0.05, "garble_nll_increase": 0.2,
    }  # fmt: skip
    criteria = [{"metric": metric, "margin": margin} for metric, margin in margins.items()]
    criteria += [{"metric": "worst_slice_score_loss", "margin": 0.1, "by": "language"}]
    criteria += [{"metric": "score_loss", "margin": 0.05, "evalset": name} for name in ("long-text", "noisy-text")]
    tier = {"default": variants[0], "allow": list(variants), "criteria": criteria}
    return Recipe.model_validate(
        {
            "qgate": 1,
            "name": "bench",
            "model": {"path": "model"},
            "variants": {name: {"checkpoint": {"path": name}} for name in variants},
            "evalsets": [{"name": "long-text@1"}],
            "sampling": {"warm": {"temperature": 0.8, "max_tokens": 64, "seeds": [0, 1, 2, 3]}},
            "tiers": dict.fromkeys(("chat", "batch", "code"), tier),
        }
    )


def bench(name: str, num_variants: int, num_items: int, num_seeds: int, with_tokens: bool) -> None:
    """Judge one made-up run and print what it took."""
    variants = tuple(f"variant-{'x' * number}" for number in range(1, num_variants + 1))
    base = rows("baseline", 0, num_items, num_seeds, 0.0)
    made = base + rows("baseline", 1, num_items, num_seeds, 0.01)
    token_scores = {}
    for number, variant in enumerate(variants):
        made += rows(variant, 0, num_items, num_seeds, 0.02 * (number + 1))
    if with_tokens:
        token_scores = {"baseline": scores(base, 0.0, 0), "baseline#1": scores(base, 0.01, 1)}
        token_scores |= {variant: scores(base, 0.1 * (n + 1), n + 2) for n, variant in enumerate(variants)}
    evidence = Evidence(rows=tuple(made), token_scores=token_scores, engine="vllm")
    began = time.perf_counter()
    cpu = time.process_time()
    sheet = judge(evidence, recipe(variants), "bench")
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    tiers = [str(tier.verdict) for tier in sheet.tiers]
    print(f"{name}: {wall:.1f} s wall, {cpu:.1f} s CPU ({len(made):,} answers, tiers {', '.join(tiers)})")


def main() -> None:
    """Run the benches that the design's figures speak of."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", action="store_true", help="trace memory too (slower)")
    arguments = parser.parse_args()
    if arguments.memory:
        tracemalloc.start()
    bench("5 variants x 650 items x 4 seeds, 10,000 resamples", 5, 650, 4, with_tokens=False)
    bench("the same with token scores of 200 tokens each", 5, 650, 4, with_tokens=True)
    bench("10,000 pairs of 200 tokens, token scores included", 1, 2500, 4, with_tokens=True)
    if arguments.memory:
        print(f"peak {tracemalloc.get_traced_memory()[1] / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
