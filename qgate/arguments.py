"""The verbs and their options: argv in, parsed words out. Touches nothing but the environment (QGATE_RESULTS).

Each verb names its function as `module:function`, imported only when it is called, so that `qgate --help` stays quick.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from qgate import __version__
from qgate.parser import Parser

EPILOG = """\
exit codes: 0 every tier's default variant passes   1 a tier fails   2 the recipe or an argument is wrong
            3 inconclusive, or could not judge      4 a bug in qgate 130 interrupted; the same command goes on
start here: qgate init recipe.yaml; qgate plan recipe.yaml; qgate run recipe.yaml"""
REPRO_NEW = "repro new"


def _verb(parsers: Any, name: str, target: str | None, text: str) -> Parser:
    parser: Parser = parsers.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    parser.calls(target)
    return parser


def _results(parser: argparse.ArgumentParser) -> None:
    default = Path(os.environ.get("QGATE_RESULTS", "results"))
    parser.add_argument(
        "--results", type=Path, default=default, metavar="DIR", help="store and runs (default: results)"
    )


def _recipe_verbs(verbs: Any) -> None:
    run = _verb(verbs, "run", "run:run", "quantize, serve, generate, diff and judge; the exit code is the verdict")
    run.add_argument("recipe", type=Path, help="recipe file; `qgate init` writes one to start from")
    _results(run)
    run.add_argument("--quiet", action="store_true", help="no progress, only the verdict")
    run.add_argument(
        "--fail-on",
        choices=("fail", "inconclusive"),
        default="inconclusive",
        help="mildest verdict that ends with another code than 0 (default: inconclusive)",
    )
    plan = _verb(verbs, "plan", "plan:plan", "show what a run would do, what is stored already, and sizes")
    plan.add_argument("recipe", type=Path, help="recipe file")
    _results(plan)
    plan.add_argument(
        "--gpu-memory", metavar="80GiB", help="plan servers for empty GPUs of this size, not this machine's"
    )
    plan.add_argument("--gpus", type=int, metavar="N", help="with --gpu-memory: how many of them (default: 1)")
    show = _verb(verbs, "show", "show:show", "show a finished run's verdict again")
    show.add_argument("run", nargs="?", help="folder or id of a run (default: the latest)")
    _results(show)
    compare = _verb(
        verbs, "compare", "compare:compare", "what got worse from one run to another; exit 1: something did"
    )
    compare.add_argument("earlier", metavar="RUN_A", help="folder or id of the earlier run")
    compare.add_argument("later", metavar="RUN_B", help="folder or id of the later run")
    _results(compare)
    init = _verb(verbs, "init", "init:init", "write a commented starter recipe")
    init.add_argument("file", type=Path, nargs="?", help="file to write (default: standard output)")
    schema = _verb(verbs, "schema", "schema:schema", "print the JSON Schema of recipes, or of a plugin's options")
    which = schema.add_mutually_exclusive_group()
    which.add_argument("--engine", metavar="NAME", help="options of this engine")
    which.add_argument("--quantizer", metavar="NAME", help="options of this quantizer")
    which.add_argument("--incident", action="store_true", help="incident files")


def _promotion_verbs(verbs: Any) -> None:
    verify = _verb(
        verbs, "verify", "verify:verify", "hold a checkpoint's bytes against a run's evidence; exit 1: refused"
    )
    _demand(verify)
    promote = _verb(verbs, "promote", "promote:promote", "verify, then write the serving policy and the model card")
    _demand(promote)
    promote.add_argument("--out", type=Path, default=Path("policy.yaml"), metavar="FILE", help="default: policy.yaml")
    sign = _verb(verbs, "sign", "verify:sign", "sign evidence with a private key, or as the CI job that one is")
    sign.add_argument("evidence", type=Path, help="evidence.intoto.json of a run, or signed already")
    means = sign.add_mutually_exclusive_group(required=True)
    means.add_argument("--key", type=Path, metavar="KEY.pem", help="private key; writes a DSSE envelope")
    means.add_argument(
        "--keyless", action="store_true", help="the job's OIDC identity, through sigstore; writes a bundle"
    )
    sign.add_argument(
        "--trust-config", type=Path, metavar="FILE", help="with --keyless: a sigstore of one's own (ClientTrustConfig)"
    )
    sign.add_argument("--out", type=Path, metavar="FILE", help="default: .jsonl or .sigstore.json beside it")


def _demand(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", type=Path, help="the directory that is to be promoted")
    parser.add_argument("--evidence", type=Path, required=True, metavar="FILE", help="evidence.intoto.json, or signed")
    parser.add_argument(
        "--tier", action="extend", nargs="+", required=True, metavar="NAME", help="tiers that it must have passed for"
    )
    parser.add_argument("--max-age", metavar="30d", help="oldest evidence that is accepted (h, d, w)")
    parser.add_argument(
        "--evalset",
        action="extend",
        nargs="+",
        default=[],
        metavar="NAME@V",
        help="sets that must have been used, whole",
    )
    signer = parser.add_mutually_exclusive_group()
    signer.add_argument("--key", type=Path, metavar="KEY.pub", help="public key that must have signed the evidence")
    signer.add_argument("--identity", metavar="NAME", help="workflow URL or e-mail that must have signed it, keyless")
    parser.add_argument("--issuer", metavar="URL", help="OIDC provider that vouches for --identity")
    parser.add_argument(
        "--trusted-root", type=Path, metavar="FILE", help="sigstore's trusted_root.json, to check without a network"
    )


def _env_verbs(verbs: Any) -> None:
    env = _verb(verbs, "env", None, "the locked environments of the heavy tools: build, list, remove")
    what = env.add_subparsers(dest="what", metavar="WHAT")
    build = _verb(what, "build", "env:build", "build environments; one that stands is replaced only by a whole one")
    build.add_argument("names", nargs="+", metavar="NAME", help="as `qgate env list` has them")
    build.add_argument("--again", action="store_true", help="build even where it is built")
    build.add_argument("--quiet", action="store_true", help="no progress")
    _verb(what, "list", "env:show", "every lock and whether its environment is built")
    remove = _verb(what, "remove", "env:remove", "remove environments")
    remove.add_argument("names", nargs="+", metavar="NAME", help="as `qgate env list` has them")


def _evalset_verbs(verbs: Any) -> None:
    evalset = _verb(verbs, "evalset", None, "evaluation sets: list, show, count, check, lock, make")
    what = evalset.add_subparsers(dest="what", metavar="WHAT")
    _verb(what, "list", "evalset:list_sets", "the sets that come with qgate")
    verify = _verb(
        what, "verify", "evalset:verify", "check every byte and line of sets (default: all that come with qgate)"
    )
    verify.add_argument("sets", nargs="*", metavar="SET", help="long-text@1, or a folder")
    show = _verb(what, "show", "evalset:show", "every item in a line, or one of them in full")
    show.add_argument("set", metavar="SET", help="long-text@1, or a folder")
    show.add_argument("item", nargs="?", metavar="ITEM", help="id of one item")
    stats = _verb(what, "stats", "evalset:stats", "how many items of each kind, language and slice")
    stats.add_argument("set", metavar="SET", help="long-text@1, or a folder")
    lock = _verb(what, "lock", "evalset:lock", "pin a set's files as they are; its version rises where they changed")
    lock.add_argument("folder", type=Path, help="folder of the set")
    lock.add_argument("--keep-version", action="store_true", help="for a set that nobody has used yet")
    new = _verb(what, "new", "evalset:new", "make a set from questions, recorded chat requests, or a table's columns")
    new.add_argument("folder", type=Path, help="folder to make; its name is the set's name")
    source = new.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--from", dest="source", type=Path, metavar="FILE",
        help="JSON lines; with --map also csv, parquet, arrow, or a folder of them",
    )  # fmt: skip
    source.add_argument("--dataset", metavar="ID", help="a dataset of the Hugging Face hub")
    new.add_argument(
        "--revision", metavar="COMMIT", help="of the dataset; a branch is resolved and its commit recorded"
    )
    new.add_argument("--split", metavar="NAME", help="of the dataset (default: test) or of a saved folder")
    new.add_argument("--config", metavar="NAME", help="of the dataset, where it has several")
    new.add_argument(
        "--map", action="append", default=[], metavar="FIELD=COLUMN",
        help="e.g. prompt=question answer=answers.text; a text with {column} in it is filled in",
    )  # fmt: skip
    new.add_argument("--scorer", metavar="NAME", help="scorer of every row")
    new.add_argument("--limit", type=int, metavar="N", help="only N rows, the same ones wherever they stand")
    new.add_argument(
        "--env", default="lm-eval", metavar="ENV", help="environment that has `datasets` (default: lm-eval)"
    )
    new.add_argument("--description", default="", metavar="TEXT", help="one line for evalset.yaml")
    new.add_argument(
        "--license",
        default="LicenseRef-unknown",
        metavar="SPDX",
        help="SPDX id of its licence (default: LicenseRef-unknown)",
    )
    new.add_argument("--skip-bad", action="store_true", help="leave bad lines out instead of refusing the file")


def _repro_verbs(verbs: Any) -> None:
    repro = _verb(
        verbs, "repro", "repro:repro", "from a bad answer, filed by `repro new`, to its cause; exit 3: none found"
    )
    repro.add_argument("incident", type=Path, help="an incident file; `qgate repro new` makes one")
    _results(repro)
    repro.add_argument("--out", type=Path, metavar="DIR", help="folder to leave (default: below repro/ of the results)")
    repro.add_argument(
        "--rate", type=float, metavar="SHARE", help="failure rate to be detected (default: the filed one, at most 0.1)"
    )
    repro.add_argument("--calls", type=int, metavar="N", help="model calls that minimising may take; 0: none")
    repro.add_argument("--every", action="store_true", help="every factor, also those that can change nothing any more")
    repro.add_argument("--add-to", type=Path, metavar="SET", help="folder of an evaluation set that gets the request")
    repro.add_argument("--quiet", action="store_true", help="one line per experiment, no progress")
    # Without `help` it is not in the list of verbs: to its user it is a part of `repro`.
    new = verbs.add_parser(REPRO_NEW, description="Make an incident file from a curl command, a log, a body or a run.")
    new.calls("repro_new:new")
    _repro_new(new)


def _repro_new(new: argparse.ArgumentParser) -> None:
    new.add_argument("file", type=Path, metavar="INCIDENT.yaml", help="file to write")
    source = new.add_mutually_exclusive_group(required=True)
    source.add_argument("--curl", type=Path, metavar="FILE", help="a file with a curl command, `-`: standard input")
    source.add_argument("--log", type=Path, metavar="FILE", help="lines of a vLLM log")
    source.add_argument("--request", type=Path, metavar="FILE", help="a pasted body, or the plain text of a prompt")
    source.add_argument("--run", metavar="RUN", help="folder or id of a finished run")
    new.add_argument("--answer", type=Path, metavar="FILE", help="what came back: a JSON response or plain text")
    new.add_argument("--variant", metavar="NAME", help="with --run: whose answer")
    new.add_argument(
        "--item",
        metavar="ID",
        help="with --run: set/item, or all of set/item/profile/seed; with --log: a request's id or number",
    )
    new.add_argument("--profile", metavar="NAME", help="with --run: which sampling profile")
    new.add_argument("--seed", type=int, metavar="N", help="with --run: which seed")
    new.add_argument("--recipe", type=Path, metavar="FILE", help="with --run: where its recipe lies, for its own sets")
    new.add_argument("--candidate", metavar="WHAT", help="a checkpoint, owner/name@revision of the hub, or a URL")
    new.add_argument("--baseline", metavar="WHAT", help="the unquantized model, likewise")
    new.add_argument("--engine", metavar="NAME", help="engine of both checkpoints (default: vllm)")
    new.add_argument("--launch", metavar="WORDS", help="launch arguments of the candidate's server, in one argument")
    new.add_argument("--concurrency", type=int, metavar="N", help="requests in flight when it happened")
    new.add_argument("--seen", metavar="K/N", help="how often: 3/10")
    new.add_argument("--tried", action="append", default=[], metavar="TEXT", help="what was tried, and what came of it")
    new.add_argument("--title", metavar="TEXT", help="one line for the report")
    new.add_argument("--force", action="store_true", help="write over an existing file")
    _results(new)


def _other_verbs(verbs: Any) -> None:
    inspect = _verb(
        verbs, "inspect", "inspect:inspect", "look for faults in a checkpoint before it is served; exit 1: an error"
    )
    inspect.add_argument("checkpoint", type=Path, help="directory in Hugging Face format")
    inspect.add_argument("--baseline", type=Path, metavar="DIR", help="the unquantized model that it was made from")
    inspect.add_argument("--json", action="store_true", help="print the `inspection` artefact instead")
    inspect.add_argument(
        "--tensor-parallel-size",
        type=int,
        default=1,
        metavar="N",
        help="devices that each layer is split over (default: 1)",
    )
    inspect.add_argument("--no-weights", action="store_true", help="do not compare weights with the baseline's")
    scan = _verb(verbs, "scan", "scan:scan", "find defects in answers of any origin; no model needed")
    scan.add_argument("file", help="JSON lines, `-` for standard input")
    doctor = _verb(verbs, "doctor", "doctor:doctor", "check environments, GPU, versions and disk, with advice")
    _results(doctor)
    selftest = _verb(
        verbs, "selftest", "selftest:selftest", "the gate's own error rates, simulated and on damaged checkpoints"
    )
    selftest.add_argument(
        "--out",
        type=Path,
        default=Path("results/selftest"),
        metavar="DIR",
        help="folder to write (default: results/selftest)",
    )
    selftest.add_argument(
        "--runs", type=int, default=2000, metavar="N", help="simulated runs a cell; 0: none (default: 2000)"
    )
    selftest.add_argument(
        "--damaged",
        type=Path,
        default=Path("results/power"),
        metavar="DIR",
        help="checkpoints damaged on purpose: their evidence, and tables of it (default: results/power)",
    )


def parser() -> Parser:
    """The whole command line; tests/unit/test_cli.py pins its options."""
    top = Parser(
        prog="qgate",
        description="Decides whether a quantized LLM checkpoint may be promoted, per serving interface.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"qgate {__version__}")
    top.calls(None)
    verbs = top.add_subparsers(dest="verb", metavar="VERB")
    _recipe_verbs(verbs)
    _promotion_verbs(verbs)
    _env_verbs(verbs)
    _evalset_verbs(verbs)
    _repro_verbs(verbs)
    _other_verbs(verbs)
    return top


def parse(argv: Sequence[str]) -> argparse.Namespace:
    """Parsed words. `repro new` is one verb to argparse, which cannot have a verb where a file's name may stand."""
    is_new = list(argv[:2]) == REPRO_NEW.split()
    return parser().read([REPRO_NEW, *argv[2:]] if is_new else argv)
