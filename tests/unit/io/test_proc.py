"""Child processes: output to a log, whole groups stopped, errors that say what a person needs and no secret."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from qgate.errors import Interrupted, WorldError
from qgate.io import proc
from tests.processes import is_alive, wait_for

SPAWNS = "import subprocess,sys,time; subprocess.Popen([sys.executable,'-c','import time; time.sleep(600)']); time.sleep(600)"
STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"


def test_failure_shows_code_log_and_tail_but_no_environment(tmp_path: Path) -> None:
    argv = [sys.executable, "-c", "print('last words'); raise SystemExit(7)"]
    with pytest.raises(proc.ProcessError) as caught:
        proc.run(argv, log=tmp_path / "x.log", what="the tool", env={"API_KEY": "s3cret"})
    assert "the tool exited with 7" in caught.value.message
    assert "last words" in caught.value.message
    assert str(tmp_path / "x.log") in caught.value.message
    assert "s3cret" not in caught.value.message
    assert caught.value.returncode == 7


def test_a_signal_without_a_name_is_told_by_its_number(tmp_path: Path) -> None:
    with pytest.raises(proc.ProcessError, match="ended by signal 40"):
        proc.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 40)"], log=tmp_path / "x.log", what="it")


def test_a_signal_is_named(tmp_path: Path) -> None:
    with pytest.raises(proc.ProcessError, match=r"SIGKILL.*memory"):
        proc.run([sys.executable, "-c", "import os; os.kill(os.getpid(), 9)"], log=tmp_path / "x.log", what="it")


def test_timeout(tmp_path: Path) -> None:
    with pytest.raises(proc.ProcessError, match="took longer than"):
        proc.run([sys.executable, "-c", "import time; time.sleep(600)"], log=tmp_path / "x", what="it", timeout_s=0.2)


def test_stop_ends_grandchildren(tmp_path: Path) -> None:
    with proc.Child([sys.executable, "-c", SPAWNS], log=tmp_path / "x.log") as child:
        wait_for(lambda: len(psutil.Process(child.pid).children()) == 2)  # the guard, and what the child started
        family = psutil.Process(child.pid).children()
    wait_for(lambda: not any(is_alive(each) for each in family))
    assert child.poll() is not None


def test_stop_insists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "GRACE_S", 0.2)
    with proc.Child([sys.executable, "-c", STUBBORN], log=tmp_path / "x.log") as child:
        wait_for(lambda: "up" in proc.tail(tmp_path / "x.log"))
    assert child.poll() == -9


def test_stop_ends_what_left_the_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "LEFT_S", 0.0)
    leaves = SPAWNS.replace("(600)'])", "(600)'], start_new_session=True)")
    with proc.Child([sys.executable, "-c", leaves], log=tmp_path / "x.log") as child:
        wait_for(lambda: len(psutil.Process(child.pid).children()) == 2)  # the guard, and what the child started
        family = psutil.Process(child.pid).children()
    wait_for(lambda: not any(is_alive(each) for each in family))


def test_what_ended_runs_no_more_though_nobody_asked_for_its_code() -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    left = psutil.Process(ended.pid)
    wait_for(lambda: left.status() == psutil.STATUS_ZOMBIE)
    assert left.is_running()
    assert not proc._runs(left)
    ended.wait()
    assert not proc._runs(left)


def test_stop_all_ends_the_living_and_starts_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(proc, "_FAMILY", proc._Family())
    child = proc.Child([sys.executable, "-c", "import time; time.sleep(600)"], log=tmp_path / "x.log")
    proc.stop_all()
    assert child.poll() is not None
    with pytest.raises(Interrupted):
        proc.Child([sys.executable, "-c", ""], log=tmp_path / "x.log")
    assert proc.stopping()
    proc.stopped()
    proc.run([sys.executable, "-c", ""], log=tmp_path / "x.log", what="it")


def worker(folder: Path, body: str) -> Path:
    path = folder / "worker.py"
    path.write_text(f"import json, sys\nrequest = json.load(open(sys.argv[1]))\n{body}\n")
    return path


def test_worker_round_trip(tmp_path: Path) -> None:
    script = worker(tmp_path, "json.dump({'twice': 2 * request['n']}, open(sys.argv[2], 'w'))")
    assert proc.run_worker(Path(sys.executable), script, {"n": 4}, work=tmp_path / "w", what="doubling") == {"twice": 8}


def test_worker_says_what_is_wrong(tmp_path: Path) -> None:
    script = worker(
        tmp_path, "json.dump({'error': 'too small', 'advice': 'more'}, open(sys.argv[2], 'w')); sys.exit(1)"
    )
    with pytest.raises(WorldError, match="doubling: too small") as caught:
        proc.run_worker(Path(sys.executable), script, {}, work=tmp_path / "w", what="doubling")
    assert caught.value.advice == "more"


def test_worker_without_a_result(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/result.json").write_text('{"old": 1}')
    with pytest.raises(proc.ProcessError, match="wrote no result"):
        proc.run_worker(Path(sys.executable), worker(tmp_path, ""), {}, work=tmp_path / "w", what="doubling")


def test_output_of_a_probe() -> None:
    assert proc.output([sys.executable, "-c", "print(3)"]) == "3\n"
    assert proc.output(["no-such-program-anywhere"]) is None
    assert proc.output([sys.executable, "-c", "raise SystemExit(1)"]) is None


def test_tail_of_a_long_log(tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text("".join(f"line {n}\n" for n in range(5000)))
    assert proc.tail(tmp_path / "x.log", 2) == "line 4998\nline 4999"
    assert proc.tail(tmp_path / "none.log") == "(no log)"


PARENT = """
import sys, time
from pathlib import Path
from qgate.io.proc import Child
child = Child([sys.executable, "-c", sys.argv[1]], log=Path(sys.argv[2]))
print(child.pid, flush=True)
time.sleep(600)
"""


def test_a_parent_killed_with_9_leaves_no_orphan(tmp_path: Path) -> None:
    parent = psutil.Popen(
        [sys.executable, "-c", PARENT, SPAWNS, str(tmp_path / "x.log")], stdout=subprocess.PIPE, text=True
    )
    pid = int(parent.stdout.readline())
    wait_for(lambda: len(psutil.Process(pid).children(recursive=True)) >= 2)  # the guard, and what the child started
    family = [pid, *(process.pid for process in psutil.Process(pid).children(recursive=True))]
    parent.kill()
    parent.communicate()
    wait_for(lambda: not any(is_alive(pid) for pid in family))


def test_a_child_reads_nothing_and_a_missing_program_is_an_error(tmp_path: Path) -> None:
    proc.run([sys.executable, "-c", "import sys; assert not sys.stdin.read()"], log=tmp_path / "x.log", what="it")
    with pytest.raises(proc.ProcessError, match=r"exited with 127(?s:.*)not found"):
        proc.run([str(tmp_path / "none")], log=tmp_path / "y.log", what="it")
