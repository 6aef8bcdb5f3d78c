"""Memory that scoring takes on a vLLM server, and the bounds that keep it there. Pure.

vLLM's memory profile does not hold `prompt_logprobs` (vllm#5907): logits of every prompt position of a step over the
whole vocabulary come beside what the server has reserved. So a step is cut where it could take more than the budget,
and no more requests are scored at once than fit in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

BYTES_PER_LOGIT = 12
"""Upper bound: a float32 logit, its log-softmax, and as much for ranks and top-k, per position and vocabulary entry."""
FEWEST_STEP_TOKENS = 1024
"""vLLM wants at least as many tokens in a step as sequences, and takes up to 1024 of these by default."""
CPU_BUDGET_BYTES = 2 << 30


def gpu_memory_bytes(gpu: Mapping[str, str] | None) -> int | None:
    """Memory of a GPU as nvidia-smi tells it (`143771 MiB`)."""
    found = re.match(r"(\d+) MiB", (gpu or {}).get("memory.total", ""))
    return int(found[1]) << 20 if found else None


def budget_bytes(wanted: int | None, gpu: Mapping[str, str] | None) -> int:
    """What scoring may take: as the recipe says, else a tenth of the GPU, which is what the server leaves free."""
    if wanted is not None:
        return wanted
    total = gpu_memory_bytes(gpu)
    return CPU_BUDGET_BYTES if total is None else total // 10


def default_step_tokens(gpu: Mapping[str, str] | None) -> int:
    """--max-num-batched-tokens that vLLM's server would choose (vllm/engine/arg_utils.py, get_batch_defaults)."""
    large = (gpu_memory_bytes(gpu) or 0) >= 70 << 30 and "a100" not in (gpu or {}).get("name", "").lower()
    return 8192 if large else 2048


def default_num_seqs(gpu: Mapping[str, str] | None) -> int:
    """--max-num-seqs that vLLM's server would choose for the same GPU."""
    return 1024 if default_step_tokens(gpu) == 8192 else 256


def step_tokens(vocab_size: int, budget: int, gpu: Mapping[str, str] | None) -> int | None:
    """--max-num-batched-tokens at which a step of scoring fits the budget; None where vLLM's own default does."""
    positions = budget // (max(1, vocab_size) * BYTES_PER_LOGIT)
    return None if positions >= default_step_tokens(gpu) else max(FEWEST_STEP_TOKENS, positions // 256 * 256)


def score_cost_bytes(num_positions: int, vocab_size: int, step: int) -> int:
    """Memory that scoring so many positions takes at most: no step holds more than `step` of them."""
    return min(num_positions, step) * vocab_size * BYTES_PER_LOGIT
