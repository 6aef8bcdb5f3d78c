"""What a prompt asks for that would be a defect unasked: prompt in, wishes out. Pure.

A wish excuses: an answer that repeats because it was told to is no loop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from qgate.judge.defects import mentions, scripts

HEAD_CHARS, TAIL_CHARS = 600, 1200
"""Instructions stand before or after a pasted document; between them its words are not the user's wish."""

_COUNT = (
    r"(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|sixty|"
    r"seventy|eighty|ninety|(?:a |one )?(?:hundred|thousand|million|dozen)|many|several|n)"
)
_REPEAT = re.compile(
    rf"\brepeat|\becho\b|over and over|again and again|(?<!how )\b{_COUNT} (?:more )?times\b(?! ?\d)|forever|endless|infinite"
    r"|non-?stop|in a loop|\bloops?\b|copies of|mantra|\bchant|refrain|chorus|lyrics|\bsong|nursery rhyme|recurring"
    r"|\d ?×|\bpalindrom|tongue.?twister"
    r"|重[复複]|反[复復]|[\d一二三四五六七八九十百千万两]+ ?[遍次回]|不停|循环|無限|无限|繰り?返|くり返|何度も|반복"
    r"|\d+ ?번|되풀이"
    r"|повтор|[\d] раз\b|бесконечн|repit|repet|répèt|répét|\d fois|\d veces|\d vezes|\d volte|wiederhol|\d ?-?mal\b"
    r"|ripet|herhaal|كرر|تكرار|مرات|مرة|ซ้ำ|\d+ ครั้ง|दोहरा|\d+ बार|חזור|פעמים|tekrar|\d+ kere|lặp|ulang",
    re.IGNORECASE,
)
_MARKS: tuple[tuple[str, str], ...] = (
    (r"exclamation|[感惊]叹号|感嘆符|느낌표|восклицат|ausrufezeichen|exclamaci|exclamação|esclamativ|تعجب|อัศเจรีย์", "!！¡"),
    (r"question (?:marks?|points?)|问号|疑問符|물음표|вопросительн|interrogaci|interrogation|fragezeichen", "?？¿"),
    (r"asterisk|\bstars?\b|星号|звёздоч|звездоч", "*★☆⭐🌟"),
    (r"\bdash(?:es)?\b|hyphen|horizontal|separator|divider|underscore|破折号|分隔", "-–—_=~─"),
    (r"\bdots?\b|\bperiods\b|full stops|ellips|句号|省略号|точ(?:ек|ки)\b|puntos|points de suspension", ".·•…。"),
    (r"\bhash(?:es|tags?)?\b|pound sign|井号", "#"),
    (r"\bspaces\b|new ?lines?\b|blank lines?|空格|换行|空行", " \n\t"),
)  # fmt: skip
"""How a prompt names marks, and the marks: what follows the NaN of a broken model is `!`, which only its name excuses."""
_CHARACTERS = re.compile(
    r"\bzero|\bletters\b|\bletter [\"'“‘]?\w\b|\bcharacters?\b|\bsymbols?\b|\bbits?\b|binary|\bhex|\bhash|\bdna\b"
    r"|\brna\b|nucleotide|codon|(?:coding|number|binary|gen\w+|protein|amino\w*|repeat[\w-]*|digit|bit) sequence"
    r"|base ?64|\bdigits?|decimal|\bpad|sounds? of|sound effect|scream|laugh|\bbytes?\b|string of|\d/\d|googol"
    r"|written out|write out|in full|factorial|power of|emoji"
    r"|字符|符号|数字|小数|\d位|位数|[百千万]位|序列|文字|表情|記号|桁|글자|숫자|자리|символ|букв|цифр|знак|signos?|dígitos"
    r"|cifras|letras|caracter|chiffres|caractères|lettres|ziffern|stellen|zeichen|buchstab|علامة|أرقام|حرف|อักขระ|ตัวอักษร"
    r"|अक्षर|अंक|סימנ|ספרות|תווים",
    re.IGNORECASE,
)
_LAYOUT = re.compile(
    r"separator|divider|horizontal|\bbar\b|ascii|matri(?:x|ces)|\bgrid|\btable|\bcsv\b|\blogs?\b|\brows? of"
    r"|\blines? of|pattern|placeholder|lorem|\bfill|pixel|bitmap|(?:chess|checker|game|score) ?board|\bboard\b|array|tensor"
    r"|vector|timetable|schedule|calendar|表格|矩阵|日志|列表|一张表|表[をに]|行列|配列|표|строк|таблиц|tabla|tableau|tabelle",
    re.IGNORECASE,
)
_DIALOGUE = re.compile(
    r"dialog|conversation|transcript|\bchat\b|chat ?(?:bot|log)|role.?play|interview|screenplay|\bscript\b|\bskit\b"
    r"|\bplay\b|few.?shot|multi.?turn|对话|聊天|剧本|訪談|访谈|会話|チャット|대화|채팅|диалог|беседа|разговор|чат"
    r"|diálogo|conversaci|dialogue|entretien|gespräch|حوار|محادثة|บทสนทนา|संवाद|बातचीत|שיחה|דיאלוג",
    re.IGNORECASE,
)
_TEMPLATE = re.compile(
    r"chat ?(?:template|ml)|(?:special|control|eos|bos|end|stop|pad(?:ding)?) tokens?|tokeni[sz]|system prompt"
    r"|\bllms?\b|language models?|prompt (?:format|template)|fine.?tun|llama|mistral|qwen|instruction format|html|<s>"
    r"|模板|分词|テンプレート|템플릿|шаблон",
    re.IGNORECASE,
)
_NOTHING = re.compile(
    r"(?:say|reply|respond|answer|output|return|print|write)(?: with)? (?:nothing|an empty|no(?:thing)?\b)"
    r"|empty (?:string"
    r"|reply|response|answer|message)|(?:do not|don.?t) (?:say|reply|respond|answer|write|output)|leave .{0,20}blank"
    r"|remain silent|stay silent|什么都不要|不要回[答复]|空字符串|保持沉默|何も(?:言|書|答)|空文字|아무 ?(?:말|것)도"
    r"|빈 문자열"
    r"|ничего не (?:пиши|отвеч|говори)|пуст(?:ую|ой) (?:строк|ответ)|no (?:respondas|digas)|cadena vacía"
    r"|ne réponds? (?:rien|pas)"
    r"|chaîne vide|antworte nicht|schreibe? nichts|لا ت(?:جب|كتب)|אל תענה",
    re.IGNORECASE,
)
_DECODING = re.compile(
    r"mojibake|encod|decod|replacement char|fffd|�|unicode|utf-?8|charset|garbled|latin-?1|cp1252|乱码|编码|亂碼"
    r"|文字化け|エンコ"
    r"|인코딩|깨진|кодировк|кракозябр|codificaci|encodage|kodierung|ترميز|קידוד|tokeni[sz]|byte.?pair|\bbpe\b"
    r"|sentencepiece",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Asked:
    """What the prompt asks for, or brings along itself."""

    known: bool
    """Whether there is a prompt with letters in it: only then can an answer be in the wrong script."""
    weights: dict[str, float]
    """Scripts of the prompt's own text, in letters of an alphabet."""
    languages: frozenset[str]
    """Scripts and languages that it names (see mentions)."""
    repetition: bool
    marks: str
    """Marks that it names."""
    characters: bool
    """Whether it is about characters or digits as such,"""
    layout: bool
    """or about tables, drawings and other things in which they stand in rows."""
    dialogue: bool
    templates: bool
    nothing: bool
    decoding: bool
    text: str
    """Its own words, lower-case, for comparing with what is repeated."""


_NOTHING_KNOWN = Asked(
    known=False, weights={}, languages=frozenset(), repetition=False, marks="", characters=False,
    layout=False, dialogue=False, templates=False, nothing=False, decoding=False, text="",
)  # fmt: skip


@lru_cache(maxsize=256)
def asked(prompt: str | None) -> Asked:
    """What `prompt` asks for; nothing where it is None."""
    if prompt is None:
        return _NOTHING_KNOWN
    wish = prompt if len(prompt) <= HEAD_CHARS + TAIL_CHARS else f"{prompt[:HEAD_CHARS]}\n{prompt[-TAIL_CHARS:]}"
    weights = scripts.weights(prompt)
    return Asked(
        known=bool(weights),
        weights=weights,
        languages=mentions.mentioned(wish),
        repetition=_REPEAT.search(wish) is not None,
        marks="".join(marks for name, marks in _MARKS if re.search(name, wish, re.IGNORECASE)),
        characters=_CHARACTERS.search(wish) is not None,
        layout=_LAYOUT.search(wish) is not None,
        templates=_TEMPLATE.search(wish) is not None,
        dialogue=_DIALOGUE.search(wish) is not None,
        nothing=_NOTHING.search(wish) is not None,
        decoding=_DECODING.search(wish) is not None,
        text=prompt.lower(),
    )
