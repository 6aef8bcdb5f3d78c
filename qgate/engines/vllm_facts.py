"""What decided the bytes of a vLLM session: a ready server in, EngineFacts out, and what its counters add. Reads only."""

from __future__ import annotations

from contextlib import suppress

import orjson

from qgate.engines import vllm_log
from qgate.engines.vllm_machine import Machine
from qgate.errors import EngineError
from qgate.io.client import Client
from qgate.io.server import Server
from qgate.ports import ServeJob
from qgate.schemas.answers import EngineFacts

REPEATABLE_NOTE = (
    "batch-invariant kernels: answers repeat whatever the load, but some kernels are swapped for others, so these "
    "numbers cannot clear a fault of the kernels that production uses"
)
CPU_NOTE = "vLLM's CPU build: its kernels are not those of a production GPU"


def at_start(job: ServeJob, server: Server, client: Client, machine: Machine) -> EngineFacts:
    """The facts of a server that is ready."""
    logged = server.logged()
    notes = [REPEATABLE_NOTE] if job.repeatable else []
    notes += [] if machine.gpus else [CPU_NOTE]
    notes += [f"{name} of the caller was not passed on: name it in engine.options.env" for name in server.launch.drop]
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
        notes=tuple(notes),
        start_s=server.start_s,
        details=vllm_log.numbers(logged) | {"num_gpus": len(machine.gpus), "concurrency": job.concurrency},
    )


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
