"""Which languages and scripts a text names ("in Japanese", "翻译成英文"): text in, names out. Pure.

A prompt that names a language asks for its script; an answer that names one introduces it.
"""

from __future__ import annotations

import re
from functools import lru_cache

# What a text may call it → the scripts that it brings along and the code of a language in Latin letters, if any.
# Stems, in the languages that prompts are mostly written in; matched without case.
_NAMES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("Han",), r"chin(?:ese|a\b)|mandarin|cantonese|taiwan|hong kong|beijing|pinyin|hanzi|ideogra(?:m|ph)|confuci|\btao"
               r"|[中汉漢][文语語字]|普通话|國語|国语|文言|中国|китай|chino|chinois|chines|صيني|중국|한자|จีน|चीनी"
               r"|סיני"),
    (("Han", "Kana"), r"japan|\bkanji|\bkana\b|hiragana|katakana|romaji|haiku|\banime|\bmanga|tokyo|kyoto|日本|日[语語文]"
                      r"|平仮名|片仮名|假名|ひらがな|カタカナ|japon|япон|giappon|ياباني|일본|ญี่ปุ่น|जापानी|יפני"),
    (("Hangul", "Han"), r"korea|hangul|hanja|\bseoul|\bk-?pop|한국|한글|조선|韩[语文国]|韓[語文国國]|朝鲜|コリア|ハングル"
                        r"|corea|coré|корей|كوري|เกาหลี|कोरियाई|קוריאנ"),
    (("Cyrillic",), r"russia|ukrain|bulgar|serb|cyrillic|belarus|macedon|mongol|kazakh|kyrgyz|slavic|moscow|俄[语語文罗]"
                    r"|乌克兰|西里尔|ロシア|キリル|러시아|русск|росси|украин|україн|болгар|серб|кирилл|rus[so]|ruski"
                    r"|روسي"
                    r"|รัสเซีย|रूसी|רוסי"),
    (("Arabic",), r"arab|persian|farsi|\burdu|pashto|kurdish|uy?ghur|\bislam|qur.?an|muslim|egypt|iran|阿拉伯|波斯|アラビア"
                  r"|ペルシ|아랍|араб|перси|árabe|عرب|فارسی|اردو|อาหรับ|अरबी|ערבי"),
    (("Hebrew",), r"hebrew|yiddish|torah|jewish|israel|kabbal|希伯来|ヘブライ|히브리|иврит|еврей|hebre|hébre|hebräi|עברי|عبري"),
    (("Greek",), r"greek|\bgreece|hellen|希[腊臘]|ギリシ|그리스|гречес|grieg|\bgrec|griech|יוונ|يونان"),
    (("Devanagari",), r"hindi|sanskrit|devanagari|marathi|nepali|\bindia"
                        r"|印地|梵[语語文]|ヒンディ|힌디|хинди|санскрит|हिन्दी|हिंदी"),
    (("Bengali",), r"bengali|bangla|assamese|孟加拉|ベンガル|বাংলা"),
    (("Gurmukhi",), r"punjabi|gurmukhi|ਪੰਜਾਬੀ"),
    (("Gujarati",), r"gujarat|ગુજરાતી"),
    (("Tamil",), r"\btamil|தமிழ்|泰米尔"),
    (("Telugu",), r"telugu|తెలుగు"),
    (("Kannada",), r"kannada|ಕನ್ನಡ"),
    (("Malayalam",), r"malayalam|മലയാളം"),
    (("Sinhala",), r"sinhal|සිංහල"),
    (("Thai",), r"\bthai|bangkok|泰[语語文国國]|タイ語|태국|тайск|tailand|thaï|ไทย"),
    (("Lao",), r"\blao(?:s|tian)?\b|老挝|ລາວ"),
    (("Khmer",), r"khmer|cambodi|柬埔寨|ខ្មែរ"),
    (("Myanmar",), r"burm|myanmar|缅甸|မြန်မာ"),
    (("Tibetan",), r"tibet|藏[语語文]|བོད"),
    (("Georgian",), r"georgian|tbilisi|格鲁吉亚|грузин|ქართ"),
    (("Armenian",), r"armenia|亚美尼亚|армян|հայ"),
    (("Ethiopic",), r"amharic|tigrinya|ethiop|አማርኛ"),
    (("Bopomofo",), r"bopomofo|zhuyin|注音"),
    (("en",), r"english|英[语語文]|영어|английск|ingl[eéê]s|anglais|englisch|انجليزي|إنجليزي|อังกฤษ|अंग्रेज|אנגלית"),
    (("fr",), r"french|fran[cç]|paris\b|法[语語文]|フランス|프랑스|французск|französ|فرنسي"),
    (("de",), r"german|deutsch|berlin\b|德[语語文]|ドイツ|독일|немецк|alem[aá]n|allemand|tedesco|ألماني"),
    (("es",), r"spa(?:in|nish)|espa[nñ]|castell|mexic|西班牙|スペイン|스페인|испанск|spagnol|إسباني"),
    (("it",), r"ital|意大利|イタリア|이탈리아|итальян|إيطالي"),
    (("pt",), r"portug|brazil|brasil|葡萄牙|巴西|ポルトガル|포르투갈|португал|برتغالي"),
    (("nl",), r"dutch|nederland|netherlands|holland|荷兰|オランダ|네덜란드|нидерланд"),
    (("la",), r"\blatin\b|latino?\b|拉丁|ラテン|латин|roman"),
    (("tr",), r"turk|türk|土耳其|トルコ|터키|турец"),
    (("id",), r"indones|malay\b|bahasa|印[度]?尼|インドネシア"),
    (("vi",), r"vietnam|việt|越南|ベトナム|베트남|вьетнам"),
    (("pl",), r"polish|polsk|poland|波兰|ポーランド|польск"),
    (("sv",), r"swed|svensk|瑞典|スウェーデン|шведск"),
    (("*",), r"translat|multilingual|bilingual|polyglot|\blanguages|foreign (?:word|language)|unicode|utf-?8|alphabet"
             r"|\bscripts?\b.{0,20}\b(?:writ|letter)|native (?:name|script|language)|etymolog|loan ?word|transliterat"
             r"|翻[译譯]|翻訳|多[语語]|各国语言|字母|字符集|번역|다국어|перев[ое]д|язык|traduc|traduz|traduis"
             r"|übersetz|lingua"
             r"|idiomas?\b|langues?\b|sprachen?\b|ترجم|لغ(?:ة|ات)|แปล|ภาษา|अनुवाद|भाषा|תרגם|שפות"),
)  # fmt: skip
_COMPILED = tuple((names, re.compile(pattern, re.IGNORECASE)) for names, pattern in _NAMES)
_ANY = re.compile("|".join(pattern for _, pattern in _NAMES), re.IGNORECASE)

ANY = "*"
"""Stands for every language: the text speaks of languages or translation without naming one."""


@lru_cache(maxsize=512)
def mentioned(text: str) -> frozenset[str]:
    """Scripts and codes of Latin-script languages that `text` names; ANY where it speaks of languages at large."""
    if _ANY.search(text) is None:
        return frozenset()
    return frozenset(name for names, pattern in _COMPILED if pattern.search(text) for name in names)
