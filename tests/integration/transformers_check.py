"""Run in a tool's environment: the worker's arithmetic beside that of transformers, compressed-tensors and vLLM's rules.

python transformers_check.py request.json result.json
"""

import json
import sys
from copy import deepcopy
from pathlib import Path

import torch

REQUEST = json.loads(Path(sys.argv[1]).read_text())
sys.path.insert(0, REQUEST["workers"])

import transformers_linear  # noqa: E402
import transformers_load  # noqa: E402
import transformers_sampling  # noqa: E402
from torch.nn.functional import linear  # noqa: E402
from transformers import AutoModelForCausalLM, AutoTokenizer  # noqa: E402

torch.set_grad_enabled(False)
torch.set_num_threads(1)


def rows_of_every_kind(columns: int) -> torch.Tensor:
    """[2, 9, columns]: common, zero, huge, tiny, one-sided, and rows whose quotients are halves."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(2, 9, columns, generator=generator)
    x[0, 1], x[0, 2] = 0, x[0, 2] * 1e6
    x[0, 3], x[0, 4] = x[0, 3] * 1e-6, x[0, 4].abs()
    x[1, 0] = torch.arange(columns) % 256 - 127.5
    return x


def linears(folder: Path) -> dict[str, float]:
    """Per kind of layer the largest difference from the layer that transformers loads, as a share of the output."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    reference = deepcopy(model)
    reference(input_ids=torch.tensor([[1, 2]]))  # compressed-tensors decompresses at the first forward
    transformers_load._prepare_linears(model)
    worst: dict[str, float] = {}
    for name, layer in reference.named_modules():
        if isinstance(layer, torch.nn.Linear):
            mine, x = model.get_submodule(name), rows_of_every_kind(layer.in_features)
            expected = layer(x)
            scale = expected.abs().amax(-1, keepdim=True).clamp_min(1e-30)
            gap = float(((mine(x) - expected).abs() / scale).max())
            worst[type(mine).__name__] = max(gap, worst.get(type(mine).__name__, 0.0))
    return worst


def integers() -> dict[str, float]:
    """Rounded activations times int8 weights beside the same product in int64, with a bias; and the rounding alone."""
    x = rows_of_every_kind(1536)
    rounded, scale = transformers_linear.round_tokens(x.reshape(-1, 1536))
    generator = torch.Generator().manual_seed(2)
    weight = torch.randint(-128, 128, (48, 1536), dtype=torch.int8, generator=generator)
    weight_scale, bias = torch.rand(48, 1, generator=generator) + 0.1, torch.randn(48, generator=generator)
    layer = transformers_linear.Int8Linear(weight, weight_scale, bias, transformers_linear.TokenRounder())
    exact = (rounded.long() @ weight.long().t()).double() * scale.double() * weight_scale.double().t() + bias.double()
    gap = (layer(x).reshape(-1, 48).double() - exact).abs() / exact.abs().amax(-1, keepdim=True).clamp_min(1e-30)
    fake = linear(rounded.double() * scale.double(), weight.double() * weight_scale.double(), bias.double())
    return {
        "product": float(gap.max()),
        "fake": float(((fake - exact).abs() / exact.abs().amax(-1, keepdim=True).clamp_min(1e-30)).max()),
        "int8_is_exact": transformers_linear.int8_is_exact(),
    }


def direct(folder: Path, messages: list[dict], completion: list[int]) -> list[float]:
    """Log-probabilities of forced ids by transformers' own forward over the whole text."""
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    logprobs = model(input_ids=torch.tensor([prompt + completion])).logits[0].log_softmax(-1)
    return [float(logprobs[len(prompt) - 1 + index, token]) for index, token in enumerate(completion)]


def vllm_support(logits: torch.Tensor, top_k: int, top_p: float, min_p: float) -> torch.Tensor:
    """Which entries may be sampled, after vllm/v1/sample: min_p, then top_k, then top_p over a full ascending sort."""
    probabilities = logits.softmax(-1)
    logits = logits.masked_fill(probabilities < probabilities.max() * min_p, -torch.inf)
    ordered, index = logits.sort()
    if 0 < top_k < len(logits):
        ordered = ordered.masked_fill(ordered < ordered[len(logits) - top_k], -torch.inf)
    dropped = ordered.softmax(-1).double().cumsum(0) <= 1 - top_p
    dropped[-1] = False
    return torch.zeros(len(logits), dtype=torch.bool).scatter(0, index, ~(dropped | ordered.isinf()))


def supports() -> list[dict]:
    """Of a small vocabulary: what may be sampled by vLLM's rules, and what was, in many draws."""
    logits = torch.tensor([3.0, 2.9, 2.5, 2.0, 1.0, 0.0, -1.0, -4.0])
    found = []
    for top_k, top_p, min_p in [
        (-1, 1.0, 0.0),
        (3, 1.0, 0.0),
        (0, 0.5, 0.0),
        (0, 1.0, 0.3),
        (4, 0.6, 0.1),
        (1, 1.0, 0.0),
    ]:
        sampling = {
            "temperature": 2.0, "top_k": top_k, "top_p": top_p, "min_p": min_p, "seed": 3,
            "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0,
        }  # fmt: skip
        sampler = transformers_sampling.Sampler(sampling, [], len(logits))
        drawn = [sampler.draw(logits) for _ in range(4000)]
        allowed = vllm_support(logits / 2.0, top_k, top_p, min_p)
        shares = (logits / 2.0).softmax(-1).masked_fill(~allowed, 0.0)
        counts = torch.bincount(torch.tensor(drawn), minlength=len(logits))
        found.append(
            {
                "allowed": allowed.nonzero().flatten().tolist(),
                "drawn": sorted(set(drawn)),
                "worst_share": float((counts / len(drawn) - shares / shares.sum()).abs().max()),
            }
        )
    return found


def penalties() -> dict[str, list[float]]:
    """Penalized logits beside the formulas of vllm/model_executor/layers/utils.py."""
    logits = torch.tensor([2.0, -1.0, 0.5, 3.0, -2.0])
    sampling = {
        "temperature": 0.0, "top_k": -1, "top_p": 1.0, "min_p": 0.0, "seed": 0,
        "repetition_penalty": 2.0, "presence_penalty": 0.25, "frequency_penalty": 0.5,
    }  # fmt: skip
    sampler = transformers_sampling.Sampler(sampling, [1, 3], len(logits))
    for token in (0, 0, 3):
        sampler.remember(token)
    return {"mine": sampler.penalize(logits).tolist(), "raw": logits.tolist()}


JOBS = {
    "linears": lambda: {name: linears(Path(folder)) for name, folder in REQUEST["checkpoints"].items()},
    "integers": integers,
    "direct": lambda: direct(Path(REQUEST["checkpoint"]), REQUEST["messages"], REQUEST["completion"]),
    "supports": supports,
    "penalties": penalties,
}

if __name__ == "__main__":
    Path(sys.argv[2]).write_text(json.dumps({"result": JOBS[REQUEST["job"]]()}))
