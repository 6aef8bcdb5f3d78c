"""Runs in lm-eval's environment: what its libraries say of texts. request.json in, result.json out; see test_lm_eval.py.

{"ifeval": [[id, kwargs, text], …], "rouge": [[kind, answer, reference], …]} gives {"ifeval": [bool, …], "rouge":
[float, …]}.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np

data = Path(next(iter(find_spec("llama_index").submodule_search_locations))) / "core/_static/nltk_cache"
os.environ["NLTK_DATA"] = str(data)

from lm_eval.tasks.ifeval import instructions_registry  # noqa: E402 (nltk reads NLTK_DATA when it is imported)
from rouge_score import rouge_scorer  # noqa: E402


def kept(name: str, kwargs: dict[str, object], text: str) -> bool:
    """Whether IFEval's checker says that the text keeps the instruction."""
    checker = instructions_registry.INSTRUCTION_DICT[name](name)
    checker.build_description(**kwargs)
    return bool(text.strip() and checker.check_following(text))


def main(request_file: Path, result_file: Path) -> None:
    """Answer every question of the request."""
    request = json.loads(request_file.read_text(encoding="utf-8"))
    rouge = [
        rouge_scorer.RougeScorer([kind], use_stemmer=False).score(reference, answer)[kind].fmeasure
        for kind, answer, reference in request.get("rouge", [])
    ]
    said = {"ifeval": [kept(*case) for case in request.get("ifeval", [])], "rouge": np.array(rouge).tolist()}
    result_file.write_text(json.dumps(said), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
