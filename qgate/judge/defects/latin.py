"""Which language a text in Latin letters is in, by its small words: text in, language and switch out. Pure.

Only words that one of the languages has for itself vote, so that a name or a quotation of a few words moves nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

from qgate.judge.defects import scripts
from qgate.judge.defects.asked import Asked
from qgate.judge.defects.mentions import ANY
from qgate.judge.defects.scripts import is_plain
from qgate.judge.defects.seen import Seen

_VOTERS = {
    "en": "the and are were with that this which from have has had been would they their there you your its our if then"
          " when what how can should could by who about into these those because each while where than",
    "fr": "les est dans une pour avec sont vous nous cette ses aux ont leurs être après avant où très donc aussi leur"
          " ces c'est n'est qu'il d'une d'un l'on votre notre",
    "de": "der und ist nicht mit ein eine auf für dem sich auch sind wird von zu wie oder wenn aber nach bei einer"
          " einen über kann haben werden nur wir sie ihr ich durch",
    "es": "el los las su como más pero sus muy está hay cuando desde también fue hasta puede donde usted nosotros qué"
          " del lo",
    "it": "il che è gli della sono nel alla più anche questo questa ha dei delle nella dal perché ma essere molto"
          " quando dalla degli loro ogni così",
    "pt": "uma não foi são ao pela pelo também até você isso ele ela seu sua muito depois à às nos já",
    "nl": "het een van dat niet zijn voor met aan ook maar worden naar uit wordt deze je hij kunnen moet nog"
          " hebben wij geen",
    "pl": "się że jest jak przez dla czy ich może oraz tym które był jego są także",
    "sv": "och att det som är på för inte av till från vid ska eller ett jag också",
    "tr": "ve bir bu için çok olarak daha olan gibi kadar sonra ancak değil olduğu tarafından",
    "id": "yang untuk dengan ini itu dari pada adalah tidak akan dalam oleh juga atau saya anda bisa dapat",
    "vi": "và của là có không được cho một các những trong này với để người khi đã từ đến cũng như",
}  # fmt: skip
_SHARED = {
    word for word in {word for words in _VOTERS.values() for word in words.split()}
    if sum(word in words.split() for words in _VOTERS.values()) > 1
}  # fmt: skip
_VOTE = {word: code for code, words in _VOTERS.items() for word in words.split() if word not in _SHARED}
_OWN = {code: {word for word, of in _VOTE.items() if of == code} for code in _VOTERS}
_QUESTIONS = {
    "en": "when what which who why how where", "fr": "quand quel quelle quels quelles pourquoi combien où",
    "de": "wann warum welche welcher welches wer", "es": "cuándo cuál cuáles cómo quién dónde cuánto qué",
    "it": "dove quale quali cosa perché chi", "pt": "onde qual quais quem", "nl": "wanneer waarom welke hoe wat",
    "pl": "kiedy gdzie dlaczego ile kto jaki", "sv": "hur vad när varför vilken", "tr": "nasıl neden nerede hangi kaç",
    "id": "apa bagaimana kapan mengapa berapa siapa", "vi": "gì nào sao mấy",
}  # fmt: skip
_QUESTION = {word: code for code, words in _QUESTIONS.items() for word in words.split()}
WORD = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]+(?:'[A-Za-zÀ-ɏ]+)?")
_INSTRUCTION = re.compile(
    r"\b(?:summar|answer|translat|explain|write|what|which|who|how|list|the|give|extract|find)", re.I
)
_INTRODUCES = frozenset(":：\"'“‘「『《（(>`")
LEAST_WEIGHT = 20
"""Letters of a prompt that show which language it is in."""
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

LEAST_VOTES = 3
"""Votes that name a language at all."""
WINDOW, NEEDED = 10, 9
"""So many of so many votes in a row for another language make a switch,"""
DISTINCT = 4
"""So many different ones must be among them,"""
WINDOW_CHARS = 500
"""where they stand as close together as in sentences."""
ENGLISH_VOTES = 8
"""Votes that make English of a text, where the prompt has not a word of it."""
READ_CHARS = 20_000


def _readable(text: str) -> str:
    """The first 20,000 characters in lower case, code blanked out."""
    text = text[:READ_CHARS].lower()
    return _CODE.sub(lambda match: " " * len(match.group()), text) if "`" in text else text


def votes(text: str) -> list[str]:
    """The language of each voting word."""
    get = _VOTE.get
    return [code for word in WORD.findall(_readable(text)) if (code := get(word)) is not None]


def _placed_votes(text: str) -> list[tuple[int, str]]:
    """(offset, language) of each voting word."""
    get = _VOTE.get
    return [(word.start(), code) for word in WORD.finditer(_readable(text)) if (code := get(word.group())) is not None]


@lru_cache(maxsize=512)
def language(text: str) -> str | None:
    """Code of the language that most voting words of `text` are of, or None where none is clear."""
    return _leader(votes(text))


def _leader(cast: list[str]) -> str | None:
    tally = Counter(cast)
    if not tally:
        return None
    best, num = tally.most_common(1)[0]
    return best if num >= LEAST_VOTES and num >= 0.7 * len(cast) else None


def find_switch(seen: Seen, wishes: Asked) -> tuple[int, str, str] | None:
    """(offset, expected languages, language used) where the answer is, or goes on, in another Latin-script language."""
    text = seen.text or ""
    cast = votes(text)
    if len(cast) < WINDOW or ANY in wishes.languages:
        return None
    expected = _home(seen, wishes) or {_leader(cast[:WINDOW])}
    if None in expected:
        return None
    at_home = expected | wishes.languages
    if sum(code not in at_home for code in cast) < NEEDED:
        return None
    placed = _placed_votes(text)
    for first in range(len(placed) - WINDOW + 1):
        start, other = placed[first]
        if other not in at_home and _is_prose(text, placed[first : first + WINDOW]):
            return start, "/".join(sorted(code for code in expected if code)), other
    return None


def _is_prose(text: str, window: list[tuple[int, str]]) -> bool:
    """Whether the votes are those of sentences in the first one's language: close together, and of many words."""
    first, other = window[0]
    last = window[-1][0]
    if last - first > WINDOW_CHARS or sum(code == other for _, code in window) < NEEDED:
        return False
    return len(set(WORD.findall(text[first : last + 1].lower())) & _OWN[other]) >= DISTINCT


