"""A prepared recipe in, what a run would find stored and what it would have to do out. Reads disk; makes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from qgate.io import tensors
from qgate.io.answer_log import num_whole
from qgate.keys import generate_key, rank_key, score_key
from qgate.plan import GenerateStep, RankStep, ScoreStep
from qgate.rooms.again import last_key, to_ask_again
from qgate.rooms.obtain import obtain_model, obtain_ready
from qgate.rooms.precheck import precheck, quantized_layers, result_bytes
from qgate.rooms.prepare import Prepared
from qgate.rooms.tasks import find_tasks
from qgate.rooms.variants import baseline_key, job_of, tool_of, variant_key
from qgate.rooms.work import ArmKey, key_of
from qgate.schemas.checkpoint import Checkpoint
from qgate.schemas.recipe import BASELINE
from qgate.schemas.variant import GgufSource


@dataclass(frozen=True)
class Line:
    """One step and its state: `stored`, `to do`, `12 of 80 stored`, or `needs …`, `later` where its key is not known yet."""

    kind: str
    label: str
    state: str
    size: str


def outlook(prepared: Prepared) -> tuple[Line, ...]:
    """Every step of a run. Raises what a run would refuse before any work."""
    checkpoints = list(_checkpoints(prepared))
    known = {name: found for name, found, _ in checkpoints if found is not None}
    made = tuple(line for _, _, line in checkpoints)
    if BASELINE in known:
        prepared = find_tasks(prepared, known[BASELINE])
    keys: dict[ArmKey, str] = {}
    asked = (*_generate(prepared, known, keys), *_given(prepared, known))
    return (*made, *_tasks(prepared), *asked, *_score(prepared, known, keys))


def _tasks(prepared: Prepared) -> Iterator[Line]:
    """What lm-eval asks is known once it was asked with the baseline's tokenizer."""
    found = prepared.tasks
    for use in prepared.loaded.recipe.evalsets:
        if use.lm_eval is None:
            continue
        if use.name in found:
            yield Line("tasks", use.name, "stored", f"{len(found[use.name].evalset.items)} documents")
        else:
            yield Line("tasks", use.name, "to build with lm-eval; its steps are known then", "")


def _given(prepared: Prepared, known: Mapping[str, Checkpoint]) -> Iterator[Line]:
    for step in prepared.plan.given:
        size = f"{len(step.requests)} {'options' if step.kind == 'rank' else 'answers'}"
        if step.variant not in known:
            yield Line(step.kind, step.label, f"needs {step.variant}", size)
            continue
        key = rank_key(step, known[step.variant].digest, prepared.identity(step.variant, _concurrency(prepared, step)))
        state = "to do" if prepared.store.find("token_scores", key) is None else "stored"
        yield Line(step.kind, step.label, state, size)


def _checkpoints(prepared: Prepared) -> Iterator[tuple[str, Checkpoint | None, Line]]:
    model = prepared.loaded.recipe.model
    if isinstance(model, GgufSource):
        baseline = prepared.shelf.find(BASELINE, baseline_key(prepared))
        state = "to unpack from GGUF" if baseline is None else "stored"
    else:
        baseline, state = obtain_model(model, BASELINE), "at hand"
    yield BASELINE, baseline, _checkpoint_line(BASELINE, baseline, state)
    for name in prepared.loaded.recipe.variants:
        yield _variant(prepared, name, baseline)


def _variant(prepared: Prepared, name: str, baseline: Checkpoint | None) -> tuple[str, Checkpoint | None, Line]:
    variant = prepared.loaded.recipe.variants[name]
    if variant.checkpoint is not None and not isinstance(variant.checkpoint, GgufSource):
        ready = obtain_ready(variant.checkpoint, name, variant.precision)
        return name, ready, _checkpoint_line(name, ready, "at hand")
    if baseline is None:
        tool_of(prepared, variant)  # whether it is there is known all the same
        return name, None, Line("checkpoint", name, "needs the baseline", "")
    job = job_of(prepared, name, baseline)
    precheck(job, prepared.store.root)
    found = prepared.shelf.find(name, variant_key(variant, job))
    if found is not None:
        return name, found, _checkpoint_line(name, found, "stored")
    layers = quantized_layers(tensors.read(baseline.path), job.quantizer.ignored(job.options))
    size = f"~{_megabytes(result_bytes(job, layers))} · {job.quantizer.precision(job.options)}"
    return name, None, Line("checkpoint", f"{name}, by {job.quantizer.name}", "to make", size)


