"""summary.md: a run's outcome as GitHub-flavoured Markdown, for a step summary or a pull request. Pure: values in, text out.

No text is trusted: names, reasons and model output are escaped, so that none becomes a link, an image, HTML or a table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from qgate.judge.units import MISSING, number
from qgate.reports.visible import clip, offset_of, one_line
from qgate.reports.words import (
    EXIT_MEANING,
    NOT_ALLOWED,
    Column,
    columns_of,
    criterion_name,
    findings_of,
    in_tier,
    is_sound_baseline,
    labelled,
    precisions,
    rise,
    share,
    size,
    summary_of,
    tier_sentence,
    variants_of,
    verdict_word,
    worst_examples,
)
from qgate.schemas.run import Run
from qgate.schemas.verdict import Example, VariantVerdict, Verdict, VerdictSheet

NUM_EXAMPLES = 3
CLIP_CHARACTERS = 160
COMMENT_CHARACTERS = 60_000
"""GitHub refuses a comment of more than 65,536 characters."""
_LEAST_NEEDED = ("answers", "reasons", "findings", "figures", "tiers")
_SPECIAL = re.compile(r"[\\`*\[\]|~$]|(?<![^\W_])_|_(?![^\W_])|^(?:[#+=-]|\d+(?=[.)](?:\s|$)))")
_LINKED = re.compile(r"(?i)[@#](?=\w)|(?:https?|ftp|mailto)(?=:)|www(?=\.)")
_MARK = {
    "PASS": "✅ PASS",
    "FAIL": "❌ FAIL",
    "INCONCLUSIVE": "⚠️ INCONCLUSIVE",
    "INVALID": "⚠️ INVALID",
    "VOID": "➖ VOID",
}
_COST: tuple[Column, ...] = (
    ("Bits / weight", "bits_per_weight", number),
    ("Size", "weight_bytes", size),
    ("Score", "mean_score", share),
    ("Defects", "defect_share", share),
    ("tok/s", "tokens_per_s", number),
    ("KL, nats", "kl_mean", number),
    ("Top-1", "top1_agreement", share),
    ("KL, references", "reference_kl_mean", number),
    ("Perplexity, references", "reference_ln_perplexity_ratio", rise),
)


def render(run: Run, sheet: VerdictSheet) -> str:
    """The summary, ending in a newline."""
    return "\n\n".join(part for part in _parts(run, sheet).values() if part) + "\n"


def comment(run: Run, sheet: VerdictSheet) -> str:
    """The summary as a comment that a later run finds again by its first line, cut to what GitHub takes."""
    parts = _parts(run, sheet)
    marker = f"{comment_marker(sheet.recipe)}\n"
    for name in _LEAST_NEEDED:
        text = marker + "\n\n".join(part for part in parts.values() if part) + "\n"
        if len(text) <= COMMENT_CHARACTERS:
            return text
        parts[name] = f"*{name} left out: too long for a comment.*" if parts[name] else ""
    return marker + parts["verdicts"][:COMMENT_CHARACTERS].rpartition("\n")[0] + "\n\n" + parts["run"] + "\n"


def comment_marker(recipe: str) -> str:
    """The hidden first line of a recipe's comment."""
    return f"<!-- qgate {re.sub(r'[^a-z0-9._]+', '-', recipe.lower()).strip('-')} -->"


def _parts(run: Run, sheet: VerdictSheet) -> dict[str, str]:
    return {
        "verdicts": _head(run, sheet),
        "tiers": _matrix(run, sheet),
        "reasons": _reasons(sheet),
        "figures": _cost(run, sheet),
        "findings": _findings(run, sheet),
        "answers": _examples(sheet),
        "run": _foot(run, sheet),
    }


def escape(text: str) -> str:
    """`text` as plain words on one line, in any place of a Markdown document, a table's cell included.

    What would act is escaped by a backslash (CommonMark 0.31, 2.4); `<`, `>` and `&` become entities; web addresses,
    mentions and issue numbers, which GitHub links wherever they stand, are broken by a zero-width space.
    """
    plain = one_line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _LINKED.sub(r"\g<0>&#8203;", _SPECIAL.sub(_escaped, plain))


def _escaped(found: re.Match[str]) -> str:
    special = found.group()
    return f"{special}\\" if special.isdigit() else f"\\{special}"


