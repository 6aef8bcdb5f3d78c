"""Which language a text in Latin letters is in, by its small words: text in, language and switch out. Pure.

Only words that one of the languages has for itself vote, so that a name or a quotation of a few words moves nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

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
    "nl": "het een van is dat niet zijn voor met aan ook maar worden naar uit wordt deze je hij kunnen moet nog over"
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
_WORD = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]+(?:'[A-Za-zÀ-ɏ]+)?")
_INSTRUCTION = re.compile(
    r"\b(?:summar|answer|translat|explain|write|what|which|who|how|list|the|give|extract|find)", re.I
)
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
READ_CHARS = 20_000
PROSE_WORDS, GRAMMAR, NO_GRAMMAR = 35, 0.33, 0.12
"""Words that show whether there is grammar; share of small words in prose, and in what is none."""
_SMALL_WORDS = (
    "a an the and or but if of in on at to for from with by as is are was were be been being am has have had do does did"
    " will would can could should may might must i you he she it we they me him her us them my your his its our their"
    " this that these those there here what which who when where how why not no so than then too very just about into"
    " over after before up out more most some any all each other such only also"
)
_SMALL = frozenset(_SMALL_WORDS.split())
_LISTED = re.compile(r"[0-9,;:|{}()\[\]<>=_/\\#*\"]")


def _readable(text: str) -> str:
    """The first 20,000 characters in lower case, code blanked out."""
    text = text[:READ_CHARS].lower()
    return _CODE.sub(lambda match: " " * len(match.group()), text) if "`" in text else text


def votes(text: str) -> list[str]:
    """The language of each voting word."""
    get = _VOTE.get
    return [code for word in _WORD.findall(_readable(text)) if (code := get(word)) is not None]


def _placed_votes(text: str) -> list[tuple[int, str]]:
    """(offset, language) of each voting word."""
    get = _VOTE.get
    return [(word.start(), code) for word in _WORD.finditer(_readable(text)) if (code := get(word.group())) is not None]


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
    return len(set(_WORD.findall(text[first : last + 1].lower())) & _OWN[other]) >= DISTINCT


def _home(seen: Seen, wishes: Asked) -> set[str | None]:
    """Languages that prompt, baseline or the set expect; empty where none of them is known."""
    known: set[str | None] = set()
    if wishes.known:
        known.add(language(wishes.text))
    if seen.language in _VOTERS:
        known.add(seen.language)
    if seen.reference is not None and seen.reference.text:
        known.add(language(seen.reference.text))
    return known - {None}


def answers_in_english(seen: Seen, wishes: Asked) -> bool:
    """Whether a prompt without a word of English, in another script, is answered in English sentences alone."""
    total = sum(wishes.weights.values())
    if total < LEAST_WEIGHT or wishes.weights.get("Latin", 0.0) > 0.2 * total or wishes.languages:
        return False
    text = seen.text or ""
    if (
        not is_plain(text)
        or _INSTRUCTION.search(wishes.text)
        or ((seen.language or "en")[:2] in _VOTERS and seen.language)
    ):
        return False
    cast = votes(text)
    return _leader(cast) == "en" and len(cast) >= WINDOW and len(cast) >= 0.15 * len(_WORD.findall(text))


def falls_apart(seen: Seen) -> bool:
    """Whether the answer has words of English but none of its grammar, where the baseline's answer is English prose.

    Small words are 40 to 55 % of English prose. Lists, code and tables have few too, so these are left out.
    """
    if seen.reference is None or not seen.reference.text or not seen.text:
        return False
    words = _WORD.findall(seen.text[:READ_CHARS].lower())
    if len(words) < PROSE_WORDS or _small_words(words) >= NO_GRAMMAR:
        return False
    lines = 1 + seen.text.strip().count("\n")
    listed = _LISTED.findall(seen.text[:READ_CHARS])
    if len(listed) > len(words) / 4 or len(words) < 4 * lines:
        return False
    theirs = _WORD.findall(seen.reference.text[:READ_CHARS].lower())
    return len(theirs) >= PROSE_WORDS and _small_words(theirs) >= GRAMMAR


def _small_words(words: list[str]) -> float:
    return sum(word in _SMALL for word in words) / len(words)
