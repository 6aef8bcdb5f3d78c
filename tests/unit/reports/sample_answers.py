"""The answers of the sample: requests, and rows with planted defects in several scripts."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from qgate.schemas.answers import GenerateRequest, Sampling
from qgate.schemas.evalset import Message
from qgate.schemas.evidence import DefectHit, Row
from tests.unit.reports.sample_run import DAMAGE, PROFILES, SETS, TEXTS


@dataclass(frozen=True)
class Place:
    evalset: str
    item: str
    profile: str
    seed: int
    index: int

    @property
    def id(self) -> str:
        return f"{self.evalset}/{self.item}/{self.profile}/{self.seed}"


def places(count: int) -> list[Place]:
    names = list(SETS)
    places = []
    for index in range(count):
        profile = list(PROFILES)[index % 2]
        item = f"{SETS[names[index % 3]][0]}-{index // 2:05d}"
        places.append(Place(names[index % 3], item, profile, index % 5 if profile == "warm" else 0, index))
    return places


def _language(place: Place) -> str:
    return list(TEXTS)[(place.index // 2) % len(TEXTS)]


def request(place: Place) -> GenerateRequest:
    sampling = Sampling(
        temperature=PROFILES[place.profile],
        top_p=0.95,
        top_k=-1,
        min_p=0.0,
        repetition_penalty=1.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
        max_tokens=256,
        seed=place.seed,
    )
    prompt = f"It's item {place.item}: when does the parcel arrive? " + TEXTS[_language(place)]
    system = Message(role="system", content="You answer briefly.")
    return GenerateRequest(id=place.id, messages=(system, Message(role="user", content=prompt)), sampling=sampling)


def rows(places: list[Place], dice: random.Random) -> tuple[Row, ...]:
    found = []
    for place in places:
        reference = _reference(place, dice)
        again = replace(reference, replicate=1, identical=True, similarity=1.0, latency_s=1.3)
        found += [reference, again, *(_answer(reference, name, dice) for name in DAMAGE)]
    return tuple(found)


def _reference(place: Place, dice: random.Random) -> Row:
    kinds = SETS[place.evalset]
    language = _language(place)
    words = f"Item {place.index}. " + " ".join([TEXTS[language]] * dice.randint(3, 9))
    return Row(
        variant="baseline",
        replicate=0,
        evalset=place.evalset,
        item=place.item,
        profile=place.profile,
        seed=place.seed,
        temperature=PROFILES[place.profile],
        kind=kinds[place.index % 2],
        language=language,
        difficulty=1 + place.index % 5,
        slices={kinds[2]: kinds[3][place.index % 3]},
        status="ok",
        finish_reason="stop",
        score=float(dice.random() < 0.7),
        defects=(),
        text=words,
        prompt_tokens=120 + place.index % 900,
        completion_tokens=len(words) // 4,
        identical=None,
        first_divergence=None,
        similarity=None,
        latency_s=1.0 + dice.random(),
    )


def _answer(reference: Row, variant: str, dice: random.Random) -> Row:
    text = reference.text or ""
    if dice.random() > 3 * DAMAGE[variant] + 0.2:
        return replace(reference, variant=variant, identical=True, similarity=1.0)
    cut = dice.randint(10, max(11, len(text) - 20))
    base = replace(reference, variant=variant, identical=False, first_divergence=cut // 4, similarity=cut / len(text))
    if dice.random() > DAMAGE[variant]:
        other = text[:cut] + " about midday, if the weather holds." + text[cut + 12 :]
        return replace(base, text=other, score=reference.score)
    return _broken(base, text, cut, dice)


def _broken(base: Row, text: str, cut: int, dice: random.Random) -> Row:
    name = dice.choice(["repetition_loop", "token_salad", "mojibake", "empty", "error"])
    if name == "empty":
        return replace(base, text="", score=0.0, defects=(DefectHit("empty"),), completion_tokens=1)
    if name == "error":
        return replace(base, text=None, score=None, status="error", finish_reason=None, completion_tokens=None)
    tail = {
        "repetition_loop": " Please keep the receipt." * 24,
        "token_salad": " หน่วย BuilderFactory 以及其 первым lanternish_ptr )): ضبط 朝",
        "mojibake": " le cafÃ© est fermÃ© \ufffd\ufffd",
    }[name]
    hit = DefectHit(name, cut, "24 repeats of 'Please keep the receipt.'" if name == "repetition_loop" else "")
    finish = "length" if name == "repetition_loop" else "stop"
    return replace(base, text=text[:cut] + tail, score=0.0, defects=(hit,), finish_reason=finish)
