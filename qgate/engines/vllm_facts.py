"""What decided the bytes of a vLLM session: a ready server in, EngineFacts out, and what its counters add. Reads only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import orjson

from qgate.engines import vllm_log, vllm_size
from qgate.engines.vllm_machine import Machine
from qgate.engines.vllm_options import VllmOptions
from qgate.errors import EngineError
from qgate.io.client import Client
from qgate.io.server import Server
from qgate.ports import ServeJob
from qgate.schemas.answers import EngineFacts
from qgate.sizing.ledger import GIB, Ledger

REPEATABLE_NOTE = (
    "batch-invariant kernels: answers repeat whatever the load, but some kernels are swapped for others, so these "
    "numbers cannot clear a fault of the kernels that production uses"
)
CPU_NOTE = "vLLM's CPU build: its kernels are not those of a production GPU"


@dataclass(frozen=True)
class Setting:
    """What a server was started with."""

    job: ServeJob
    options: VllmOptions
    machine: Machine
    ledger: Ledger | None
    """What it should take; None where that cannot be told."""


def at_start(setting: Setting, server: Server, client: Client) -> EngineFacts:
    """The facts of a server that is ready."""
    job, machine, logged = setting.job, setting.machine, server.logged()
    said = vllm_log.numbers(logged)
    return EngineFacts(
        engine="vllm",
        version=_version(client) or machine.version,
        device=machine.device,
        driver=machine.gpu["driver_version"] if machine.gpu else None,
        dtype=job.dtype,
        kernels=vllm_log.kernels(logged),
        argv=_shown(job, server),
        env_vars=dict(server.launch.env),
        packages=machine.packages,
        notes=(*_notes(setting, server), *_sizes(setting, said)),
        start_s=server.start_s,
        details=said | _conditions(setting, logged),
    )


def _notes(setting: Setting, server: Server) -> Iterator[str]:
    if setting.job.repeatable:
        yield REPEATABLE_NOTE
    if not setting.machine.gpus:
        yield CPU_NOTE
    yield from (f"{name} of the caller was not passed on: name it in engine.options.env" for name in server.launch.drop)


def _sizes(setting: Setting, said: Mapping[str, float]) -> tuple[str, ...]:
    """What the server reports otherwise than the ledger; a CPU build's memory is not the ledger's."""
    if setting.ledger is None or not setting.machine.gpus:
        return ()
    return vllm_size.notes(setting.ledger, setting.job, setting.options, said)


def _conditions(setting: Setting, logged: str) -> dict[str, Any]:
    """What else decides bytes or memory, and is not in the server's log."""
    job, options = setting.job, setting.options
    found: dict[str, Any] = {
        "num_gpus": len(setting.machine.gpus),
        "concurrency": job.concurrency,
        "batch_invariant": job.repeatable,
        "prefix_caching": vllm_log.prefix_caching(logged),
        "counts_nans": options.count_nans,
    }
    if setting.ledger is not None:
        found["ledger_gib"] = setting.ledger.in_gib()
    if job.berth is not None:
        found["berth"] = {"devices": list(job.berth.devices), "gib": round(job.berth.size_bytes / GIB, 3)}
    return found


def with_counters(facts: EngineFacts, counters: dict[str, float], usage_peak: float) -> EngineFacts:
    """The facts with the server's latest counters, and what a reader must know of these."""
    details = {**facts.details, **counters, "kv_cache_usage_peak": usage_peak}
    lasting = tuple(note for note in facts.notes if note not in vllm_log.notes(facts.details))
    return facts.model_copy(update={"details": details, "notes": lasting + vllm_log.notes(counters)})


def _shown(job: ServeJob, server: Server) -> tuple[str, ...]:
    """The command as a reader needs it: without this machine's folders and the port of the day."""
    names = {str(job.tool.python): "python", str(job.checkpoint): "<checkpoint>", str(server.port): "<port>"}
    return tuple(names.get(word, word) for word in server.argv)


def _version(client: Client) -> str | None:
    with suppress(EngineError, orjson.JSONDecodeError, KeyError):
        return str(orjson.loads(client.get("/version")[1])["version"])
    return None
