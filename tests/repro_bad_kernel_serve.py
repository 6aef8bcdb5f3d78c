"""The worker of the engine `transformers` with a bug in its kernel for quantized layers. For tests of `qgate repro`.

Run as `python repro_bad_kernel_serve.py transformers_serve.py setup.json`: the product that reads a quantized weight
misses the last tile of its columns, as a kernel does whose loop ends early. Unquantized layers are as they should be.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(sys.argv[1]).parent))

import transformers_load
import transformers_serve

TILE = 192


class ShortLoop(nn.Module):
    """A layer whose product ends one tile early."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Rows [..., in] through the layer, the last TILE inputs unseen."""
        seen = rows.clone()
        seen[..., -TILE:] = 0
        return self.layer(seen)


def load(*args: Any, **fields: Any) -> transformers_load.Loaded:
    """As transformers_load.load, with the kernel of quantized layers replaced."""
    loaded = healthy(*args, **fields)
    if "dequantized" in loaded.kernels["linear"]:
        for name, layer in list(loaded.body.named_modules()):
            if name.endswith("_proj"):
                loaded.body.set_submodule(name, ShortLoop(layer))
        loaded.kernels["linear"] = "short loop (planted)"
    return loaded


healthy, transformers_load.load = transformers_load.load, load

if __name__ == "__main__":
    sys.exit(transformers_serve.main(Path(sys.argv[2])))
