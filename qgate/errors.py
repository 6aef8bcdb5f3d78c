"""Every error that qgate raises on purpose, and the exit code of each. Touches nothing.

    QgateError                      one clear message, and advice where there is any
    ├── UserError            → 2    the recipe, an argument or an input file is wrong
    │   ├── RecipeError             a recipe does not validate (names field and line)
    │   ├── IncidentError           an incident does not validate, or none can be made of what was given
    │   ├── EvalsetError            an evaluation set is unreadable, changed or empty
    │   ├── CheckpointError         a checkpoint cannot be what it is said to be
    │   ├── ArtefactError           a stored file is of another kind or a newer version
    │   └── PluginError             no engine, quantizer or scorer of that name
    ├── WorldError           → 3    the input is right, but the world would not do it
    │   ├── EnvError                a tool's environment is missing or broken
    │   ├── StoreError              the results folder is full, read-only or corrupt
    │   ├── QuantizeError           a quantizer failed
    │   └── EngineError             an engine failed
    │       ├── StartError          a server did not become ready
    │       ├── DiedError           a server ended while work was in flight
    │       └── HungError           a server made no progress
    ├── Refused              → 1    a checkpoint may not be promoted on this evidence
    └── Interrupted          → 130  Ctrl-C, SIGTERM or SIGHUP; what was finished is kept

Exit codes: 0 every tier's default variant passes; 1 a tier fails; 2 user error; 3 inconclusive or could not judge;
4 a bug in qgate (any other exception); 130 interrupted.
"""

from __future__ import annotations

import errno
from enum import IntEnum

OF_THE_MACHINE = frozenset(
    {
        errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ELOOP, errno.EMFILE, errno.ENAMETOOLONG, errno.ENFILE,
        errno.ENOMEM, errno.ENOSPC, errno.EPERM, errno.EROFS, errno.ESTALE,
    }
)  # fmt: skip
"""Errors of the operating system that no code of qgate's can be the cause of."""


class ExitCode(IntEnum):
    """The documented exit codes of the `qgate` command."""

    PASS = 0
    FAIL = 1
    USER_ERROR = 2
    INCONCLUSIVE = 3
    BUG = 4
    INTERRUPTED = 130


class QgateError(Exception):
    """An error with one clear message and, where there is one, the fix."""

    exit_code = ExitCode.BUG

    def __init__(self, message: str, *, advice: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice


class UserError(QgateError):
    """What the user wrote or passed is wrong."""

    exit_code = ExitCode.USER_ERROR


class RecipeError(UserError):
    """A recipe does not validate."""


class IncidentError(UserError):
    """An incident does not validate, or none can be made of what was given."""


class EvalsetError(UserError):
    """An evaluation set is unreadable, changed since it was locked, or empty."""


class CheckpointError(UserError):
    """A checkpoint is not what it is said to be, or cannot be quantized as asked."""


class ArtefactError(UserError):
    """A stored file is of another kind, corrupt, or written by a newer qgate."""


class PluginError(UserError):
    """No plugin of that name, or it does not satisfy its Protocol."""


class WorldError(QgateError):
    """The input is right, but the machine, a tool or a server would not do it."""

    exit_code = ExitCode.INCONCLUSIVE


class EnvError(WorldError):
    """A tool's environment is missing, half-made or broken."""


class StoreError(WorldError):
    """The results folder is full, read-only or corrupt."""


class QuantizeError(WorldError):
    """A quantizer failed."""


class EngineError(WorldError):
    """An engine failed."""


class StartError(EngineError):
    """A server did not become ready."""


class DiedError(EngineError):
    """A server ended while work was in flight."""


class HungError(EngineError):
    """A server made no progress for longer than the watchdog allows."""


class Refused(QgateError):
    """The input can be read, and it says that the checkpoint may not be promoted."""

    exit_code = ExitCode.FAIL


class Interrupted(QgateError):
    """Ctrl-C, SIGTERM or SIGHUP arrived; everything finished was kept."""

    exit_code = ExitCode.INTERRUPTED


def of_the_machine(error: Exception) -> WorldError | None:
    """What an error is that nothing in qgate foresaw, where the machine is its cause; None for any other."""
    if isinstance(error, MemoryError):
        return WorldError("out of memory", advice="free some, or run on a larger machine")
    if isinstance(error, OSError) and error.errno in OF_THE_MACHINE:
        at = f": {error.filename}" if error.filename else ""
        return WorldError(f"{error.strerror}{at}", advice="mend that and run the same command: it goes on there")
    return None
