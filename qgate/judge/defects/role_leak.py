"""role_leak: the answer runs on into the next turn or shows the chat template. A view in, a hit or None out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "role_leak"
SUMMARY = "control tokens of the chat template, or the next turn of the conversation, in the answer"

_CONTROL = re.compile(
    r"<\|(?:im_start|im_end|im_sep|endoftext|end_of_text|begin_of_text|eot_id|eom_id|start_header_id|end_header_id|end|user"
    r"|assistant|system|start_of_role|end_of_role|endofprompt|fim_\w+|pad|eos|bos|start|message|channel|return)\|>"
    r"|<(?:start|end)_of_turn>|\[/?INST\]|<<\/?SYS>>|<｜[^<>｜\n]{1,40}｜>|<(?:eos|bos|pad|unk|mask|sep|cls)>|</?s>"
    r"|\[(?:PAD|UNK|SEP|CLS|MASK|EOS|BOS)\]|<extra_id_\d+>|<\|reserved_special_token_\d+\|>"
)
_TURNS = re.compile(
    r"^(?:#+ |\*\*)?(?P<who>user|human|instruction|usuario|用户|ユーザー|사용자|пользователь)(?:\*\*)? ?[:：].*?"
    r"^(?:#+ |\*\*)?(?:assistant|ai|bot|response|gpt|asistente|助手|アシスタント|어시스턴트|ассистент)(?:\*\*)? ?[:：]",
    re.IGNORECASE | re.MULTILINE | re.DOTALL,
)
_LABEL = re.compile(r"^(?:### (?:Instruction|Human|User|Response|Assistant)s?:?|(?:Human|User):(?= ))", re.MULTILINE)
_BARE = re.compile(r"(?:^|[.!?。！？])(?:user|assistant)\n", re.MULTILINE)
_PAIRED = re.compile(r"<s>[^<\n]*</s>")


def detect(view: View) -> DefectHit | None:
    """The first control token or turn, unless prompt or answer speak of chat templates or dialogue."""
    text = view.text
    if view.seen.prompt is not None and view.wishes.dialogue:
        return None
    start = _control(text, view.wishes.text)
    if start is None and not view.wishes.dialogue:
        start = _turn(text, view.seen.cut)
    if start is None:
        return None
    return DefectHit(NAME, start, f"{text[start : start + 24]!r}")


def _control(text: str, prompt: str) -> int | None:
    if "<" not in text and "[" not in text:
        return None
    for match in _CONTROL.finditer(text):
        token = match.group()
        if token.lower() in prompt or _is_shown(text, match.start()):
            continue
        if token in {"<s>", "</s>"} and _PAIRED.search(text):
            continue
        return match.start()
    return None


def _is_shown(text: str, start: int) -> bool:
    """Whether it stands in code or quotes, as in a text about templates."""
    return text[max(0, start - 1) : start] in {"`", '"', "'", "“", "‘", "「"} or text.count("```", 0, start) % 2 == 1


def _turn(text: str, cut: bool) -> int | None:
    return None
