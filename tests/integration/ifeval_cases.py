"""Instructions that qgate's checks and IFEval's checkers both know, and answers that keep or break them. English."""

from __future__ import annotations

from typing import Any

AT_LEAST, LESS_THAN = "at least", "less than"

CASES: tuple[tuple[str, dict[str, Any], str, dict[str, Any]], ...] = (
    ("punctuation:no_comma", {}, "punctuation:no_comma", {}),
    ("startend:quotation", {}, "startend:quotation", {}),
    ("startend:end_checker", {"end_phrase": "Is that all?"}, "startend:end_checker", {"phrase": "Is that all?"}),
    ("detectable_format:title", {}, "detectable_format:title", {}),
    ("detectable_format:json_format", {}, "detectable_format:json_format", {}),
    ("detectable_format:number_bullet_lists", {"num_bullets": 3}, "detectable_format:number_bullet_lists",
     {"min": 3, "max": 3}),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "detectable_content:number_placeholders",
     {"min": 2}),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "detectable_content:postscript",
     {"postscript_marker": "P.S."}),
    ("keywords:existence", {"keywords": ["lamp", "tower"]}, "keywords:existence", {"keywords": ["lamp", "tower"]}),
    ("keywords:forbidden_words", {"forbidden_words": ["ship"]}, "keywords:forbidden_words",
     {"forbidden_words": ["ship"]}),
    ("keywords:frequency", {"keyword": "lamp", "frequency": 2, "relation": AT_LEAST}, "keywords:frequency",
     {"keyword": "lamp", "min": 2}),
    ("keywords:letter_frequency", {"letter": "e", "let_frequency": 12, "let_relation": AT_LEAST},
     "keywords:letter_frequency", {"letter": "e", "min": 12}),
    ("length_constraints:number_words", {"num_words": 20, "relation": AT_LEAST}, "length_constraints:number_words",
     {"min": 20}),
    ("length_constraints:number_words", {"num_words": 20, "relation": LESS_THAN}, "length_constraints:number_words",
     {"max": 19}),
    ("length_constraints:number_sentences", {"num_sentences": 3, "relation": AT_LEAST},
     "length_constraints:number_sentences", {"min": 3}),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "length_constraints:number_paragraphs",
     {"min": 2, "max": 2, "divider": "***"}),
    ("change_case:english_capital", {}, "change_case:uppercase", {}),
    ("change_case:english_lowercase", {}, "change_case:lowercase", {}),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": AT_LEAST},
     "change_case:capital_word_frequency", {"min": 2}),
    ("combination:two_responses", {}, "combination:two_responses", {}),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Where is the lamp?"}, "combination:repeat_prompt",
     {"prompt_to_repeat": "Where is the lamp?"}),
)  # fmt: skip
"""(IFEval's id, its arguments, qgate's check, its arguments)."""

TEXTS = (
    "The lamp stands in the tower.",
    "The lamp, which is old, stands in the tower. A lamp needs oil. Nobody comes at night.",
    '"The keeper lights the lamp every evening before dinner."',
    "<<The Old Lamp>>\nIn the tower there is a lamp and a stove. Is that all?",
    '{"lamp": "green", "tower": 3}',
    '```json\n{"lamp": "green"}\n```',
    "* oil\n* wick\n* glass",
    "- oil\n- wick",
    "Dear [name], your lamp is in [place].\n\nP.S. Bring oil.",
    "THE LAMP STANDS IN THE TOWER OF STONE.",
    "the lamp stands in the tower of stone.",
    "The ship is late. The harbour waits. The keeper sleeps. The lamp burns on through the night and nobody sees it at all.",
    "Where is the lamp? It is in the tower.",
    "It is green.\n***\nIt stands in the tower.",
    "The lamp is green.\n******\nThe lamp stands in the tower.",
    "NASA built the tower and the BBC filmed it.",
    "no",
)

DIFFERENT: dict[tuple[str, str], str] = {
    (
        "detectable_format:json_format",
        TEXTS[2],
    ): "IFEval takes any JSON value, a bare string too; here an object or array",
    ("length_constraints:number_sentences", TEXTS[6]): "each entry of a list is a sentence here; nltk joins lines",
    ("length_constraints:number_sentences", TEXTS[8]): "`P.S.` ends a sentence for nltk",
    ("change_case:english_lowercase", TEXTS[4]): "langdetect takes JSON for another language",
    ("change_case:english_lowercase", TEXTS[5]): "langdetect takes JSON for another language",
    ("change_case:english_lowercase", TEXTS[7]): "langdetect guesses at two words",
    ("change_case:english_lowercase", TEXTS[16]): "langdetect guesses at one word",
}
"""Where the two say otherwise, and why: qgate is the stricter, or does not guess the language."""
