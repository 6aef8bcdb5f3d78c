"""`qgate evalset`: list, verify, lock, show, count and make evaluation sets. Arguments in, an exit code out."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from qgate.errors import EvalsetError, ExitCode
from qgate.io import evalset_new, evalsets, row_map, rows
from qgate.io.dataset import HubDataset, fetch
from qgate.io.evalset_import import Imported
from qgate.io.evalset_new import Terms
from qgate.io.evalset_stats import stats as count
from qgate.io.scoring import load_scorer, scorers_of, with_references
from qgate.schemas.evalset import Evalset, Item
from qgate.schemas.recipe import EvalsetUse
from qgate.wording import counted

PREVIEW_CHARS = 60
MOST_VALUES_SHOWN = 40
LINES = frozenset({".jsonl", ".json", ".ndjson", ".txt", ""})
"""Suffixes of files that are read as questions or requests, line by line."""


def list_sets(arguments: argparse.Namespace) -> ExitCode:
    """The shipped sets."""
    table = Table("set", "items", "sha256", "description", box=None, header_style="bold")
    for manifest in evalsets.available():
        sha256 = evalsets.set_hash(manifest)[:12]
        table.add_row(manifest.full_name, str(manifest.num_items), sha256, manifest.description)
    Console().print(table)
    return ExitCode.PASS


def verify(arguments: argparse.Namespace) -> ExitCode:
    """Check every byte, line and scorer of the sets named, or of all shipped ones. Raises EvalsetError, PluginError."""
    names = arguments.sets or [manifest.full_name for manifest in evalsets.available()]
    for name in names:
        loaded = _load(name)
        Console().print(
            f"{loaded.full_name}: {counted(len(loaded.items), 'item')}, sha256 {loaded.sha256}", soft_wrap=True
        )
    return ExitCode.PASS


def lock(arguments: argparse.Namespace) -> ExitCode:
    """Pin a set's files as they are; the version rises where they changed. Raises EvalsetError."""
    manifest = evalsets.lock(arguments.folder, keep_version=arguments.keep_version)
    sha256 = evalsets.set_hash(manifest)
    Console().print(f"{manifest.full_name}: {counted(manifest.num_items, 'item')}, sha256 {sha256}", soft_wrap=True)
    return ExitCode.PASS


def show(arguments: argparse.Namespace) -> ExitCode:
    """Every item in a line, or one of them in full. Raises EvalsetError."""
    loaded = _load(arguments.set)
    if arguments.item is not None:
        _show_item(loaded, arguments.set, arguments.item)
        return ExitCode.PASS
    table = Table("id", "kind", "language", "difficulty", "scorer", "prompt ends", box=None, header_style="bold")
    for item in loaded.items:
        tail = visible(item.messages[-1].content)[-PREVIEW_CHARS:]
        table.add_row(item.id, item.kind, item.language, str(item.difficulty), item.scorer.name, Text(tail))
    Console().print(table)
    return ExitCode.PASS


def stats(arguments: argparse.Namespace) -> ExitCode:
    """How many items a set has of each kind, language and slice. Raises EvalsetError."""
    loaded = _load(arguments.set)
    found = count(loaded)
    least, middle, most = found.prompt_chars
    console = Console()
    items = counted(found.num_items, "item")
    twins = f"{found.num_twins} of them noised twins"
    told = f"{loaded.full_name}: {items}, {twins}, {found.num_references} with a right answer in full"
    console.print(told, soft_wrap=True)
    console.print(f"prompt length in characters: {least} to {most}, median {middle:g}")
    table = Table("slice", "items", box=None, header_style="bold")
    for key, values in found.counts.items():
        shown = [f"{value} {num}" for value, num in list(values.items())[:MOST_VALUES_SHOWN]]
        table.add_row(key, Text("  ".join(shown) + (" …" if len(values) > MOST_VALUES_SHOWN else "")))
    console.print(table)
    return ExitCode.PASS


def new(arguments: argparse.Namespace) -> ExitCode:
    """Make a set from questions, recorded requests, or columns of a table. Raises EvalsetError, StoreError."""
    evalset_new.refuse_existing(arguments.folder)
    _refuse_idle(arguments)
    if arguments.map or arguments.dataset:
        name, imported = arguments.dataset or str(arguments.source), _of_columns(arguments)
    elif not arguments.source.exists():
        raise EvalsetError(f"no file or folder {arguments.source}", advice="a dataset on the hub is named by --dataset")
    elif _is_table(arguments.source):
        raise EvalsetError(
            f"{arguments.source} is read as a table: which column is what?",
            advice="--map prompt=COLUMN --map answer=COLUMN --scorer NAME",
        )
    elif arguments.source.suffix not in LINES:
        raise EvalsetError(
            f"{arguments.source} is by its name neither JSON lines nor a table",
            advice=f"questions or requests: .jsonl; tables: {', '.join(rows.TABLES)}, or a folder",
        )
    else:
        name = str(arguments.source)
        imported = evalset_new.new(
            arguments.folder,
            arguments.source,
            description=arguments.description,
            license_id=arguments.license,
            skip_bad=arguments.skip_bad,
        )
    console = Console()
    if imported.faults:
        console.print(f"bad lines, left out ({len(imported.faults)}):", soft_wrap=True)
        console.print(Text(evalset_new.tell(imported.faults, name)), soft_wrap=True)
    if imported.num_secrets:
        console.print(f"secrets removed: {imported.num_secrets}")
    items = counted(len(imported.items), "item")
    console.print(f"{arguments.folder}: {items}; name it in a recipe by this path", soft_wrap=True)
    return ExitCode.PASS


