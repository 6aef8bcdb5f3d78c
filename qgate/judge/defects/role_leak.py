"""role_leak: the answer runs on into the next turn or shows the chat template. A view in, a hit or None out. Pure."""

from __future__ import annotations

import re

from qgate.judge.defects.view import View
from qgate.schemas.evidence import DefectHit

NAME = "role_leak"
SUMMARY = "control tokens of the chat template, or the next turn of the conversation, in the answer"

_CONTROL = re.compile(
    r"<\|[A-Za-z]\w{1,40}\|>|<(?:start|end)_of_turn>|\[/?INST\]|<</?SYS>>|<｜[^<>｜\n]{1,40}｜>|</s>|\A<s>"
    r"|<(?:eos|bos|pad|unk|mask|sep|cls)>|<(?:EOS|BOS|PAD|UNK)(?:_TOKEN)?>|<(?:extra_id_|unused|reserved_)\d+>"
    r"|\[(?:PAD|UNK|SEP|CLS|MASK|EOS|BOS|gMASK|TOOL_CALLS|AVAILABLE_TOOLS)\]"
)
"""Special tokens of the families of models in use; in `<|…|>` whatever stands there, since no language writes it."""
_USER = r"(?:user|human|usuario|utilisateur|benutzer|用户|用戶|ユーザー|사용자|пользователь|المستخدم)"
_MODEL = r"(?:assistant|ai|bot|chatbot|gpt|model|asistente|助手|助理|アシスタント|어시스턴트|ассистент|المساعد)"
_LABEL = r"\n[ \t]*(?:#+ ?|\*\*|\[|<)?{}(?:\*\*|\]|>)? ?(?:[:：]|\n)"
_USER_TURN = re.compile(_LABEL.format(_USER), re.IGNORECASE)
_MODEL_TURN = re.compile(_LABEL.format(_MODEL), re.IGNORECASE)
_SURE_TURN = re.compile(
    r"\n#{2,3} ?(?:Instruction|Human|User)s?:|\n\nHuman: |[.!?。！？](?:user|assistant)\n\n?(?=\S)"
    r"|\A\s*(?:assistant|model)\n\s*(?=\S)"
)
_PAIRED = re.compile(r"<s>[^<\n]*</s>")


def detect(view: View) -> DefectHit | None:
    """The first control token or turn, unless the prompt asks for chat templates or for dialogue."""
    wishes = view.wishes
    start = None if wishes.templates else _control(view.text, wishes.text)
    if start is None and not (wishes.dialogue or wishes.templates):
        start = _turn(view.text, wishes.text)
    return None if start is None else DefectHit(NAME, start, repr(view.text[start : start + 24]))


def _control(text: str, prompt: str) -> int | None:
    if "<" not in text and "[" not in text:
        return None
    for match in _CONTROL.finditer(text):
        token = match.group()
        if token.lower() in prompt or _is_shown(text, match.start()):
            continue
        if token == "</s>" and _PAIRED.search(text):
            continue
        return match.start()
    return None


def _is_shown(text: str, start: int) -> bool:
    """Whether it stands in code or quotes, as in a text about templates."""
    return text[max(0, start - 1) : start] in {"`", '"', "'", "“", "‘", "「"} or text.count("```", 0, start) % 2 == 1


def _turn(text: str, prompt: str) -> int | None:
    """Where the answer goes on with the user's next turn: a label of the user's, then one of the model's."""
    sure = _SURE_TURN.search(text)
    if sure is not None and sure.group().strip().lower() not in prompt:
        return sure.start()
    user = _USER_TURN.search(text)
    if user is None or not text[: user.start()].strip() or _MODEL_TURN.match("\n" + text.lstrip()[:40]) is not None:
        return None
    if user.group().strip().lower() in prompt or _MODEL_TURN.search(text, user.end()) is None:
        return None
    return user.start()