def _home(seen: Seen, wishes: Asked) -> set[str | None]:
    """Languages that prompt, baseline or the set expect; empty where none of them is known."""
    known: set[str | None] = set()
    if wishes.known:
        known.add(language(wishes.text) or _of_question(wishes.text))
    if seen.language in _VOTERS:
        known.add(seen.language)
    if seen.reference is not None and seen.reference.text:
        known.add(language(seen.reference.text))
    return known - {None}


def _of_question(prompt: str) -> str | None:
    """The language of a short question, by its question word alone."""
    asked = {_QUESTION[word] for word in WORD.findall(prompt) if word in _QUESTION} if "?" in prompt else set()
    return asked.pop() if len(asked) == 1 else None


def find_english(seen: Seen, wishes: Asked) -> int | None:
    """Where an answer to a prompt without a word of English, in another script, is English sentences to its end or start."""
    total = sum(wishes.weights.values())
    if total < LEAST_WEIGHT and is_plain(seen.text or ""):
        return None
    if not total or wishes.weights.get("Latin", 0.0) > 0.2 * total or wishes.languages:
        return None
    if _INSTRUCTION.search(wishes.text) or (seen.language or "zz")[:2] in _VOTERS:
        return None
    text = seen.text or ""
    return next((start for start, stop in _stretches(text) if _is_english(text[start:stop])), None)


def _stretches(text: str) -> list[tuple[int, int]]:
    """The whole text, where all of it is Latin, else its Latin stretches that nothing introduces as a quotation."""
    if is_plain(text):
        return [(0, len(text))]
    found = [span for span in scripts.stretches(text) if span.script == "Latin" and span.num_words >= WINDOW]
    return [(span.start, span.stop) for span in found if text[: span.start].rstrip()[-1:] not in _INTRODUCES]


def _is_english(text: str) -> bool:
    cast = votes(text)
    return _leader(cast) == "en" and len(cast) >= ENGLISH_VOTES and len(cast) >= 0.15 * len(WORD.findall(text))
