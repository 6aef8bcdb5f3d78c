"""repro.md: an incident's cause and evidence on one page that can be pasted into an issue tracker. Pure.

Text of a model or of a user enters escaped or in a fence that it cannot end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from qgate.judge.attribution import CAUSES
from qgate.reports import repro_words as words
from qgate.reports.markdown import escape, grid
from qgate.reports.rate_picture import as_text
from qgate.reports.visible import visible
from qgate.schemas.minimised import Body
from qgate.schemas.repro import Repro

EXAMPLE_CHARS = 600
BODY_CHARS = 6000


def render(report: Repro, snippet: str = "") -> str:
    """The page, ending in a newline. `snippet`: how the scripts beside it were checked."""
    parts = [_head(report), _evidence(report), _suspects(report), _minimal(report), _answer(report), _facts(report)]
    parts.append(_again(report, snippet))
    return "\n\n".join(part for part in parts if part) + "\n"


def fence(text: str, language: str = "") -> str:
    """`text` in a code fence that is longer than any run of backticks in it."""
    longest = max((len(found) for found in re.findall(r"`+", text)), default=0)
    ticks = "`" * max(3, longest + 1)
    return f"{ticks}{language}\n{text}\n{ticks}"


def _head(report: Repro) -> str:
    found = report.attribution
    lines = [
        f"# {escape(report.title or 'Incident')}",
        f"**{escape(words.verdict_line(report))}.** {escape(found.summary)}.",
    ]
    if found.would_raise:
        what = "What would raise the confidence" if found.confidence else "What is missing"
        lines.append(f"{what}: {escape('; '.join(found.would_raise))}.")
    lines.append(f"Next: {escape(words.NEXT[found.cause])}.")
    return "\n\n".join(lines)


def _evidence(report: Repro) -> str:
    body = [
        (escape(row.change), escape(words.failed_of(row.candidate)), escape(words.failed_of(row.baseline)), row.effect,
         escape(row.separates))
        for row in words.rows(report)
    ]  # fmt: skip
    head = ("changed", "candidate fails", "unquantized fails", "the failure", "tells apart")
    alpha = f"{report.attribution.alpha:g}"
    note = (
        f"Stays, gone: against the candidate as filed, one-sided Fisher exact tests at {alpha} per comparison, shared by "
        "the looks taken; bounds by Clopper-Pearson."
    )
    refused = "\n".join(f"- {escape(line)}" for line in words.refusals(report))
    return "\n\n".join(part for part in ("## Evidence", grid(head, body), note, refused) if part)


def _suspects(report: Repro) -> str:
    if not (found := words.causes(report)):
        return ""
    body = [
        (CAUSES[each.cause], each.state,
         escape(each.because + (f"; missing: {each.missing}" if each.missing else "")))
        for each in found
    ]  # fmt: skip
    return f"## Causes\n\n{grid(('cause', '', 'because'), body)}"


def _minimal(report: Repro) -> str:
    if (found := report.minimised) is None:
        return f"## Request\n\n{_body(report.request)}"
    lines = ["## Minimal request", f"{words.shrunk(found)}."]
    asked = [
        f"{'unquantized' if each.arm == 'baseline' else each.arm} {words.failed_of(each)}" for each in report.minimal
    ]
    lines += [f"Asked this, {'; '.join(asked)} fail."] if asked else []
    lines.append(_body(found.body))
    if found_at := "; ".join(words.thresholds(found.thresholds)):
        lines.append(f"It {escape(found_at)}.")
    if picture := as_text(found.rate_map):
        lines += ["Failure rate over prompt length × temperature (95 % interval):", fence(picture, "text")]
    return "\n\n".join(lines)


def _body(body: Body) -> str:
    text = json.dumps(body, ensure_ascii=False, indent=1)
    cut = "" if len(text) <= BODY_CHARS else f"\n… {len(text) - BODY_CHARS} more characters, in full in repro.json"
    return fence(visible(text[:BODY_CHARS], keep_newlines=True) + cut, "json")


def _answer(report: Repro) -> str:
    if (shown := words.example(report)) is None:
        return ""
    heading, example = shown
    text = visible((example.text or "")[:EXAMPLE_CHARS], keep_newlines=True)
    why = example.why or words.other_defects(report)
    said = f"seed {example.seed}, {example.finish_reason}" + (f": {why}" if why else "")
    return f"## {heading}\n\n{escape(said)}\n\n{fence(text or '(empty)', 'text')}"


def _facts(report: Repro) -> str:
    return "## Facts\n\n" + "\n".join(f"- {escape(line)}" for line in _fact_lines(report))


def _fact_lines(report: Repro) -> Iterator[str]:
    for arm, facts in report.facts.items():
        checkpoint = report.checkpoints.get(arm, {})
        which = " ".join(filter(None, [checkpoint.get("precision"), checkpoint.get("digest", "")[:12]]))
        kernels = ", ".join(f"{name} {kernel}" for name, kernel in facts.kernels.items())
        version = "" if facts.version == "unknown" else f" {facts.version}"
        served = f"{facts.engine}{version} on {facts.device}, {facts.dtype or 'dtype unknown'}"
        yield f"{arm}: {which or 'a running server'}, served by {served}" + (f" ({kernels})" if kernels else "")
    yield f"both arms: {words.prompts(report)}"
    yield f"sampling as sent: {words.sampling(report)}; requests in flight: {report.incident.concurrency}"
    yield f"a failure is {report.recognised_by}"
    yield f"the replay sees a failure rate of {report.rate_to_detect:.3g} with 95 %"
    for each in report.differences:
        yield f"the arms' files differ: {each.where}: {each.candidate} (baseline: {each.baseline})"
    for line in (*report.not_isolated, *report.notes):
        yield f"not isolated: {line}" if line in report.not_isolated else line
    yield from (f"tried before: {line}" for line in report.incident.tried)


def _again(report: Repro, snippet: str) -> str:
    lines = [
        "## Again",
        fence("QGATE_URL=http://127.0.0.1:8000 sh repro.sh    # or: python3 repro.py", "sh"),
        "Both exit with 1 when the failure shows, and need nothing but a server of the candidate. " + snippet,
        f"Made by qgate {report.qgate_version}, {report.finished_at}.",
    ]
    return "\n\n".join(line.rstrip() for line in lines)
