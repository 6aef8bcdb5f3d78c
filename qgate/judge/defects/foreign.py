"""Letters of scripts that have no business in an answer: text, prompt and baseline in, foreign stretches out. Pure.

At home are Latin (names, code and units are written in it everywhere), the scripts of the prompt, of the baseline's
answer and of the expected language, and those of languages that are named. A gloss in brackets or quotes, a lone Greek
letter of a formula and a face drawn with letters are no fault.
"""

from __future__ import annotations

from dataclasses import dataclass

from qgate.judge.defects import latin, mentions, scripts
from qgate.judge.defects.asked import Asked
from qgate.judge.defects.misread import find_misread
from qgate.judge.defects.scripts import Stretch
from qgate.judge.defects.seen import Seen

OF_LANGUAGE = {
    "zh": ("Han", "Bopomofo"), "ja": ("Han", "Kana"), "ko": ("Hangul",), "ar": ("Arabic",), "fa": ("Arabic",),
    "ur": ("Arabic",), "ru": ("Cyrillic",), "uk": ("Cyrillic",), "bg": ("Cyrillic",), "sr": ("Cyrillic",),
    "he": ("Hebrew",), "el": ("Greek",), "hi": ("Devanagari",), "mr": ("Devanagari",), "ne": ("Devanagari",),
    "th": ("Thai",), "bn": ("Bengali",), "ta": ("Tamil",), "te": ("Telugu",), "kn": ("Kannada",), "ml": ("Malayalam",),
    "gu": ("Gujarati",), "pa": ("Gurmukhi",), "ka": ("Georgian",), "hy": ("Armenian",), "am": ("Ethiopic",),
    "km": ("Khmer",), "lo": ("Lao",), "my": ("Myanmar",), "bo": ("Tibetan",), "si": ("Sinhala",),
}  # fmt: skip
_OPENERS = frozenset("([{\"'“‘«„「『《〈（【*_`‹/")
_QUOTES = frozenset("\"'")
_LABELS = frozenset(":：=–—|,，、;；")
_SPACED = frozenset({"Cyrillic", "Arabic", "Hebrew", "Devanagari", "Armenian", "Georgian"})
_FACE, _FACE_LETTERS, _FACE_CHARS = frozenset("()_°□◕‿•ω゜´^<>\\/¯;*"), 6, 12
_WORD_LETTERS = 4
_NAMED_CHARS, _MANY_NAMES = 8_000, 3
_SENTENCE_END = ".!?。！？:："
_GREEK_WORD, _GLOSS_LETTERS, _FAIR_PART = 5, 40, 0.25


@dataclass(frozen=True, slots=True)
class Foreign:
    """The foreign stretches of an answer that nothing excuses, in order."""

    stretches: tuple[Stretch, ...]
    unspoken: bool
    """Whether the home scripts had to be guessed from the answer itself: then only what breaks into a sentence or a word
    is out of place for certain."""
    breaks_in: bool = True
    """Whether the first letters that are not Latin break into a sentence."""

    @property
    def systems(self) -> frozenset[str]:
        """Writing systems, Han and Kana as one."""
        return frozenset("Han" if stretch.script == "Kana" else stretch.script for stretch in self.stretches)


NONE = Foreign((), False)


def find_foreign(seen: Seen, wishes: Asked) -> Foreign:
    """What of the answer is in a script that is not at home in it."""
    text = seen.text or ""
    if scripts.is_plain(text) or mentions.ANY in wishes.languages:
        return NONE
    home = _home(seen, wishes)
    if home is not None and not (home & _SPACED) and not scripts.has_others(text, home):
        return NONE
    spans = scripts.stretches(text)
    breaks_in = _is_mid_sentence(text, next(span for span in spans if span.script != "Latin"))
    at_home = home or (scripts.LATIN if breaks_in else _fair_shares(spans))
    suspects = [
        span for index, span in enumerate(spans) if span.script not in at_home or _inside_word(text, spans, index)
    ]  # fmt: skip
    found = _unexcused(seen, suspects, at_home) if suspects else []
    if found and find_misread(text) is not None:
        return NONE  # letters made by a wrong encoding are no other language
    return Foreign(_joined(found), home is None, breaks_in)


def _unexcused(seen: Seen, suspects: list[Stretch], home: frozenset[str]) -> list[Stretch]:
    """Those that neither what the answer says nor the baseline's answer accounts for."""
    text = seen.text or ""
    named = mentions.mentioned(text[:_NAMED_CHARS])
    if mentions.ANY in named or len(named) >= _MANY_NAMES:
        return []
    reference = seen.reference.text if seen.reference is not None else None
    shown = scripts.weights(reference) if reference else {}
    setting = _Setting(text, named, text.lstrip()[:1] in {"{", "["} or "```json" in text)
    return [
        span for span in suspects if span.script in home or (span.script not in shown and not setting.excuses(span))
    ]  # fmt: skip