def _checkpoint_line(name: str, checkpoint: Checkpoint | None, state: str) -> Line:
    if checkpoint is None:
        return Line("checkpoint", name, state, "")
    label = f"{name}, {checkpoint.bits_per_weight:.2f} bits a weight"
    return Line("checkpoint", label, state, f"{_megabytes(checkpoint.weight_bytes)} · {checkpoint.precision}")


def _generate(prepared: Prepared, known: Mapping[str, Checkpoint], keys: dict[ArmKey, str]) -> Iterator[Line]:
    for step in prepared.plan.generate:
        size = f"{len(step.requests)} × {max(r.sampling.max_tokens for r in step.requests)} tokens"
        if step.variant not in known:
            yield Line("generate", step.label, f"needs {step.variant}", size)
            continue
        identity = prepared.identity(step.variant, _concurrency(prepared, step))
        key = last_key(prepared.store, generate_key(step, known[step.variant].digest, identity))
        keys[key_of(step)] = key
        yield Line("generate", step.label, _state(prepared, "generations", key, step), size)


def _concurrency(prepared: Prepared, step: GenerateStep | RankStep) -> int:
    recipe = prepared.loaded.recipe
    return (step.variant == BASELINE and step.replicate and recipe.noise_floor.concurrency) or recipe.engine.concurrency


def _state(prepared: Prepared, kind: str, key: str, step: GenerateStep) -> str:
    if (found := prepared.store.find(kind, key)) is not None:
        num_failed = len(to_ask_again(prepared.engine, found))
        return f"{len(step.requests) - num_failed} of {len(step.requests)} stored" if num_failed else "stored"
    done = num_whole(prepared.store.folder(kind, key).with_suffix(".part"))
    return f"{done} of {len(step.requests)} stored" if done else "to do"


def _score(prepared: Prepared, known: Mapping[str, Checkpoint], keys: Mapping[ArmKey, str]) -> Iterator[Line]:
    """One line per checkpoint and whose answers it scores, over all sets and profiles."""
    groups: dict[tuple[str, tuple[str, int], int], list[str]] = {}
    for step in prepared.plan.score:
        source = (*step.source, step.evalset, step.profile)
        state = "to do"
        if step.variant not in known or source not in keys:
            state = "later"
        elif _is_scored(prepared, step, known[step.variant].digest, keys[source]):
            state = "stored"
        groups.setdefault((step.variant, step.source, step.replicate), []).append(state)
    for (variant, source_arm, replicate), states in groups.items():
        again = f" again ({replicate})" if replicate else ""
        whose = f"answers of {source_arm[0]}" + (f" again ({source_arm[1]})" if source_arm[1] else "")
        size = f"{len(states)} passes" if len(states) > 1 else "1 pass"
        yield Line("score", f"{variant}{again}: {whose}", _together(states), size)


def _is_scored(prepared: Prepared, step: ScoreStep, digest: str, source_key: str) -> bool:
    identity = prepared.identity(step.variant, prepared.loaded.recipe.engine.concurrency)
    key = score_key(step, digest, identity, source_key)
    return prepared.store.find("token_scores", key) is not None


def _together(states: list[str]) -> str:
    stored = states.count("stored")
    if stored == len(states):
        return "stored"
    if "later" in states:
        return "later"
    return f"{stored} of {len(states)} stored" if stored else "to do"


def _megabytes(size_bytes: int) -> str:
    return f"{size_bytes / 1e9:.1f} GB" if size_bytes >= 1e9 else f"{size_bytes / 1e6:.0f} MB"
