"""Number words of the languages that qgate's own sets use, as tables. Data only."""

from __future__ import annotations

from qgate.scorers.text import normalise


def _table(*rows: tuple[int, int, str]) -> dict[str, int]:
    """Rows of (first value, step, words): alternatives of one value are joined by `|`."""
    return {
        normalise(word): start + step * at
        for start, step, words in rows
        for at, alternatives in enumerate(words.split())
        for word in alternatives.split("|")
    }


ADDITIVE = {
    "en": _table(
        (0, 1, "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"),
        (17, 1, "seventeen eighteen nineteen"),
        (20, 10, "twenty thirty forty fifty sixty seventy eighty ninety hundred"),
        (1000, 1, "thousand"),
    ),
    "es": _table(
        (0, 1, "cero uno|una|un dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince"),
        (16, 1, "dieciséis diecisiete dieciocho diecinueve veinte veintiuno|veintiún|veintiuna veintidós veintitrés"),
        (24, 1, "veinticuatro veinticinco veintiséis veintisiete veintiocho veintinueve"),
        (30, 10, "treinta cuarenta cincuenta sesenta setenta ochenta noventa cien|ciento"),
        (200, 100, "doscientos|doscientas trescientos cuatrocientos quinientos seiscientos setecientos ochocientos"),
        (900, 100, "novecientos mil"),
    ),
    "ru": _table(
        (0, 1, "ноль один|одна|одно два|две три четыре пять шесть семь восемь девять десять одиннадцать двенадцать"),
        (13, 1, "тринадцать четырнадцать пятнадцать шестнадцать семнадцать восемнадцать девятнадцать"),
        (20, 10, "двадцать тридцать сорок пятьдесят шестьдесят семьдесят восемьдесят девяносто сто"),
        (200, 100, "двести триста четыреста пятьсот шестьсот семьсот восемьсот девятьсот тысяча|тысячи|тысяч"),
    ),
    "ar": _table(
        (0, 1, "صفر واحد|واحدة اثنان|اثنين|اثنتان ثلاثة|ثلاث أربعة|أربع خمسة|خمس ستة|ست سبعة|سبع ثمانية|ثماني"),
        (9, 1, "تسعة|تسع عشرة|عشر"),
        (
            20,
            10,
            "عشرون|وعشرون|عشرين ثلاثون|وثلاثون أربعون|وأربعون خمسون|وخمسون ستون|وستون سبعون|وسبعون ثمانون|وثمانون",
        ),
        (90, 10, "تسعون|وتسعون مئة|مائة"),
        (1000, 1, "ألف"),
    ),
}
"""Language → word → value; consecutive words add up, 100 and 1000 multiply what stands before them."""

JOINERS = frozenset({"and", "y", "و"})
"""Words that may stand inside a number."""

THAI = {
    "ศูนย์": "零", "หนึ่ง": "一", "เอ็ด": "一", "สอง": "二", "ยี่": "二", "สาม": "三", "สี่": "四", "ห้า": "五", "หก": "六",
    "เจ็ด": "七", "แปด": "八", "เก้า": "九", "สิบ": "十", "ร้อย": "百", "พัน": "千", "หมื่น": "万",
}  # fmt: skip
"""Thai numerals by the Chinese numeral of the same value and place: both languages build numbers alike."""
