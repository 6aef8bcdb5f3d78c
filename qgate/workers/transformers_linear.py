"""Linear layers that are fast on a CPU and equal to the checkpoint's arithmetic. Part of the worker transformers_serve.

A torch or compressed-tensors Linear in, a module with the same output (but for the order of float sums) out.
Touches nothing but memory. Three kinds:

- dense: the weight is reordered once for oneDNN. Plain `F.linear` goes to MKL, which takes half the speed on AMD.
- int8: W8A8 with one scale per output channel and one per token, found as the token comes. Activations are rounded as
  compressed-tensors rounds them; the product is int8 x int8 -> int32, so exact; then both scales. No float sum at all.
- rounded: any other scheme with quantized activations (FP8, static int8): compressed-tensors' own rounding, then dense.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

INT8_STEPS = 127.5
"""Half of the 255 steps of int8: compressed-tensors' symmetric scale is max|x| / 127.5 (calculate_qparams)."""

PACKED_FOR = 64
"""Rows that the packed layout is chosen for; other row counts work too."""


class PackedLinear(nn.Module):
    """y = x W^T + b with W [out, in] in oneDNN's blocked layout. CPU only; float32 or bfloat16."""

    def __init__(self, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), PACKED_FOR)
        self.bias = None if bias is None else bias.detach()

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        return torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")


class TokenRounder:
    """Rounds activations to int8 with a scale per token; remembers the last input, which q, k and v share."""

    def __init__(self) -> None:
        self._seen: Tensor | None = None
        self._rounded: tuple[Tensor, Tensor] | None = None

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """[..., in] -> int8 [tokens, in] and its scales [tokens, 1]."""
        if x is not self._seen or self._rounded is None:
            self._seen, self._rounded = x, round_tokens(x.reshape(-1, x.shape[-1]))
        return self._rounded


def round_tokens(x: Tensor) -> tuple[Tensor, Tensor]:
    """[tokens, in] -> int8 and scales, step by step as compressed-tensors' dynamic symmetric `token` strategy."""
    low, high = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)  # 20 times faster here than torch.aminmax
    scale = torch.maximum(low.abs(), high.abs()) / INT8_STEPS
    scale = scale.masked_fill(scale == 0, torch.finfo(x.dtype).eps)
    return torch.div(x, scale).clamp_(-128, 127).round_().to(torch.int8), scale


class Int8Linear(nn.Module):
    """W8A8: weight int8 [out, in] with scales [out, 1]; activations are rounded per token."""

    def __init__(self, weight: Tensor, scale: Tensor, bias: Tensor | None, rounder: TokenRounder) -> None:
        super().__init__()
        self.weight = weight.detach().contiguous().t()
        self.scale = scale.detach().float().reshape(1, -1)
        self.bias = None if bias is None else bias.detach()
        self.rounder = rounder
        self.rounds = True

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        if not self.rounds:
            return linear(x, (self.weight * self.scale).t().to(x.dtype), self.bias)
        rounded, scale = self.rounder(x)
        y = torch._int_mm(rounded, self.weight).to(torch.float32).mul_(scale).mul_(self.scale)
        if self.bias is not None:
            y += self.bias
        return y.to(x.dtype).view(*x.shape[:-1], -1)


class RoundedLinear(nn.Module):
    """Activations rounded by compressed-tensors' own function, then a dense product with the dequantized weight."""

    def __init__(self, source: nn.Module, dense: nn.Module) -> None:
        super().__init__()
        self.source = [source]  # not a child: its weight is not needed any more
        self.dense = dense
        self.rounds = True

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        if not self.rounds:
            return self.dense(x)
        from compressed_tensors.quantization.lifecycle.forward import forward_quantize  # noqa: PLC0415

        scheme = self.source[0].quantization_scheme
        return self.dense(forward_quantize(self.source[0], x, "input", scheme.input_activations))


def set_rounding(model: nn.Module, rounds: bool) -> None:
    """Switch the rounding of activations. It turns the last bit of a float into a whole step, so a probe goes without."""
    for layer in model.modules():
        if isinstance(layer, Int8Linear | RoundedLinear):
            layer.rounds = rounds


def dense(weight: Tensor, bias: Tensor | None) -> nn.Module:
    """The fastest dense linear layer for this weight: packed on a CPU whose oneDNN can, torch's own otherwise."""
    if can_pack(weight):
        return PackedLinear(weight, bias)
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach(), requires_grad=False)
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach(), requires_grad=False)
    return layer


def can_pack(weight: Tensor) -> bool:
    """Whether oneDNN's packed product is there for a weight of this device and dtype."""
    if weight.device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    if weight.dtype == torch.bfloat16:
        return torch.ops.mkldnn._is_mkldnn_bf16_supported()
    return weight.dtype == torch.float32


def int8_is_exact() -> bool:
    """Whether this machine's int8 product is the true one: without VNNI, oneDNN is slow or saturates at 16 bits."""
    if not torch.cpu._is_vnni_supported():
        return False
    worst = torch.full((32, 2048), -128, dtype=torch.int8)
    mixed = torch.randint(-128, 128, (64, 2048), dtype=torch.int8, generator=torch.Generator().manual_seed(0))
    expected = worst.long() @ mixed.long().t()
    return torch.equal(torch._int_mm(worst, mixed.t()).long(), expected)


def is_dynamic_int8(scheme: Any) -> bool:
    """Whether a compressed-tensors scheme is W8A8 as Int8Linear computes it."""
    weights, inputs = scheme.weights, scheme.input_activations
    if weights is None or inputs is None or scheme.output_activations is not None:
        return False
    weights_fit = (weights.type, weights.num_bits, weights.strategy) == ("int", 8, "channel") and weights.symmetric
    inputs_fit = (inputs.type, inputs.num_bits, inputs.strategy) == ("int", 8, "token") and inputs.symmetric
    return bool(weights_fit and inputs_fit and inputs.dynamic is True)