def grid(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; cells are Markdown, so what is not trusted is escaped before."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _head(run: Run, sheet: VerdictSheet) -> str:
    precision = precisions(run, sheet)
    lines = [f"## qgate: {escape(sheet.recipe)}", ""]
    for tier in sheet.tiers:
        mark = _MARK.get(tier.verdict, tier.verdict.value)
        lines.append(f"- {mark}: **{escape(tier_sentence(tier, precision))}**\\\n  {escape(tier.reason)}")
    return "\n".join(lines) if sheet.tiers else f"{lines[0]}\n\n**Nothing was judged.**"


def _matrix(run: Run, sheet: VerdictSheet) -> str:
    precision, names = precisions(run, sheet), variants_of(sheet)
    rows = []
    for tier in sheet.tiers:
        words = [verdict_word(in_tier(tier, name)) for name in names]
        rows.append([f"**{escape(tier.tier)}**", *(_MARK.get(word, word) for word in words)])
    if not rows:
        return ""
    table = grid(["Tier", *(escape(labelled(name, precision)) for name in names)], rows)
    explained = (
        f"\n\n{NOT_ALLOWED}: the tier does not allow this variant." if any(NOT_ALLOWED in row for row in rows) else ""
    )
    return table + explained


def _reasons(sheet: VerdictSheet) -> str:
    """A row per variant and criterion that did not pass, FAIL first, with the tiers where it holds."""
    grouped: dict[tuple[str, ...], list[str]] = {}
    for tier in sheet.tiers:
        for variant in tier.variants:
            for cells in _not_passed(variant) if variant.allowed and not is_sound_baseline(variant) else ():
                grouped.setdefault(cells, []).append(tier.tier)
    rows = [[*cells[:2], escape(", ".join(tiers)), *cells[2:]] for cells, tiers in grouped.items()]
    rows.sort(key=lambda row: row[0] != _MARK[Verdict.FAIL])
    table = grid(["Verdict", "Variant", "Tiers", "Criterion", "Reason"], rows)
    return f"### What did not pass\n\n{table}" if rows else ""


def _not_passed(variant: VariantVerdict) -> list[tuple[str, ...]]:
    """A line per criterion that did not pass; the variant's own reason where no criterion says why."""
    failed = [each for each in variant.criteria if each.verdict is not Verdict.PASS]
    lines = [(each.verdict, escape(criterion_name(each)), each.reason) for each in failed]
    if not lines and variant.verdict is not Verdict.PASS:
        lines = [(variant.verdict, MISSING, variant.reason)]
    return [
        (_MARK.get(verdict, verdict.value), escape(variant.variant), name, escape(reason))
        for verdict, name, reason in lines
    ]


def _cost(run: Run, sheet: VerdictSheet) -> str:
    precision, names = precisions(run, sheet), [name for name in variants_of(sheet) if summary_of(sheet, name)]
    rows, columns = [], columns_of(sheet, _COST)
    for name in names:
        cells = [(shown, summary_of(sheet, name).get(key)) for _, key, shown in columns]
        rows.append([escape(labelled(name, precision)), *(shown(value) for shown, value in cells)])
    table = grid(["Variant", *(title for title, _, _ in columns)], rows)
    return f"### Quality against cost\n\n{table}" if rows else ""


def _findings(run: Run, sheet: VerdictSheet) -> str:
    lines = [f"- {escape(finding)}" for finding in findings_of(run, sheet)]
    return "### Findings\n\n" + "\n".join(lines) if lines else ""


def _examples(sheet: VerdictSheet) -> str:
    rows = [_example(example) for example in worst_examples(sheet, NUM_EXAMPLES)]
    if not rows:
        return ""
    table = grid(["Answer", "Defects", "Baseline", "Variant"], rows)
    return f"<details><summary>The worst answers beside the baseline's</summary>\n\n{table}\n\n</details>"


def _example(example: Example) -> list[str]:
    start = offset_of(example.where)
    texts = (clip(text, start, CLIP_CHARACTERS) for text in (example.baseline_text, example.variant_text))
    defects = ", ".join(example.defects) or "no defect"
    return [escape(f"{example.variant} · {example.id}"), escape(defects), *(escape(text) for text in texts)]


def _foot(run: Run, sheet: VerdictSheet) -> str:
    code = sheet.exit_code
    return (
        f"Run {escape(run.run_id)} · engine {escape(sheet.engine)} · exit code {code.value}: {EXIT_MEANING[code]}. "
        "The whole evidence is in report.html beside this file."
    )
