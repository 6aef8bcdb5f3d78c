"""`similarity`, `chrf`, `bleu` and `ter`: how near an answer comes to reference texts. Pure."""

from __future__ import annotations

from pydantic import Field
from rapidfuzz.fuzz import ratio

from qgate.schemas.base import Frozen
from qgate.scorers.builtin import BuiltIn
from qgate.scorers.text import Phrase, normalise, primary

_BLEU_TOKENIZERS = {"zh": "zh", "ja": "char", "th": "char"}


class ReferenceArgs(Frozen):
    """Arguments of `similarity`, `chrf`, `bleu`, `ter` and `token_f1`."""

    values: tuple[Phrase, ...] = Field(min_length=1, description="Reference texts, any of which will do")


def first_text(args: ReferenceArgs) -> str:
    """The first of the reference texts."""
    return args.values[0]


def _similarity(text: str, args: ReferenceArgs, language: str) -> float:
    answer = normalise(text)
    return max(ratio(answer, normalise(value)) for value in args.values) / 100 if answer else 0.0


def _chrf(text: str, args: ReferenceArgs, language: str) -> float:
    from sacrebleu.metrics.chrf import CHRF  # noqa: PLC0415 (a tenth of a second that most runs never need)

    return _share(CHRF(word_order=2).sentence_score(text, list(args.values)).score)


def _bleu(text: str, args: ReferenceArgs, language: str) -> float:
    from sacrebleu.metrics.bleu import BLEU  # noqa: PLC0415 (as above)

    metric = BLEU(tokenize=_BLEU_TOKENIZERS.get(primary(language), "13a"), effective_order=True)
    return _share(metric.sentence_score(text, list(args.values)).score)


def _ter(text: str, args: ReferenceArgs, language: str) -> float:
    from sacrebleu.metrics.ter import TER  # noqa: PLC0415 (as above)

    if not normalise(text):
        return 0.0
    metric = TER(normalized=True, asian_support=primary(language) in _BLEU_TOKENIZERS)
    return 1.0 - _share(metric.sentence_score(text, list(args.values)).score)


def _share(percent: float) -> float:
    return min(1.0, max(0.0, percent / 100))


SIMILARITY = BuiltIn(
    "similarity",
    "Normalised Indel similarity (rapidfuzz) to the nearest reference, after normalisation",
    ReferenceArgs,
    _similarity,
    first_text,
)

CHRF = BuiltIn(
    "chrf",
    "chrF++ (Popović 2017) by sacrebleu, over 100: the references' best n-gram F-score, character 6 and word 2",
    ReferenceArgs,
    _chrf,
    first_text,
)

BLEU = BuiltIn(
    "bleu",
    "Sentence BLEU by sacrebleu with effective order, over 100; zh by its tokenizer, ja and th by character",
    ReferenceArgs,
    _bleu,
    first_text,
)

TER = BuiltIn(
    "ter",
    "1 − translation edit rate (Snover 2006) by sacrebleu, at least 0: edits and shifts of words per word of a reference",
    ReferenceArgs,
    _ter,
    first_text,
)
