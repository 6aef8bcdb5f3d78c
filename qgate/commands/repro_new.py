"""`qgate repro new`: a curl command, a log line, a pasted request or an item of a run in, an incident file out."""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from qgate.commands.show import find_run
from qgate.errors import ExitCode, IncidentError, UserError
from qgate.io import incident as incident_file
from qgate.io import incident_curl, incident_log, incident_text
from qgate.io.redact import redact, redact_words
from qgate.io.scoring import load_scorer
from qgate.io.validation import reason
from qgate.judge.recognise import recogniser
from qgate.judge.request_body import opening
from qgate.levers import load_isolating
from qgate.ports import load_engine
from qgate.rooms.incident_run import Wanted, from_run
from qgate.schemas.incident import MOST_IN_FLIGHT, Frequency, Incident, Side
from qgate.schemas.variant import HubSource, LocalSource
from qgate.wording import counted


def new(arguments: argparse.Namespace) -> ExitCode:
    """Write the incident, and say what was taken out and what is still to be filled in. Raises QgateError."""
    if arguments.file.exists() and not arguments.force:
        raise UserError(f"{arguments.file} exists already", advice="choose another name, or pass --force")
    if arguments.engine is not None:
        load_engine(arguments.engine)
    made = _with_arguments(_made(arguments), arguments)
    incident_file.save(arguments.file, made)
    sys.stdout.write(f"{arguments.file}: {made.source}\n")
    if num := made.secrets_removed:
        sys.stdout.write(f"taken out: {counted(num, 'secret')} (keys, tokens, cookies, passwords)\n")
    for line in _still_open(made):
        sys.stdout.write(f"• {line}\n")
    sys.stdout.write(f"next: qgate repro {arguments.file}\n")
    return ExitCode.PASS


def _made(arguments: argparse.Namespace) -> Incident:
    """The incident as far as its source says."""
    base = arguments.file.resolve().parent
    if arguments.run is not None:
        if not arguments.variant or not arguments.item:
            raise UserError(
                "--run needs --variant and --item", advice="--item set/item, or a whole set/item/profile/seed"
            )
        sets_base = None if arguments.recipe is None else arguments.recipe.resolve().parent
        wanted = Wanted(arguments.variant, arguments.item, arguments.profile, arguments.seed, sets_base)
        return from_run(find_run(arguments.run, arguments.results / "runs"), wanted, base)
    answer = None if arguments.answer is None else _text(arguments.answer)
    if arguments.curl is not None:
        parsed = incident_curl.parse(_text(arguments.curl), _folder(arguments.curl))
        came, num = redact(incident_text.read_answer(answer))
        side = _candidate(arguments, base) or _served(parsed)
        return _incident("a curl command", parsed.request, came, side, parsed.num_secrets + num)
    if arguments.log is not None:
        pasted = incident_log.from_log(_text(arguments.log), arguments.item)
    else:
        pasted = incident_text.from_pasted(_text(arguments.request), answer)
    named = _candidate(arguments, base)
    if named is None:
        raise IncidentError(f"{pasted.source} does not say what answered", advice="--candidate CHECKPOINT_OR_URL")
    came, num = (pasted.answer, 0) if answer is None else redact(incident_text.read_answer(answer))
    return _incident(pasted.source, pasted.request, came, named, pasted.num_secrets + num)


def _incident(source: str, request: Any, answer: Any, candidate: Side, num_secrets: int) -> Incident:
    return Incident(
        kind="incident", version=1, request=request, answer=answer, candidate=candidate, source=source,
        secrets_removed=num_secrets,
    )  # fmt: skip


def _with_arguments(made: Incident, arguments: argparse.Namespace) -> Incident:
    """What the command line says beside; every text without its secrets."""
    base = arguments.file.resolve().parent
    tried, num_tried = redact([*made.tried, *arguments.tried])
    title, num_title = redact(arguments.title or made.title or _title(made))
    update: dict[str, Any] = {"title": title}
    if tried:
        update["tried"] = tuple(tried)
    if arguments.concurrency is not None:
        if not 1 <= arguments.concurrency <= MOST_IN_FLIGHT:
            raise UserError(
                f"--concurrency {arguments.concurrency} is too few or too many", advice=f"from 1 to {MOST_IN_FLIGHT}"
            )
        update["concurrency"] = arguments.concurrency
    if arguments.seen is not None:
        update["frequency"] = _frequency(arguments.seen)
    if arguments.baseline is not None:
        update["baseline"] = _side(arguments.baseline, base, engine=arguments.engine)
    removed = made.secrets_removed + num_tried + num_title
    return made.model_copy(update={**update, "secrets_removed": removed})


def _title(made: Incident) -> str:
    """The model that was asked, and the start of what it was asked."""
    model, body = made.candidate.model, made.request.body
    return ": ".join(filter(None, (str(body.get("model") or model or ""), opening(body)))) or made.source