def _joined(found: list[Stretch]) -> tuple[Stretch, ...]:
    """Neighbours in Han and Kana are one stretch of Japanese."""
    joined: list[Stretch] = []
    for span in found:
        last = joined[-1] if joined else None
        if last is not None and last.stop == span.start and {last.script, span.script} <= {"Han", "Kana"}:
            letters, num = last.num_letters + span.num_letters, last.num_words + span.num_words
            joined[-1] = Stretch(last.start, span.stop, "Kana", letters, num)
        else:
            joined.append(span)
    return tuple(joined)


def _home(seen: Seen, wishes: Asked) -> frozenset[str] | None:
    """Scripts that the answer may use, or None where neither prompt nor baseline nor language says."""
    compared = seen.reference is not None and bool((seen.reference.text or "").strip())
    if not (wishes.known or seen.language or compared):
        return None
    expected = OF_LANGUAGE.get((seen.language or "").split("-")[0].lower(), ())
    asked = {script for script, weight in wishes.weights.items() if weight >= 1}
    return _with_han({"Latin", *wishes.languages, *expected, *asked})


def _with_han(home: set[str]) -> frozenset[str]:
    return frozenset(home | {"Han"} if "Kana" in home else home)


def _fair_shares(spans: list[Stretch]) -> frozenset[str]:
    """Latin, and the scripts that hold a fair part of the text."""
    weight: dict[str, float] = {}
    for span in spans:
        weight[span.script] = weight.get(span.script, 0.0) + span.weight
    total = sum(weight.values())
    home = {"Latin"} | {script for script, part in weight.items() if part >= _FAIR_PART * total}
    return _with_han(home | {"Han"} if "Hangul" in home else home)


def _is_mid_sentence(text: str, span: Stretch) -> bool:
    """Whether the line up to it is a sentence in Latin letters that does not end."""
    line = text[: span.start].rsplit("\n", 1)[-1].rstrip()
    return line[-1:] not in _SENTENCE_END and len(latin.votes(line)) >= 2


@dataclass(frozen=True, slots=True)
class _Setting:
    """The text around foreign letters, as far as it may excuse them."""

    text: str
    named: frozenset[str]
    is_json: bool

    def excuses(self, span: Stretch) -> bool:
        """A gloss, a formula's letter, a face, or a word of a language that the answer itself names."""
        before = self.text[max(0, span.start - 2) : span.start].rstrip(" ")[-1:]
        after = self.text[span.stop : span.stop + 2].lstrip(" ")[:1]
        if span.script == "Greek" and span.num_letters < _GREEK_WORD:
            return True
        is_short = span.num_letters <= _GLOSS_LETTERS
        if span.script in self.named and (is_short or before in _LABELS or before in _OPENERS):
            return True
        if not is_short:
            return False
        quoted = before in _OPENERS and not (before in _QUOTES and self.is_json)
        return quoted or after in {"(", "（"} or _is_face(self.text, span)


def _is_face(text: str, span: Stretch) -> bool:
    """¯\\_(ツ)_/¯, ಠ_ಠ, (ಠ益ಠ): a few letters among symbols, and no word."""
    if span.num_letters > _FACE_LETTERS:
        return False
    left = text[max(0, span.start - _FACE_CHARS) : span.start].rpartition(" ")[2]
    right = text[span.stop : span.stop + _FACE_CHARS].partition(" ")[0]
    chunk = left + text[span.start : span.stop] + right
    letters = sum(char.isalpha() for char in chunk)
    most = _FACE_LETTERS if "(" in chunk and ")" in chunk else _FACE_LETTERS - 2
    return letters <= most and any(char in _FACE for char in chunk) and " " not in chunk


def _inside_word(text: str, spans: list[Stretch], index: int) -> bool:
    """One to three Latin letters in the middle of a word of another script that writes spaces: приvет."""
    span = spans[index]
    if span.script != "Latin" or span.num_letters > 3 or span.num_words > 1 or not 0 < index < len(spans) - 1:
        return False
    left, right = spans[index - 1], spans[index + 1]
    touching = left.stop == span.start and right.start == span.stop
    if not touching or left.script != right.script or left.script not in _SPACED:
        return False
    return text[span.start].islower() and left.num_letters + right.num_letters >= _WORD_LETTERS
