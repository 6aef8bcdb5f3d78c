"""The run and the recipe of the sample, and the names and figures that its parts share."""

from __future__ import annotations

import hashlib

from qgate.schemas.answers import EngineFacts
from qgate.schemas.checkpoint import Checkpoint, FileRecord, Making
from qgate.schemas.recipe import Recipe
from qgate.schemas.run import ArmRecord, Run

RUN_ID = "20261129T120000Z-smollm2-demo-1f2e3d"
PRECISION = {"baseline": "FP16", "w8a8": "W8A8", "awq": "W4A16", "gptq": "W4A16"}
WEIGHT_BYTES = {"baseline": 269_030_016, "w8a8": 163_512_320, "awq": 119_874_560, "gptq": 118_901_760}
SPEED = {"baseline": 214.2, "w8a8": 331.8, "awq": 187.4, "gptq": 190.3}
TEXTS = {
    "en": "The parcel leaves the depot at nine and reaches the harbour before noon, weather permitting.",
    "zh": "包裹九点离开仓库，天气好的话中午前到达港口。请保留收据。",
    "ar": "يغادر الطرد المستودع في التاسعة ويصل إلى الميناء قبل الظهر إذا سمح الطقس.",
    "es": "El paquete sale del almacén a las nueve y llega al puerto antes del mediodía. 👩‍🚀🚢",
}
DAMAGE = {"w8a8": 0.02, "awq": 0.10, "gptq": 0.35}
SETS = {
    "long-text": ("one-needle", "summary", "length", ("1k", "4k", "16k")),
    "noisy-text": ("ocr", "typos", "noise", ("ocr", "keyboard", "asr")),
    "instruction": ("json-schema", "format", "length", ("short", "medium", "long")),
}
PROFILES = {"greedy": 0.0, "warm": 0.8}


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _checkpoint(name: str) -> Checkpoint:
    files = {
        "config.json": FileRecord(sha256=sha(name + "config"), size_bytes=861),
        "model.safetensors": FileRecord(sha256=sha(name + "weights"), size_bytes=WEIGHT_BYTES[name] + 34_000),
        "tokenizer.json": FileRecord(sha256=sha("tokenizer"), size_bytes=2_104_556),
    }
    making = Making(
        quantizer="llmcompressor", options={"scheme": PRECISION[name], "ignore": ["lm_head"]},
        packages={"llmcompressor": "0.14.0.1", "torch": "2.13.0"}, wall_s=141.2, peak_memory_bytes=1_912_000_000,
        calibration={"sha256": sha("calibration"), "num_samples": 64, "num_tokens": 16_384},
    )  # fmt: skip
    return Checkpoint(
        name=name, path=f"/models/{name}", precision=PRECISION[name], files=files, num_parameters=134_515_008,
        weight_bytes=WEIGHT_BYTES[name], making=None if name == "baseline" else making,
    )  # fmt: skip


def run(num_pairs: int = 80) -> Run:
    facts = EngineFacts(
        engine="transformers", version="5.17.0", device="Intel Xeon Platinum 8488C", dtype="float16",
        kernels={"attention": "sdpa"}, packages={"torch": "2.13.0+cpu", "transformers": "5.17.0"}, start_s=4.2,
        notes=("eager attention on a CPU",),
    )  # fmt: skip
    arms = tuple(
        ArmRecord(
            step="generate", variant=name, evalset=evalset, profile="warm", key=sha(name + evalset), cached=False,
            num_answers=num_pairs // 3, num_by_status={"ok": num_pairs // 3}, completion_tokens=50_000, wall_s=61.0,
        )
        for name in PRECISION
        for evalset in SETS
    )  # fmt: skip
    return Run(
        run_id=RUN_ID, qgate_version="0.1.0", started_at="2026-11-29T12:00:00+00:00",
        finished_at="2026-11-29T12:11:40+00:00", recipe_name="smollm2-demo", recipe_sha256=sha("recipe"),
        host={"platform": "Linux-6.1", "cpu": "Intel Xeon Platinum 8488C", "cores": 2, "memory_bytes": 25_000_000_000},
        evalsets={f"{name}@1": sha(name) for name in SETS}, checkpoints={name: _checkpoint(name) for name in PRECISION},
        engine_facts=dict.fromkeys(PRECISION, facts), arms=arms,
        timings_s={"quantize": 301.5, "generate": 388.1, "judge": 1.9},
        failures={"fp8": "the worker ended with exit code 1: this CPU has no FP8 product"},
    )  # fmt: skip


def recipe() -> Recipe:
    criteria = [{"metric": "score_loss", "margin": 0.02}, {"metric": "defect_increase", "margin": 0.01}]
    tier = {"default": "w8a8", "allow": ["w8a8", "awq", "gptq"], "criteria": criteria, "engines": ["transformers"]}
    return Recipe.model_validate(
        {
            "qgate": 1,
            "name": "smollm2-demo",
            "description": "SmolLM2-135M-Instruct for four interfaces",
            "model": {"hub": "HuggingFaceTB/SmolLM2-135M-Instruct", "revision": "main"},
            "variants": {name: {"quantizer": "llmcompressor", "options": {"scheme": name}} for name in DAMAGE},
            "evalsets": [{"name": f"{name}@1"} for name in SETS],
            "sampling": {
                "greedy": {"temperature": 0.0, "max_tokens": 256, "seeds": [0]},
                "warm": {"temperature": 0.8, "top_p": 0.95, "max_tokens": 256, "seeds": [0, 1, 2, 3, 4]},
            },
            "tiers": {
                "public-chat": tier,
                "evaluation-api": {"default": "baseline", "allow": ["baseline"]},
            },
        }
    )
