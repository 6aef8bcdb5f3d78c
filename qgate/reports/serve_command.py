"""What served a checkpoint while it was judged in, the `vllm serve` command that serves it likewise out. Pure.

Kept is all that decides an answer. Left out is what only the measuring needed: the port, the log switches, how memory
was shared, and the context length, which was cut to what the run asked for.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile

from qgate.schemas.statement import JudgedVariant

NOT_KEPT = frozenset(
    {"--model", "--served-model-name", "--host", "--port", "--max-logprobs", "--max-model-len",
     "--gpu-memory-utilization", "--kv-cache-memory-bytes"}
)  # fmt: skip
NOT_KEPT_SWITCHES = frozenset({"--no-enable-log-requests", "--disable-uvicorn-access-log"})
NOT_KEPT_VARIABLES = frozenset(
    {"VLLM_NO_USAGE_STATS", "VLLM_LOGGING_LEVEL", "VLLM_CPU_KVCACHE_SPACE", "CUDA_VISIBLE_DEVICES"}
)
DTYPES = frozenset({"float16", "bfloat16", "float32"})


@dataclass(frozen=True)
class ServeCommand:
    """A server's options and variables, and what a reader must know about them."""

    options: tuple[str, ...]
    environment: dict[str, str]
    notes: tuple[str, ...]

    def line(self, checkpoint: str, name: str) -> str:
        """For a shell; `name` is what clients call the model."""
        return shlex.join(["vllm", "serve", checkpoint, "--served-model-name", name, *self.options])


def serve_command(variant: JudgedVariant) -> ServeCommand:
    """The command for a judged variant."""
    facts = variant.engine
    if facts is None or facts.engine != "vllm" or "-m" not in facts.argv:
        known = facts is not None and facts.dtype in DTYPES
        dtype = str(facts.dtype) if facts is not None and known else "auto"
        judged_by = "nothing" if facts is None else f"the engine {facts.engine}"
        note = f"judged on {judged_by}, not on vLLM: this command was never judged"
        return ServeCommand(("--dtype", dtype, "--generation-config", "vllm"), {}, (note,))
    words = tuple(dropwhile(lambda word: not word.startswith("--"), facts.argv))
    environment = {key: value for key, value in facts.env_vars.items() if key not in NOT_KEPT_VARIABLES}
    return ServeCommand(
        tuple(_kept(words)), environment, (f"judged on vLLM {facts.version}, {facts.device}", *_length(words))
    )


def _kept(words: Sequence[str]) -> Iterator[str]:
    rest = iter(words)
    for word in rest:
        if word in NOT_KEPT:
            next(rest, None)
        elif word not in NOT_KEPT_SWITCHES:
            yield word


def _length(words: Sequence[str]) -> Iterator[str]:
    if "--max-model-len" in words[:-1]:
        longest = words[words.index("--max-model-len") + 1]
        yield f"judged on prompts and answers of at most {longest} tokens together; what is longer was not judged"
