"""Stored answers of a server that is somebody else's in, which of them are to be asked again out. Touches the store.

What such a server refused or left unanswered may be its settings', which its owner mends without a word to qgate: the next
run asks those again. Stored objects do not change, so what comes then is one of its own, whose key follows the first's.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from qgate.io.answer_log import AnswerLog, num_whole, read_answers
from qgate.io.store import Store
from qgate.keys import again_key
from qgate.ports import Attached, Engine

KIND = "generations"
FAILED = frozenset({"error", "timeout"})


def last_key(store: Store, key: str) -> str:
    """The key of the answers that count: what was stored last, or `key` itself."""
    while store.find(KIND, following := again_key(key)) is not None:
        key = following
    return key


def to_ask_again(engine: Engine, folder: Path) -> frozenset[str]:
    """Ids of stored answers that did not come; none of an engine whose servers are qgate's own. Raises ArtefactError."""
    if not isinstance(engine, Attached):
        return frozenset()
    return frozenset(answer.id for answer in read_answers(folder) if answer.status in FAILED)


def keep_come(stored: Path, folder: Path, beside: str) -> None:
    """Put the answers of `stored` that came into an empty `folder`, and the file `beside` them. Raises StoreError."""
    if num_whole(folder):
        return
    with AnswerLog(folder) as log:
        for answer in read_answers(stored):
            if answer.status not in FAILED:
                log.append(answer)
    if (stored / beside).exists():
        shutil.copyfile(stored / beside, folder / beside)
