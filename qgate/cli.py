"""The command line: argv in, one call, an exit code out. No logic; the knobs are in the recipe."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Sequence
from importlib import import_module

from qgate.arguments import parse
from qgate.errors import ExitCode, Interrupted, QgateError, of_the_machine
from qgate.reports.visible import visible


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return its exit code: the only catch-all of qgate."""
    arguments = parse(sys.argv[1:] if argv is None else argv)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup's wish
            signal.signal(number, _terminate)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal may lack a character, and still get the verdict
    try:
        module, function = arguments.target.split(":")
        call: Callable[[argparse.Namespace], ExitCode] = getattr(import_module(module), function)
        return int(call(arguments))
    except KeyboardInterrupt:
        return _say(Interrupted("interrupted; what was finished is kept", advice="run the same command to go on"))
    except QgateError as error:
        return _say(error)
    except (BrokenPipeError, SystemExit):  # rich's word for it: whoever reads went away, and no verdict came through
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return int(ExitCode.INCONCLUSIVE)
    except Exception as error:
        if (refusal := of_the_machine(error)) is not None:
            return _say(refusal)
        traceback.print_exc()
        return _say(QgateError("this is a bug in qgate", advice="report it with the lines above"))


def _terminate(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _say(error: QgateError) -> int:
    with contextlib.suppress(OSError):  # a terminal that hung up: the exit code still tells
        sys.stderr.write(f"qgate: {visible(error.message, keep_newlines=True)}\n")
        if error.advice:
            sys.stderr.write(f"  fix: {visible(error.advice, keep_newlines=True)}\n")
    return int(error.exit_code)
