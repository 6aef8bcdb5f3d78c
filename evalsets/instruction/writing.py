"""Writing tasks with constraints: alone, in twos and threes, as a rule of the dialogue, as the system prompt. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dice import Dice
from scene import Scene
from wish import Params
from wishes import WISHES


@dataclass(frozen=True)
class Draft:
    """An item before it is written, and an answer that keeps all of it."""

    id: str
    kind: str
    language: str
    difficulty: int
    messages: tuple[tuple[str, str], ...]
    checks: list[tuple[str, Params]]
    reference: str
    slices: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """Constraints drawn, worded and met."""

    wordings: list[str]
    checks: list[tuple[str, Params]]
    reference: str
    params: list[Params]


def difficulty(names: tuple[str, ...]) -> int:
    """Of constraints together: the hardest one's, and one more for each further that is not trivial; at most 5."""
    levels = sorted((WISHES[name].difficulty for name in names), reverse=True)
    return min(5, levels[0] + sum(level >= 2 for level in levels[1:]))


def scene_of(language: str, texts: dict[str, Any], topic: dict[str, Any], dice: Dice) -> Scene:
    """A scene with nothing asked of it."""
    return Scene(language=language, texts=texts, topic=topic, dice=dice)


def meet(scene: Scene, names: tuple[str, ...], given: list[Params] | None = None) -> Task:
    """Draw the wishes (or take them as `given`), shape the scene by them, render, then draw the late ones."""
    early = [{} if WISHES[name].late else WISHES[name].draw(scene) for name in names] if given is None else given
    for name, params in zip(names, early, strict=True):
        WISHES[name].shape(scene, params)
    reference = scene.render()
    drawn = [
        late(scene, reference) if given is None and (late := WISHES[name].late) else params
        for name, params in zip(names, early, strict=True)
    ]
    wordings = [
        scene.dice.pick(scene.texts["wishes"][name]).format(**params) for name, params in zip(names, drawn, strict=True)
    ]
    checks = [
        check
        for name, params in zip(names, drawn, strict=True)
        for check in WISHES[name].checks(params, scene.language)
    ]
    return Task(wordings, checks, reference, drawn)


def sentence_join(language: str, parts: list[str]) -> str:
    """Sentences of a prompt in a row."""
    return ("" if language in ("zh", "ja") else " ").join(part for part in parts if part)


def asked(scene: Scene, task: str, wordings: list[str]) -> str:
    """The task and its constraints as one prompt: in a row, or as a list where there are several."""
    if len(wordings) >= 2 and scene.dice.chance(0.5):
        points = "\n".join(f"- {wording}" for wording in wordings)
        return f"{task}\n\n{scene.texts['fields']['requirements']}\n{points}"
    return sentence_join(scene.language, [task, *wordings])


def single(language: str, texts: dict[str, Any], names: tuple[str, ...], topic: dict[str, Any], kind: str) -> Draft:
    """One prompt with one, two or three constraints."""
    name = "+".join(names).replace("_", "-")
    item = f"{language}-{name}-{topic['id']}"
    scene = scene_of(language, texts, topic, Dice(f"instruction/{item}"))
    prompt = scene.dice.pick(topic["tasks"])
    task = meet(scene, names)
    messages = (("user", asked(scene, prompt, task.wordings)),)
    slices = {"constraints": str(len(names))}
    return Draft(item, kind, language, difficulty(names), messages, task.checks, task.reference, slices)


def dialogue(language: str, texts: dict[str, Any], names: tuple[str, ...], num_turns: int) -> Draft:
    """A rule given in the first turn, kept in the assistant's fixed turns, to be kept in the last."""
    item = f"{language}-turns{num_turns}-{'+'.join(names).replace('_', '-')}"
    dice, said = Dice(f"instruction/{item}"), texts["dialogue"]
    topics = dice.several(texts["topics"], num_turns)
    first = meet(scene_of(language, texts, topics[0], dice), names)
    rule = dice.pick(said["rule"]).format(rule=sentence_join(language, first.wordings))
    messages: list[tuple[str, str]] = []
    task = first
    for at, topic in enumerate(topics):
        scene = scene_of(language, texts, topic, dice)
        task = first if at == 0 else meet(scene, names, first.params)
        prompt = dice.pick(said["first" if at == 0 else "next"]).format(task=dice.pick(topic["tasks"]))
        messages.append(("user", sentence_join(language, [rule, prompt]) if at == 0 else prompt))
        if at < num_turns - 1:
            messages.append(("assistant", task.reference))
    level = min(5, difficulty(names) + (num_turns > 2))
    slices = {"constraints": str(len(names)), "turns": str(num_turns)}
    return Draft(item, "multi-turn", language, level, tuple(messages), task.checks, task.reference, slices)


def system(language: str, texts: dict[str, Any], names: tuple[str, ...], topic: dict[str, Any]) -> Draft:
    """Rules in the system prompt, a plain request from the user."""
    item = f"{language}-system-{'+'.join(names).replace('_', '-')}-{topic['id']}"
    dice = Dice(f"instruction/{item}")
    task = meet(scene_of(language, texts, topic, dice), names)
    rules = dice.pick(texts["dialogue"]["system"]).format(rules=sentence_join(language, task.wordings))
    prompt = dice.pick(topic["tasks"])
    if dice.chance(0.4):
        prompt = sentence_join(language, [dice.pick(texts["dialogue"]["chatter"]), prompt])
    slices = {"constraints": str(len(names))}
    messages = (("system", rules), ("user", prompt))
    return Draft(item, "system-rule", language, difficulty(names), messages, task.checks, task.reference, slices)


def crossed(texts: dict[str, Any], language: str, answered: dict[str, Any], topic: dict[str, Any]) -> Draft:
    """A prompt in one language (`texts`) that asks for the answer in another (`answered`, `topic`)."""
    item = f"{language}-asked-in-{texts['language']}-{topic['id']}"
    dice = Dice(f"instruction/{item}")
    task = meet(scene_of(language, answered, topic, dice), ("language",))
    same = next(one for one in texts["topics"] if one["id"] == topic["id"])
    prompt = sentence_join(texts["language"], [dice.pick(same["tasks"]), texts["answer_in"][language]])
    return Draft(item, "language", language, 2, (("user", prompt),), task.checks, task.reference, {"constraints": "1"})
