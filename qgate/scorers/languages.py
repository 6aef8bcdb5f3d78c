"""Text → which language it is written in, by script and, among Latin scripts, by function words. Pure.

Deterministic on purpose: statistical detectors flip on short answers, and a flip would read as a quantization loss.
"""

from __future__ import annotations

import re

from qgate.scorers.text import primary

_HAN = "\u3005-\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
_KANA = "\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"
_LATIN = "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u024f\u1e00-\u1eff\uff21-\uff3a\uff41-\uff5a"
_SCRIPTS = {
    "zh": re.compile(f"[{_HAN}]"),
    "ja": re.compile(f"[{_HAN}{_KANA}]"),
    "ar": re.compile("[\u0600-\u06ff\u0750-\u077f\ufb50-\ufdff\ufe70-\ufefc]"),
    "ru": re.compile("[\u0400-\u04ff]"),
    "th": re.compile("[\u0e00-\u0e7f]"),
    "ko": re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]"),
}
_LATIN_SCRIPT = re.compile(f"[{_LATIN}]")
_KANA_ONLY = re.compile(f"[{_KANA}]")
_FUNCTION_WORDS = {
    "en": "the of and to in is that it for was on with as his they at be this have from or by not but what all were we when your can there an which their if will each about how up out them then she many some so these would into has more her two like him see could no than been its who now did get may must are he i you do",  # noqa: E501
    "es": "el la los las de del que y en un una es por con para no se lo su al como más pero sus le ya o fue este ha sí porque esta son entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante uno ni contra ese eso mí qué está cada era muy tiene",  # noqa: E501
    "fr": "le la les de des du que et en un une est pour qui dans ce il ne se au aux avec sur pas par plus son sa ses mais nous vous ils elle être cette ou leur sont était",  # noqa: E501
    "de": "der die das und ist nicht ein eine zu den von mit sich des auf für im dem auch als es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über so",  # noqa: E501
    "it": "il lo la gli le di che e un una è per con non si del della dei nel alla sono come più ma anche da al suo sua questo questa era",  # noqa: E501
    "pt": "o a os as de do da dos das que e em um uma é por com para não se no na ao mais como mas foi ele ela seu sua ou ser quando muito está também",  # noqa: E501
}
_WORDS_BY_LANGUAGE = {name: frozenset(words.split()) for name, words in _FUNCTION_WORDS.items()}
_ENOUGH = 0.6


def script_share(text: str, language: str) -> float:
    """Share of the letters of `text` that belong to the script of `language`; 0 where there are no letters."""
    num_letters = sum(ch.isalpha() for ch in text)
    script = _SCRIPTS.get(primary(language), _LATIN_SCRIPT)
    return sum(ch.isalpha() and script.match(ch) is not None for ch in text) / num_letters if num_letters else 0.0


def is_language(text: str, language: str) -> bool:
    """Whether `text` is written in `language`: a tag of zh, ja, ko, ar, ru, th, en, es, fr, de, it, pt."""
    lang = primary(language)
    if script_share(text, lang) < _ENOUGH:
        return False
    if lang in {"zh", "ja"}:
        kana = len(_KANA_ONLY.findall(text))
        return kana == 0 if lang == "zh" else kana > 0
    return lang in _SCRIPTS or _has_words_of(text, lang)


def known(language: str) -> bool:
    """Whether `is_language` can tell this language."""
    return primary(language) in _SCRIPTS or primary(language) in _WORDS_BY_LANGUAGE


def _has_words_of(text: str, lang: str) -> bool:
    """No other language has more of its function words here; in eight words or more, some must be there."""
    spoken = [word.casefold() for word in re.findall(r"[^\W\d_]+", text)]
    hits = {name: sum(word in table for word in spoken) for name, table in _WORDS_BY_LANGUAGE.items()}
    return hits.get(lang, 0) == max(hits.values()) and (hits[lang] > 0 or len(spoken) < 8)
