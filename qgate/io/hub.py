"""The Hugging Face hub: a repository and revision in, a local snapshot and its commit out. Network and disk.

A commit that is in the local cache is taken from there without a question to the hub.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import huggingface_hub as hf  # its names are loaded when they are used: a run that asks no hub starts sooner

from qgate.errors import CheckpointError

WANTED = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.tiktoken", "*.txt"]
UNWANTED = ["original/*", "onnx/*", "openvino/*", "coreml/*", "*/*.safetensors", "consolidated*", "params.json"]
"""The model once more in other formats. Mistral's (the last two) would have vLLM serve the baseline by other code and
another tokenizer than the variants, which have only the Hugging Face format."""
_COMMIT = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True)
class Snapshot:
    """A repository at one commit, on this machine."""

    folder: Path
    commit: str


def snapshot(repository: str, revision: str) -> Snapshot:
    """The snapshot, downloaded where it is not there. Raises CheckpointError, with the fix."""
    if _COMMIT.fullmatch(revision):
        try:
            return _download(repository, revision, offline=True)
        except (hf.errors.LocalEntryNotFoundError, OSError, ValueError):
            pass  # not here, or not all of it
    try:
        return _download(repository, revision, offline=False)
    except hf.errors.RevisionNotFoundError:
        raise CheckpointError(
            f"{repository} has no revision {revision!r}", advice="name a commit, tag or branch that the hub shows"
        ) from None
    except hf.errors.HFValidationError as error:
        raise CheckpointError(
            f"{repository!r} is no repository of the hub: {_first_line(error)}", advice="write it as OWNER/NAME"
        ) from None
    except hf.errors.GatedRepoError:
        raise CheckpointError(
            f"{repository} is gated", advice="accept its terms on the hub and set HF_TOKEN to a token that may read it"
        ) from None
    except hf.errors.RepositoryNotFoundError:
        raise CheckpointError(
            f"the hub has no repository {repository}, or it is private",
            advice="check the id; for a private one set HF_TOKEN",
        ) from None
    except (hf.errors.LocalEntryNotFoundError, hf.errors.HfHubHTTPError, OSError) as error:
        raise CheckpointError(
            f"{repository} at {revision!r} is not on this machine, and the hub cannot be asked: {_first_line(error)}",
            advice="download it where there is a network (`hf download`), or name a local directory: `model: {path: DIR}`",
        ) from None


def _download(repository: str, revision: str, *, offline: bool) -> Snapshot:
    folder = hf.snapshot_download(
        repository, revision=revision, local_files_only=offline, allow_patterns=WANTED, ignore_patterns=UNWANTED
    )
    return Snapshot(Path(folder), Path(folder).name)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
