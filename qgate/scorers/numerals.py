"""Text → the numbers stated in it: digits of any script, Chinese and Thai numerals, number words. Pure."""

from __future__ import annotations

import re
from decimal import Decimal

from qgate.scorers.numeral_words import ADDITIVE, JOINERS, THAI
from qgate.scorers.text import ascii_digits, is_word_char, normalise, primary, visible

Readings = frozenset[Decimal]
"""What one written number may mean: `1,234` is 1234 in English, 1234 or 1.234 in Spanish."""

_DECIMAL_COMMA = frozenset({"es", "ru", "de", "fr", "it", "pt"})
_SPACED_GROUPS = frozenset({"es", "ru", "fr"})
_FIGURES = re.compile(r"\d+(?:[.,']\d+)*")
_NO_DIGITS = str.maketrans({**dict.fromkeys("⁰¹²³⁴⁵⁶⁷⁸⁹"), "№": " "})
"""What NFKC would make a digit, or part of a word, beside a number: 42¹ is 42 with a footnote, №42 is 42."""
_SIGN = re.compile(r"(?:\A|[^\w.,)])-\Z")
_DIGIT_GROUPS = ("零〇", "一壹", "二两兩贰貳", "三叁參", "四肆", "五伍", "六陆陸", "七柒", "八捌", "九玖")
_HAN_DIGITS = {ch: value for value, group in enumerate(_DIGIT_GROUPS) for ch in group}
_SCALE_GROUPS = {"十拾": 10, "百佰": 100, "千仟": 1000, "万萬": 10**4, "亿億": 10**8}
_HAN_SCALES = {ch: value for group, value in _SCALE_GROUPS.items() for ch in group}
_HAN = re.compile(f"[{''.join(_HAN_DIGITS)}{''.join(_HAN_SCALES)}]+")
_SCALED = re.compile("[百千万萬亿億]+")
_MAX_FIGURES = 40


def numbers(text: str, language: str) -> list[Readings]:
    """The numbers stated in `text`, in order. Words and Chinese numerals count only where there are no figures."""
    return figures(text, language) or _han(text) or _words(text, primary(language))


def figures(text: str, language: str) -> list[Readings]:
    """The numbers written with digits, in order."""
    lang = primary(language)
    plain = visible(ascii_digits(text).translate(_NO_DIGITS))
    plain = plain.replace("٫", ".").replace("٬", "'").replace("−", "-")
    if lang in _SPACED_GROUPS:
        plain = re.sub(r"(?<![\d.,])(\d{1,3})((?: \d{3})+)(?![\d])", lambda m: m[1] + m[2].replace(" ", ""), plain)
    found: list[Readings] = []
    for match in _FIGURES.finditer(plain):
        before = plain[max(0, match.start() - 2) : match.start()]
        if before and is_word_char(before[-1]):
            continue
        sign = -1 if _SIGN.search(before) else 1
        scale = _scale(plain, match.end())
        found += [frozenset(sign * scale * one for one in readings) for readings in _readings(match[0], lang)]
    return found


def _scale(plain: str, end: int) -> int:
    scaled = _SCALED.match(plain, end)
    factor = 1
    for ch in scaled[0][:2] if scaled else "":
        factor *= _HAN_SCALES[ch]
    return factor


def _readings(token: str, lang: str) -> list[Readings]:
    """The number or (`1,2,3`) numbers that a run of figures and separators stands for."""
    if len(token) > _MAX_FIGURES:
        return []
    token = token.replace("'", "")
    marks = [ch for ch in token if ch in ".,"]
    if not marks:
        return [frozenset({Decimal(token)})]
    groups = re.split("[.,]", token)
    by_three = 1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
    if len(set(marks)) == 2 and marks.count(marks[-1]) == 1:
        return [frozenset({Decimal("".join(groups[:-1]) + "." + groups[-1])})]
    if len(marks) > 1:
        return [frozenset({Decimal("".join(groups))})] if by_three else [frozenset({Decimal(one)}) for one in groups]
    fraction = Decimal(f"{groups[0]}.{groups[1]}")
    grouped = Decimal("".join(groups))
    if by_three and groups[0] != "0":
        either = frozenset({fraction, grouped})
        return [either if lang in _DECIMAL_COMMA else frozenset({grouped if marks[0] == "," else fraction})]
    return [frozenset({fraction})]


def _han(text: str) -> list[Readings]:
    found = [match[0] for match in _HAN.finditer(visible(text))]
    telling = [one for one in found if one != "一"] or found
    return [frozenset({Decimal(han_value(one))}) for one in telling if len(one) <= _MAX_FIGURES]


def han_value(numeral: str) -> int:
    """Value of a Chinese numeral: 四十二, 一千零五, 两万三, 二〇二六."""
    if not any(ch in _HAN_SCALES for ch in numeral):
        return int("".join(str(_HAN_DIGITS[ch]) for ch in numeral))
    total = section = digit = 0
    last_scale = 1
    for ch in numeral:
        if ch in _HAN_DIGITS:
            digit = _HAN_DIGITS[ch]
            last_scale = 1 if digit == 0 else last_scale
            continue
        scale = _HAN_SCALES[ch]
        if scale >= 10**4:
            total, section = (total + section + digit or 1) * scale, 0
        else:
            section += (digit or 1) * scale
        digit, last_scale = 0, scale
    return total + section + digit * (last_scale // 10 if last_scale >= 100 else 1)


def _words(text: str, lang: str) -> list[Readings]:
    if lang == "th":
        for word, han in THAI.items():
            text = text.replace(word, han)
        return _han(text)
    values = ADDITIVE.get(lang, {})
    found: list[Readings] = []
    run: list[int] = []
    for word in [*re.findall(r"\w+", normalise(text)), ""]:
        if word in values:
            run.append(values[word])
        elif run and word not in JOINERS:
            found.append(frozenset({Decimal(_add_up(run))}))
            run = []
    return found


def _add_up(run: list[int]) -> int:
    """`two hundred forty two thousand six` → 242 006."""
    total = current = 0
    for value in run[:12]:
        if value == 1000:
            total, current = total + (current or 1) * value, 0
        else:
            current = (current or 1) * value if value == 100 and current < 10 else current + value
    return total + current
