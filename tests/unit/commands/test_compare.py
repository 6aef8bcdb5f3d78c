"""`qgate compare` on two runs of the fake engine."""

import io
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console

from qgate import pipeline
from qgate.cli import main
from qgate.errors import ExitCode, UserError
from qgate.io import recipe
from qgate.judge.releases import Change
from qgate.reports import releases, table
from qgate.rooms.releases import compare_releases
from qgate.schemas.evidence import Row
from tests.unit.test_pipeline import Watcher, made


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run, and a later one whose variant `good` loops."""
    folder = tmp_path_factory.mktemp("releases")
    path = made(folder)
    one = pipeline.run(recipe.load(path), folder / "results", Watcher()).folder
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    value["variants"]["good"]["engine_args"] = {"loop": 0.5}
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    return one, pipeline.run(recipe.load(path), folder / "results", Watcher()).folder


def call(*words: str | Path) -> int:
    return main(["compare", *map(str, words)])


def test_a_run_against_itself(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert call(runs[0], runs[0]) == ExitCode.PASS
    assert "Nothing got worse for sure (9 comparisons" in capsys.readouterr().out


def test_what_got_worse_fails(runs: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    results = runs[0].parent.parent
    assert call(runs[0].name, runs[1].name, "--results", results) == ExitCode.FAIL
    assert "Worse for sure: good on tiny (9 comparisons, together at one error of 5 %)." in " ".join(
        capsys.readouterr().out.split()
    )
    assert call(runs[1], runs[0]) == ExitCode.PASS


def test_the_shipped_sets_names_stay_whole_in_eighty_columns(runs: tuple[Path, Path]) -> None:
    changes = [
        replace(
            change,
            evalset="instruction",
            variant="baseline",
            result=change.result.model_copy(update={"baseline_value": 2}),
        )
        for change in compare_releases(runs[0], runs[0]).changes
    ]
    assert printed(changes).count(" instruction ") == len(changes)


def test_what_is_the_same_in_both_runs_is_counted_and_not_listed(runs: tuple[Path, Path]) -> None:
    changes = compare_releases(runs[0], runs[0]).changes
    text = printed(changes)
    assert f"{len(changes)} of {len(changes)} figures are the same in both runs, and not listed" in text
    assert "worse by" not in text
    assert "Nothing got worse for sure" in text


def printed(changes: Sequence[Change]) -> str:
    stream = io.StringIO()
    Console(file=stream, width=80).print(releases.render(("a", "b"), changes, ()))
    return stream.getvalue()


def copy(run: Path, folder: Path) -> Path:
    return shutil.copytree(run, folder / "copy")


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("run.json", ("tiny@1", "tiny@2"), "the runs are on tiny@1 and tiny@2"),
        (
            "recipe.yaml",
            ("max_tokens: 160", "max_tokens: 64"),
            "sampling profile 'greedy' differs in the two runs: max_tokens 160 and 64",
        ),
    ],
)
def test_other_questions_are_not_compared(
    runs: tuple[Path, Path], tmp_path: Path, file: str, change: tuple[str, str], said: str
) -> None:
    other = copy(runs[0], tmp_path)
    edit(other / file, *change)
    with pytest.raises(UserError, match=said):
        compare_releases(runs[0], other)


def test_another_set_of_the_same_name(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(runs[0], tmp_path)
    text = (other / "run.json").read_text(encoding="utf-8")
    sha256 = text.partition('"tiny@1": "')[2][:64]
    edit(other / "run.json", sha256, "0" * 64)
    assert call(runs[0], other) == ExitCode.USER_ERROR
    assert "tiny@1 is another set in the two runs" in capsys.readouterr().err


def test_another_engine_is_said(runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = copy(runs[0], tmp_path)
    edit(other / "run.json", '"engine": "fake"', '"engine": "vllm"')
    assert call(runs[0], other) == ExitCode.PASS
    assert "a change may be the engine's" in " ".join(capsys.readouterr().out.split())


def test_a_variant_that_the_later_run_lost(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = made(tmp_path)
    value = yaml.safe_load(path.read_text(encoding="utf-8"))
    value["variants"]["bad"]["engine_args"] = {"refuse_start": True}
    path.write_text(yaml.safe_dump(value), encoding="utf-8")
    later = pipeline.run(recipe.load(path), tmp_path / "results", Watcher()).folder
    assert call(runs[0], later) == ExitCode.INCONCLUSIVE
    assert f"bad is only in {runs[0].name}; in {later.name}:" in " ".join(capsys.readouterr().out.split())


def rewrite(run: Path, change: Callable[[Row], Row]) -> None:
    rows = [change(row) for row in table.read(pq.read_table(run / "answers.parquet"))]
    pq.write_table(table.build(rows), run / "answers.parquet")


def test_answers_that_did_not_come(runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = copy(runs[0], tmp_path)
    rewrite(other, lambda row: replace(row, status="error", score=None, text=None) if row.variant == "good" else row)
    assert call(runs[0], other) == ExitCode.INCONCLUSIVE
    said = " ".join(capsys.readouterr().out.split())
    assert "Too many answers did not come to say anything of good on tiny." in said


def test_a_set_that_the_later_run_lost(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, other = copy(runs[0], tmp_path / "one"), copy(runs[0], tmp_path / "other")
    for run, name in ((one, "more"), (other, "tiny")):
        rewrite(run, lambda row, name=name: replace(row, evalset=name) if row.item < "crate-075" else row)
    assert call(one, other) == ExitCode.INCONCLUSIVE
    said = " ".join(capsys.readouterr().out.split())
    assert f"good on more cannot be compared: {runs[0].name} has no answer to the same requests" in said


def test_a_set_of_which_the_later_run_answered_a_part(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    part = copy(runs[0], tmp_path)
    rows = table.read(pq.read_table(part / "answers.parquet"))
    items = sorted({row.item for row in rows if row.variant == "good"})
    pq.write_table(
        table.build([row for row in rows if row.variant != "good" or row.item != items[0]]), part / "answers.parquet"
    )
    assert call(runs[0], part) == ExitCode.INCONCLUSIVE
    said = " ".join(capsys.readouterr().out.split())
    assert (
        f"good on tiny cannot be compared whole: {runs[0].name} has answers to {len(items) - 1} of {len(items)} "
        in said
    )
    assert call(part, runs[0]) == ExitCode.PASS


def test_fewer_seeds_are_answers_that_the_later_run_lacks(
    runs: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not another sampling: what both have of them is compared."""
    earlier = copy(runs[0], tmp_path / "earlier")
    rows = table.read(pq.read_table(earlier / "answers.parquet"))
    pq.write_table(table.build([*rows, *(replace(row, seed=1) for row in rows)]), earlier / "answers.parquet")
    written = yaml.safe_load((earlier / "recipe.yaml").read_text(encoding="utf-8"))
    written["sampling"]["greedy"] |= {"seeds": [0, 1], "temperature": 0.5}
    (earlier / "recipe.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    later = copy(runs[0], tmp_path / "later")
    written["sampling"]["greedy"]["seeds"] = [0]
    (later / "recipe.yaml").write_text(yaml.safe_dump(written), encoding="utf-8")
    assert call(earlier, later) == ExitCode.INCONCLUSIVE
    assert "has answers to 150 of 300 requests" in " ".join(capsys.readouterr().out.split())


def test_no_answers(runs: tuple[Path, Path], tmp_path: Path) -> None:
    other = copy(runs[0], tmp_path)
    (other / "answers.parquet").write_bytes(b"PAR1")
    assert call(runs[0], other) == ExitCode.USER_ERROR
    assert call(runs[0], "no-such-run") == ExitCode.USER_ERROR
