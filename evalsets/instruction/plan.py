"""Which constraints are asked in which language, alone and together. Data only.

A word with a number is that many topics. Combinations are picked by hand so that they can be kept together.
"""

from __future__ import annotations

KINDS = {
    "count": "words_min words_max words_between words_exact short_sentences sentences bullets numbered lines paragraphs",
    "keywords": "keyword keywords frequency forbid every_sentence letter_max",
    "order": "order first_word",
    "start-end": "start end",
    "case": "upper lower",
    "punctuation": "no_comma exclaim quotes",
    "layout": "title highlights sections placeholders postscript plain each_line two_versions",
    "language": "language",
}
KIND_OF = {name: kind for kind, names in KINDS.items() for name in names.split()}
"""Kind of an item with this one constraint; of two or three: `two-constraints`, `three-constraints`."""

ALONE = {
    "en": (
        "words_min:3 words_max:2 words_between:2 words_exact:2 short_sentences sentences:3 bullets:3 numbered:2 lines:2 "
        "paragraphs:2 keyword:3 keywords:2 frequency:2 forbid:2 every_sentence:2 letter_max order:4 first_word:3 "
        "start:3 end:3 upper:4 lower:4 no_comma:3 exclaim:2 quotes:3 "
        "title:2 highlights sections placeholders postscript:2 plain each_line two_versions"
    ),
    "zh": (
        "words_min:2 words_max words_between words_exact short_sentences sentences bullets:2 numbered lines paragraphs "
        "keyword:2 keywords frequency forbid every_sentence letter_max order:2 first_word:2 start:2 end no_comma:2 exclaim "
        "quotes:2 title highlights sections placeholders postscript plain each_line"
    ),
    "es": "words_min bullets keyword end lower",
    "ru": "sentences keyword start upper no_comma",
    "ja": "words_max bullets keyword no_comma quotes",
    "ar": "words_min numbered keyword start quotes",
    "th": "bullets lines keyword start title",
}
TOGETHER = {
    "en": (
        "words_min+keyword:2 keyword+start:2 bullets+keyword:2 sentences+no_comma bullets+lower sentences+keywords "
        "title+no_comma upper+keyword paragraphs+start numbered+forbid quotes+no_comma words_max+end highlights+sentences "
        "postscript+keyword lower+no_comma order+sentences exclaim+sentences frequency+no_comma "
        "words_exact+start sections+forbid each_line+keyword letter_max+sentences "
        "words_min+forbid+keyword bullets+keyword+no_comma start+end+no_comma title+bullets+keyword "
        "lower+no_comma+sentences paragraphs+start+end order+no_comma+words_between quotes+lower+keyword "
        "upper+exclaim+sentences sections+keyword+forbid numbered+order+no_comma frequency+sentences+end "
        "title+postscript+no_comma words_exact+start+no_comma highlights+paragraphs+keyword each_line+lower+keywords "
        "short_sentences+start+end every_sentence+sentences+exclaim placeholders+start+forbid lines+upper+no_comma"
    ),
    "zh": (
        "words_min+keyword bullets+keyword sentences+no_comma title+keyword start+end numbered+forbid quotes+keyword "
        "paragraphs+start words_max+keywords order+sentences exclaim+sentences frequency+no_comma "
        "bullets+keyword+no_comma start+end+no_comma title+bullets+forbid paragraphs+start+end order+no_comma+words_between "
        "frequency+sentences+end words_exact+start+no_comma every_sentence+sentences+exclaim sections+keyword+forbid "
        "title+postscript+keyword"
    ),
    "es": "bullets+keyword sentences+no_comma start+end+no_comma",
    "ru": "bullets+keyword sentences+lower start+end+no_comma",
    "ja": "bullets+keyword sentences+no_comma start+end+no_comma",
    "ar": "bullets+keyword sentences+no_comma start+end+no_comma",
    "th": "bullets+keyword title+keyword lines+keyword+forbid",
}
DIALOGUES = {
    "en": (
        "2:lower 2:start 2:end 2:bullets 2:no_comma 2:quotes 2:postscript 3:sentences 3:upper 3:start+end 3:each_line "
        "3:bullets+lower 4:exclaim 4:title+no_comma 4:lower+no_comma+sentences"
    ),
    "zh": "2:start 2:quotes 2:bullets 3:end 3:no_comma 3:title+sentences 4:exclaim+sentences",
    "es": "2:lower 3:start+end",
    "ru": "2:start 3:no_comma+sentences",
    "ja": "2:end 3:bullets+no_comma",
    "ar": "2:start 3:sentences+no_comma",
    "th": "2:start 3:bullets+no_comma",
}
"""Turns of the user, and the rule."""

SYSTEMS = {
    "en": (
        "start bullets lower no_comma sentences quotes end postscript upper plain+start title+no_comma sentences+exclaim "
        "start+end+no_comma lower+sentences+no_comma bullets+upper"
    ),
    "zh": "start bullets no_comma quotes postscript sentences+exclaim title+no_comma start+end+no_comma",
    "es": "upper bullets+no_comma",
    "ru": "quotes sentences+exclaim",
    "ja": "start sentences+exclaim",
    "ar": "end bullets+no_comma",
    "th": "postscript quotes",
}
"""Rules in the system prompt."""


CROSSED = {"en": "zh:2 ja:2 ar:2 ru:2 es:2 th:2", "zh": "en:4"}
"""Language of the prompt to languages of the answer, with the number of topics."""


def entries(line: str) -> list[tuple[tuple[str, ...], int]]:
    """`a:2 a+b` → [(("a",), 2), (("a", "b"), 1)]."""
    parsed = [entry.partition(":") for entry in line.split()]
    return [(tuple(names.split("+")), int(times or 1)) for names, _, times in parsed]