def _refuse_idle(arguments: argparse.Namespace) -> None:
    """Raises EvalsetError for an option that would change nothing, and for a limit that leaves nothing."""
    of_hub = arguments.dataset is not None
    of_columns = of_hub or bool(arguments.map) or _is_table(arguments.source)
    uses = (
        ("revision", of_hub, "--dataset"),
        ("config", of_hub, "--dataset"),
        ("split", of_hub or arguments.source.is_dir(), "--dataset, or with a folder that `datasets` saved"),
        ("scorer", of_columns, "--map; without it each line names its own"),
        ("limit", of_columns, "--map; a recipe cuts a set by `limit`"),
    )
    for option, is_used, needed in uses:
        if getattr(arguments, option) is not None and not is_used:
            raise EvalsetError(f"--{option} would change nothing", advice=f"it goes with {needed}")
    if arguments.limit is not None and arguments.limit < 1:
        raise EvalsetError(f"--limit {arguments.limit} leaves no row", advice="a number from 1 on")


def _is_table(source: Path) -> bool:
    return source.is_dir() or source.suffix in rows.TABLES


def _of_columns(arguments: argparse.Namespace) -> Imported:
    """A set from a table, on disk or on the hub, and a map of its columns."""
    how = row_map.parse(arguments.map, arguments.scorer)
    load_scorer(how.scorer)
    revision = arguments.revision
    if arguments.dataset is None:
        name, found = str(arguments.source), rows.read(arguments.source, arguments.split)
    else:
        if revision is None:
            raise EvalsetError(
                f"{arguments.dataset} has no --revision, so tomorrow it may be other rows",
                advice="name a commit, a tag or a branch; what is recorded is the commit",
            )
        hub = HubDataset(arguments.dataset, revision, arguments.split or "test", arguments.config, arguments.env)
        name, (found, revision) = arguments.dataset, fetch(hub, how.columns)
    data = row_map.to_lines(found, how, arguments.limit)
    terms = Terms(arguments.description, arguments.license, _again(arguments, revision))
    return evalset_new.make(arguments.folder, data, name, terms, skip_bad=arguments.skip_bad)


def _again(arguments: argparse.Namespace, revision: str | None) -> str:
    """The command that makes the very same set."""
    told = {"from": arguments.source, "dataset": arguments.dataset, "revision": revision, "split": arguments.split}
    told |= {"config": arguments.config, "scorer": arguments.scorer, "limit": arguments.limit}
    words = ["qgate", "evalset", "new", str(arguments.folder)]
    words += [word for name, value in told.items() if value is not None for word in (f"--{name}", str(value))]
    words += [word for pair in arguments.map for word in ("--map", pair)]
    return shlex.join(words)


def visible(text: str) -> str:
    """`text` with line ends and every other character that a terminal would obey written as an escape."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def _load(name: str) -> Evalset:
    """The set, every scorer in it checked, with the right answers that they know. Raises EvalsetError, PluginError."""
    if not name:
        raise EvalsetError("the name of a set is empty", advice="qgate evalset list")
    found = evalsets.load(EvalsetUse(name=name), Path.cwd())
    return with_references(found, scorers_of([found]))


def _show_item(loaded: Evalset, name: str, item_id: str) -> None:
    item = next((item for item in loaded.items if item.id == item_id), None)
    if item is None:
        raise EvalsetError(f"{loaded.full_name} has no item {item_id!r}", advice=f"qgate evalset show {name}")
    Console().print(Text(_told(item)), soft_wrap=True)


def _told(item: Item) -> str:
    """An item in full."""
    slices = "  ".join(f"{key}={value}" for key, value in item.slices.items())
    turns = [f"[{turn.role}]\n" + "\n".join(map(visible, turn.content.split("\n"))) for turn in item.messages]
    head = f"{item.id}  {item.kind}  {item.language}  difficulty {item.difficulty}  {slices}"
    twin = f"twin of {item.twin_of}\n" if item.twin_of else ""
    right = [f"right answer {visible(item.reference)}"] if item.reference else []
    return "\n".join([head, f"{twin}scorer {item.scorer.name} {item.scorer.args}", *right, "", *turns])
