"""Check → cases of (language, arguments, an answer that keeps it, an answer that does not). Data only."""

from __future__ import annotations

from typing import Any

Case = tuple[str, dict[str, Any], str, str]

TABLE = "| Ferry | Seats |\n| --- | :-: |\n| Alder | 40 |\n| Ember | 55 |"
SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "seats": {"const": 40}},
    "required": ["name", "seats"],
    "additionalProperties": False,
}

CASES: dict[str, list[Case]] = {
    "combination:repeat_prompt": [
        ("en", {"prompt_to_repeat": "Why so?"}, "Why so? Because.", "why so? Because."),
        ("en", {"prompt_to_repeat": "Why so?", "only": True}, "Why so?\n", "Why so? Because."),
        ("zh", {"prompt_to_repeat": "灯塔亮了。", "only": True}, "灯塔亮了。", "灯塔亮了"),
    ],
    "combination:two_responses": [
        ("en", {}, "One.\n******\nTwo.", "One.\n******\nOne."),
        ("zh", {}, "甲。\n******\n乙。", "甲。\n***\n乙。"),
    ],
    "detectable_format:constrained_response": [
        ("en", {"options": ["Yes", "No"]}, "**yes**.", "Yes, it is."),
        ("zh", {"options": ["是", "否"]}, "否。", "不是否"),
        ("ja", {"options": ["07:10"]}, "０７：１０", "7:10"),
        ("ar", {"options": ["07:10"]}, "٠٧:١٠", "الساعة ٠٧:١٠"),
        ("ru", {"options": ["ёж"]}, "Еж", "ежи"),
        ("es", {"options": ["sí"]}, "Sí.", "Si"),
        ("th", {"options": ["ใช่"]}, "ใช่", "ไม่ใช่"),
    ],
    "length_constraints:number_words": [
        ("en", {"min": 3, "max": 3}, "It's ten-year-old wine.", "one two"),
        ("zh", {"min": 4, "max": 4}, "灯塔亮了。", "灯塔亮。"),
        ("ja", {"max": 5}, "灯りです。", "灯りがつきました。"),
        ("ru", {"min": 2}, "два слова", "одно"),
        ("es", {"max": 2}, "dos palabras", "son tres palabras"),
        ("ar", {"min": 2, "max": 2}, "كلمتان هنا", "كلمة"),
    ],
    "length_constraints:number_characters": [
        ("en", {"min": 4, "max": 4}, "a b, c-d", "abc"),
        ("zh", {"max": 4}, "灯塔亮了。", "灯塔又亮了。"),
    ],
    "length_constraints:number_sentences": [
        ("en", {"min": 2, "max": 2}, "Dr. Bell left. Nobody saw.", "One. Two. Three."),
        ("zh", {"min": 2, "max": 2}, "走了。没人看见！", "走了，没人看见。"),
        ("ja", {"min": 2}, "行った。見た。", "行った"),
        ("ar", {"max": 1}, "ذهب الحارس.", "ذهب. عاد؟"),
        ("ru", {"min": 2, "max": 2}, "Ушёл. Вернулся.", "Ушёл и вернулся."),
        ("es", {"min": 2, "max": 2}, "¿Se fue? Volvió.", "Se fue."),
    ],
    "length_constraints:number_lines": [
        ("en", {"min": 2, "max": 2}, "a\n\nb", "a b"),
        ("zh", {"min": 2, "max": 2}, "甲\n乙", "甲乙"),
    ],
    "length_constraints:number_paragraphs": [
        ("en", {"min": 2, "max": 2}, "a\nb\n\nc", "a\nb"),
        ("en", {"min": 2, "max": 2, "divider": "***"}, "a\n\nb\n***\nc", "a\n\nb"),
        ("zh", {"min": 2, "max": 2}, "甲\n\n乙", "甲\n乙"),
    ],
    "length_constraints:nth_paragraph_first_word": [
        ("en", {"min": 2, "max": 2, "nth": 2, "first_word": "Later"}, "a\n\n*Later* it rained.", "a\n\nLaterally."),
        ("zh", {"min": 2, "nth": 2, "first_word": "后来"}, "先是\n\n后来下雨", "后来\n\n先是"),
    ],
    "length_constraints:sentence_length": [
        ("en", {"max": 3}, "It is late. Go home.", "It is late. Please go home now."),
        ("zh", {"min": 2, "max": 4}, "灯亮了。走吧。", "灯塔上的灯亮了。走吧。"),
    ],
    "length_constraints:line_lengths": [
        ("en", {"lengths": [1, 2]}, "Up\nup again", "Up again\nup"),
        ("zh", {"lengths": [5, 5]}, "秋来山色静，\n雁过水声寒。", "秋来山色静\n雁过水寒"),
    ],
    "detectable_format:number_bullet_lists": [
        ("en", {"min": 2, "max": 2}, "- a\n* b", "a\nb"),
        ("zh", {"min": 2, "max": 2}, "- 甲\n- 乙", "- 甲\n- 乙\n- 丙"),
        ("th", {"min": 1, "max": 1}, "- แมว", "แมว"),
    ],
    "detectable_format:number_numbered_lists": [
        ("en", {"min": 2, "max": 2}, "1. a\n2. b", "1. a\n3. b"),
        ("zh", {"min": 2, "max": 2}, "1、甲\n2、乙", "2、甲\n1、乙"),
        ("ar", {"min": 2, "max": 2}, "١. ألف\n٢. باء", "ألف\nباء"),
    ],
    "detectable_format:separated_items": [
        ("en", {"separator": " | ", "min": 2, "max": 2}, "red | blue", "red, blue"),
        ("zh", {"separator": " | ", "min": 2, "max": 2}, "荷花 | 菊花", "荷花 |  | 菊花"),
    ],
    "keywords:existence": [
        ("en", {"keywords": ["lamp", ["grey", "gray"]]}, "A gray Lamp.", "Gray lamps."),
        ("zh", {"keywords": ["灯塔"]}, "那座灯塔", "那座灯"),
        ("ja", {"keywords": ["傘"]}, "赤い傘です", "笠です"),
        ("ar", {"keywords": ["مظلة"]}, "رأيت المظله", "رأيت مظلتها"),
        ("ru", {"keywords": ["зонт"]}, "Мой Зонт.", "Мои зонты."),
        ("es", {"keywords": ["pan"]}, "El pan.", "El panadero."),
        ("th", {"keywords": ["แมว"]}, "มีแมว", "มีหมา"),
    ],
    "keywords:order": [
        ("en", {"keywords": ["lamp", "gull"]}, "A lamp and a gull.", "A gull and a lamp."),
        ("zh", {"keywords": ["灯", "海鸥"]}, "灯亮了，海鸥飞了", "海鸥飞了"),
    ],
    "keywords:forbidden_words": [
        ("en", {"forbidden_words": ["rain"]}, "A rainbow.", "Heavy RAIN."),
        ("zh", {"forbidden_words": ["下雨", "丢失"]}, "天晴了", "昨天下雨了"),
        ("ar", {"forbidden_words": ["مطر"]}, "شمس", "المطر غزير"),
    ],
    "keywords:frequency": [
        ("en", {"keyword": "lamp", "min": 2, "max": 2}, "Lamp by lamp.", "Lamp by lamplight."),
        ("zh", {"keyword": "灯", "min": 2, "max": 2}, "灯与灯", "灯"),
    ],
    "keywords:every_sentence": [
        ("en", {"keyword": "lamp"}, "A lamp. The lamp!", "A lamp. It shines."),
        ("zh", {"keyword": "灯"}, "灯亮。灯灭。", "灯亮。人走。"),
    ],
    "keywords:letter_frequency": [
        ("en", {"letter": "e", "max": 0}, "A small cat.", "Every cat."),
        ("zh", {"letter": "的", "max": 1}, "我的灯", "我的旧的灯"),
    ],
    "language:response_language": [
        ("en", {"language": "en"}, "The lamp is lit.", "La lámpara está en la torre."),
        ("zh", {"language": "zh"}, "灯亮了。", "灯がついた。"),
        ("ja", {"language": "ja"}, "灯がついた。", "灯亮了。"),
        ("ar", {"language": "ar"}, "المصباح مضاء", "The lamp"),
        ("ru", {"language": "ru"}, "Лампа горит.", "Lampa gorit."),
        ("es", {"language": "es"}, "La lámpara está en la torre.", "The lamp is in the tower."),
        ("th", {"language": "th"}, "ไฟติดแล้ว", "Fai tit laew"),
    ],
    "startend:start_checker": [
        ("en", {"phrase": "Dear friends."}, "**Dear friends.** Hello.", "Hello. Dear friends."),
        ("zh", {"phrase": "先说一个好消息。"}, "先说一个好消息。来了。", "来了。先说一个好消息。"),
    ],
    "startend:end_checker": [
        ("en", {"phrase": "See you there."}, "Come. See you there!", "See you there. Bye."),
        ("zh", {"phrase": "到时候见。"}, "来吧。到时候见。\n", "到时候见。来吧。"),
    ],
    "startend:quotation": [
        ("en", {}, '"All of it."', 'He said "no".'),
        ("en", {}, "“All of it.”", '"'),
        ("zh", {"open": "「", "close": "」"}, "「都在里面。」", "「一」和二"),
        ("ru", {"open": "«", "close": "»"}, "«Всё.»", "Всё."),
    ],
    "startend:each_line": [
        ("en", {"prefix": "> "}, "> a\n> b", "> a\nb"),
        ("zh", {"prefix": "> ", "suffix": "。"}, "> 甲。\n> 乙。", "> 甲。\n> 乙"),
    ],
    "startend:acrostic": [
        ("en", {"initials": "TIDE"}, "The\nIn\n*Dark*\neach", "The\nIn\nEach\nDark"),
        ("zh", {"initials": "春风"}, "春来\n风过", "春来\n花开"),
    ],
    "change_case:uppercase": [
        ("en", {}, "LAMP 7!", "LAMP a"),
        ("ru", {}, "ЁЛКА", "Ёлка"),
        ("es", {}, "LÁMPARA", "Lámpara"),
    ],
    "change_case:lowercase": [
        ("en", {}, "lamp 7!", "Lamp"),
        ("ru", {}, "ёлка", "Ёлка"),
        ("es", {}, "lámpara", "LÁMPARA"),
    ],
    "change_case:title": [("en", {}, "Goat Found in Town Hall", "Goat found in Town Hall")],
    "change_case:capital_word_frequency": [("en", {"min": 2, "max": 2}, "WET floor, TAKE care", "WET floor")],
    "punctuation:no_comma": [
        ("en", {}, "no comma", "a, b"),
        ("zh", {}, "没有。", "有、顿号"),
        ("ja", {}, "ない。", "ある、よ"),
        ("ar", {}, "لا.", "نعم، هنا"),
    ],
    "punctuation:forbidden": [
        ("en", {"marks": "!?"}, "calm.", "what?"),
        ("zh", {"marks": "！？"}, "好。", "好！"),
    ],
    "punctuation:sentence_end": [
        ("en", {"marks": "!"}, 'Go! "Now!"', "Go! Now."),
        ("zh", {"marks": "！"}, "走！快走！", "走！快走。"),
    ],
    "detectable_format:table": [
        ("en", {"columns": ["Ferry", "Seats"], "only": True}, f"\n{TABLE}\n", f"Here it is:\n{TABLE}"),
        ("en", {"columns": ["Ferry", "Seats"], "rows": 2}, TABLE, TABLE.replace("| Ember | 55 |", "| Ember |")),
        ("en", {"columns": ["Ferry", "Seats"]}, f"Here it is:\n{TABLE}\nDone.", "| Ferry | Seats |\n| Alder | 40 |"),
        (
            "zh",
            {"columns": ["渡轮", "座位"], "rows": 1},
            "| 渡轮 | 座位 |\n|--|--|\n| 白鹭号 | 40 |",
            "渡轮 座位\n白鹭号 40",
        ),
        (
            "zh",
            {"columns": ["渡轮", "座位"], "rows": 1},
            "渡轮|座位\n--|--\n白鹭号|40",
            "| 座位 | 渡轮 |\n|--|--|\n| 40 | 白鹭号 |",
        ),
    ],
    "detectable_format:number_highlighted_sections": [
        ("en", {"min": 2}, "*one* and **two**", "**one** and * two *"),
        ("zh", {"min": 1}, "很*重要*的事", "很重要的事"),
    ],
    "detectable_format:multiple_sections": [
        (
            "en",
            {"section_spliter": "SECTION", "min": 2, "max": 2},
            "SECTION 1\na\n**Section 2**\nb",
            "SECTION 1\nSECTION 2\nb",
        ),
        ("zh", {"section_spliter": "部分", "min": 2, "max": 2}, "部分 1\n甲\n部分 2\n乙", "部分 2\n甲\n部分 1\n乙"),
    ],
    "detectable_format:title": [
        ("en", {}, "<<A Title>>\ntext", "A Title\ntext"),
        ("zh", {}, "<<标题>>\n正文", "<< >>"),
    ],
    "detectable_format:plain": [
        ("en", {}, "2 * 3 * 4 is a product - really.", "**bold**"),
        ("zh", {}, "只有文字。", "# 标题\n文字"),
    ],
    "detectable_format:alphabetical": [("en", {}, "1. Apple\n2. Fig\n3. Pear", "Fig\nApple")],
    "detectable_content:number_placeholders": [
        ("en", {"min": 2}, "[name], [date]", "[name]"),
        ("zh", {"min": 2}, "［姓名］【日期】", "（姓名）"),
    ],
    "detectable_content:postscript": [
        ("en", {"postscript_marker": "P.S."}, "Text.\n\nP.S. More.", "Text. P.S. More."),
        ("zh", {"postscript_marker": "附言："}, "正文。\n附言：还有。", "附言：只有这个。"),
        ("ja", {"postscript_marker": "追伸"}, "本文。\n追伸 お湯。", "本文。\n追伸"),
    ],
    "detectable_format:json_format": [
        ("en", {}, '```json\n{"a": 1}\n```', 'Here: {"a": 1}'),
        ("en", {"fence": False}, '{"a": 1}', '```json\n{"a": 1}\n```'),
        ("zh", {}, '{"名": "白鹭号"}', '{"名": 白鹭号}'),
        ("en", {}, "[1]", "[NaN]"),
        ("en", {}, "[]", "[" * 100_000),
        ("en", {}, "{}", "7"),
    ],
    "detectable_format:json_schema": [
        ("en", {"schema": SCHEMA}, '{"name": "Alder", "seats": 40}', '{"name": "Alder", "seats": 41}'),
        ("zh", {"schema": SCHEMA}, '```\n{"name": "白鹭号", "seats": 40}\n```', '{"name": "白鹭号"}'),
        ("en", {"schema": SCHEMA}, '{"seats": 40.0, "name": ""}', '{"name": "Alder", "seats": 40, "x": 0}'),
        ("en", {"schema": {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array"}}}}, "[]", "{}"),
    ],
    "detectable_format:yaml": [
        ("en", {"keys": ["name"]}, "name: Alder\npier: 3", "name:"),
        ("zh", {"keys": ["name"]}, "```yaml\nname: 白鹭号\n```", "名: 白鹭号"),
        ("en", {"keys": ["name"]}, "name: x", "name: [x\n- : {"),
        ("en", {"keys": ["name"]}, "name: 2026-01-01", "name: 2026-99-99"),
    ],
    "detectable_format:code": [
        ("en", {"defines": ["f"]}, "Sure:\n```python\ndef f(x):\n    return x\n```", "def f(x)\n    return x"),
        (
            "en",
            {"defines": ["f"], "only": True},
            "def f(x):\n    return x",
            "Sure:\n```python\ndef f(x):\n    return x\n```",
        ),
        ("en", {"fence": True}, '```\nprint("a\\d")\n```', 'print("a")'),
        ("zh", {"defines": ["f"], "fence": False}, "def f():\n    return '灯'", "定义函数 f"),
        ("en", {}, "x = 1", "lamp"),
        ("en", {}, "print(1)", "x = '\0'"),
    ],
}
