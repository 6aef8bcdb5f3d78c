"""Writes the tables of docs/inspect.md from the findings that qgate declares; the prose around them stays.

    python docs/make_inspect.py

tests/unit/test_reference.py's neighbour, tests/unit/inspection/test_page.py, fails where the committed page differs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from qgate.inspection import (
    blank,
    completeness,
    config,
    ends,
    essentials,
    fields,
    group_index,
    inputs,
    kv_cache,
    membership,
    misfits,
    parallel,
    processor,
    scales,
    serving,
    shards,
    template,
    tensors,
    tokenizer,
    vocabulary,
    weights,
    zero_points,
)
from qgate.inspection.codes import Code

PAGE = Path(__file__).with_name("inspect.md")
START, END = "<!-- findings: made by docs/make_inspect.py -->\n", "<!-- end of findings -->\n"
PARTS: dict[str, tuple[tuple[Code, ...], ...]] = {
    "Weight files": (shards.CODES, blank.CODES),
    "Which layers are quantized": (membership.CODES,),
    "Tensors": (tensors.CODES, completeness.CODES, essentials.CODES, vocabulary.CODES),
    "Scales, zero points and groups": (
        scales.CODES,
        inputs.CODES,
        zero_points.CODES,
        group_index.CODES,
        kv_cache.CODES,
    ),
    "Kernels and tensor parallelism": (serving.CODES, parallel.CODES),
    "Tokenizer and chat template": (tokenizer.CODES, template.CODES, processor.CODES),
    "config.json": (config.CODES, misfits.CODES, ends.CODES, fields.CODES),
    "Weights": (weights.CODES,),
}


def tables() -> str:
    """Every finding, by what it is about."""
    return "".join(f"### {title}\n\n{_table(codes)}\n" for title, codes in PARTS.items())


def page(text: str) -> str:
    """`text` with the tables in their place."""
    head, _, rest = text.partition(START)
    return f"{head}{START}\n{tables()}{END}{rest.partition(END)[2]}"


def _table(groups: Iterable[tuple[Code, ...]]) -> str:
    rows = [f"| `{c.name}` | {c.severity} | {c.breaks} | {c.fix} |\n" for codes in groups for c in codes]
    return "| finding | severity | what it breaks | fix |\n| --- | --- | --- | --- |\n" + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