def _candidate(arguments: argparse.Namespace, base: Path) -> Side | None:
    if arguments.candidate is None:
        return None
    launch = arguments.launch or ""
    try:
        num = redact_words(shlex.split(launch))[1]
    except ValueError as error:
        raise UserError(f"--launch cannot be read as a shell does: {error}", advice="close its quotes") from error
    if num:
        raise UserError("--launch holds a secret", advice="leave the key out: it does not matter for the answer")
    if launch and "://" in arguments.candidate:
        raise UserError("--launch belongs to a checkpoint, and --candidate is a URL", advice="leave one of them out")
    side = _side(arguments.candidate, base, engine=arguments.engine, launch=launch)
    if launch:
        _check_launch(side.engine_name, shlex.split(launch))
    return side


def _check_launch(engine: str, words: list[str]) -> None:
    """Raises UserError where `qgate repro` would not take the launch arguments."""
    try:
        if (isolating := load_isolating(engine)) is not None:
            isolating.launched(words)
            return
    except ValueError as error:
        raise UserError(f"--launch: {error}", advice="leave it out, or what of it the engine does not take") from error
    raise UserError(f"the engine {engine} takes no launch arguments", advice="leave --launch out")


def _side(named: str, base: Path, *, engine: str | None, launch: str = "") -> Side:
    """A URL, a folder, or `owner/name@revision` of the hub; only what is said is set."""
    if "://" in named:
        try:
            return Side(url=named)
        except ValidationError as error:
            raise UserError(f"--candidate or --baseline: {reason(error)}") from error
    said: dict[str, Any] = {"engine": engine, "launch": launch}
    hub = re.fullmatch(r"([\w.-]+/[\w.-]+)@([\w./-]+)", named)
    if hub is not None and not Path(named).exists():
        said["checkpoint"] = HubSource(hub=hub[1], revision=hub[2])
    else:
        said["checkpoint"] = LocalSource(path=_relative(Path(named), base))
    return Side(**{name: value for name, value in said.items() if value})


def _relative(path: Path, base: Path) -> Path:
    """As seen from the incident file, where it lies below it."""
    full = path.resolve()
    return full.relative_to(base) if full.is_relative_to(base) else full


def _served(parsed: incident_curl.Parsed) -> Side:
    """The server that the command asked. Raises IncidentError where its address cannot be asked again."""
    model = parsed.request.body.get("model")
    try:
        return Side(url=parsed.base_url, **({"model": model} if isinstance(model, str) else {}))
    except ValidationError as error:
        raise IncidentError(
            f"the curl command's URL cannot be asked again: {reason(error)}",
            advice="put the address in place of a shell variable, or name what answered: --candidate CHECKPOINT_OR_URL",
        ) from error


def _frequency(text: str) -> Frequency:
    found = re.fullmatch(r"(\d+)/(\d+)", text)
    if found is None or not 0 < int(found[1]) <= int(found[2]):
        raise UserError(f"--seen {text!r} is no count", advice="write 3/10 for three failures of ten tries")
    return Frequency(failures=int(found[1]), tries=int(found[2]))


def _text(path: Path) -> str:
    if str(path) == "-":
        return sys.stdin.read()
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UserError(
            f"cannot read {path}: {error.strerror}", advice="check the path; - is standard input"
        ) from error
    except UnicodeDecodeError as error:
        raise UserError(f"cannot read {path}: it is not UTF-8", advice="save it again as UTF-8") from error


def _folder(path: Path) -> Path:
    return Path.cwd() if str(path) == "-" else path.resolve().parent


def _still_open(made: Incident) -> list[str]:
    """What counts as the failure, and what would make the incident tell more."""
    lines = [_recognised(made)]
    if made.baseline is None:
        lines.append("no baseline: without the unquantized model little can be told apart (--baseline, or in the file)")
    if made.candidate.url is not None:
        lines.append("the candidate is a running server: with its checkpoint (--candidate) more can be isolated")
        if made.secrets_removed:
            lines.append(
                "where that server wants a key, name the variable that holds it: `candidate: {api_key_env: …}`"
            )
    if made.frequency is None:
        lines.append("how often it happened is not said: a rate of 10 % will be looked for (--seen 3/10)")
    return lines


def _recognised(made: Incident) -> str:
    if made.answer is None and made.recognise.is_default:
        return "no answer is filed: any defect counts as the failure; --answer or `recognise` would say which"
    found = recogniser(made, load_scorer)
    if found.defects or not made.recognise.is_default:
        return f"the failure is {found.in_words()} (`recognise`)"
    return (
        f"the answer has no defect that is known: the failure is {found.in_words()}; where it comes in other words, say "
        "under `recognise` what is wrong with it (regex, finish_reason, scorer)"
    )
