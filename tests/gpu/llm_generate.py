"""The other side of the throughput bench: `LLM.generate` in a process of its own, which waits to be told when.

    python llm_generate.py request.json FOLDER

request.json: {"engine": arguments of LLM, "messages": file of chats (JSON lines), "sampling": fields of SamplingParams}.
FOLDER/ready appears when the model is loaded and warm; for each FOLDER/go.N the prompts are generated once and
FOLDER/done.N tells how long it took; FOLDER/stop ends it. Runs in vLLM's environment; imports nothing of qgate.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from pathlib import Path

import numpy as np
from vllm import LLM, SamplingParams

POLL_S = 0.05
WARM_UP = {"num": 512, "max_tokens": 16}


def tell(path: Path, content: object) -> None:
    """Write whole or not at all."""
    half = path.with_suffix(path.suffix + ".half")
    half.write_text(json.dumps(content))
    half.rename(path)


def ids_sha256(ids: list[int]) -> str:
    """As qgate hashes prompts."""
    return hashlib.sha256(np.asarray(ids, dtype="<i4").tobytes()).hexdigest()


def main() -> None:
    """Load, then generate when told."""
    request, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    chats = [json.loads(line) for line in Path(request["messages"]).read_text(encoding="utf-8").splitlines()]
    llm = LLM(**request["engine"])
    tokenizer = llm.get_tokenizer()
    prompts = [tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True) for chat in chats]
    sampling = SamplingParams(**request["sampling"])
    short = SamplingParams(**{**request["sampling"], "max_tokens": WARM_UP["max_tokens"]})
    llm.generate(prompts[: WARM_UP["num"]], short, use_tqdm=False)
    tell(folder / "ready", {})
    number = 0
    while not (folder / "stop").exists():
        if not (folder / f"go.{number}").exists():
            time.sleep(POLL_S)
            continue
        llm.reset_prefix_cache()  # as qgate's arms, which start with a cold cache
        began = time.perf_counter()
        outputs = llm.generate(prompts, sampling, use_tqdm=False)
        wall_s = time.perf_counter() - began
        done = {
            "wall_s": wall_s,
            "num_tokens": sum(len(output.outputs[0].token_ids) for output in outputs),
            "num_answers": len(outputs),
            "prompts": sorted(ids_sha256(list(output.prompt_token_ids)) for output in outputs),
        }
        tell(folder / f"done.{number}", done)
        number += 1


if __name__ == "__main__":
    main()
