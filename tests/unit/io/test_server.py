"""Servers as children: ready means a real answer, every failure names its cause, no port is given twice, no orphans."""

from __future__ import annotations

import socket
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from qgate.errors import EngineError, StartError
from qgate.io import server as server_module
from qgate.io.calls import Target
from qgate.io.client import Client
from qgate.io.server import Cause, Launch, Server, serve
from tests.processes import PATIENCE_S, is_alive, wait_for

SERVER = """
import http.server, sys, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.send_header("content-length", "2"); self.end_headers(); self.wfile.write(b"ok")
    def log_message(self, *args): pass
print("listening soon", flush=True)
http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
FORKS = "import subprocess, sys\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n" + SERVER


def get_ok(server: Server) -> str | None:
    try:
        status, _ = Client(Target(server.base_url, 1, PATIENCE_S, server.watch(PATIENCE_S))).get(
            "/", timeout_s=PATIENCE_S
        )
    except EngineError as error:
        return error.message
    return None if status == 200 else f"HTTP {status}"


def knows_ports(logged: str) -> Cause | None:
    return Cause("the port is taken", "choose another", port_taken=True) if "Errno 98" in logged else None


def launch(tmp_path: Path, code: str = SERVER, probe: Callable[[Server], str | None] = get_ok) -> Launch:
    return Launch(
        name="the stub", argv=lambda port: [sys.executable, "-c", code, str(port)], log=tmp_path / "serve.log",
        probe=probe, diagnose=knows_ports, start_timeout_s=PATIENCE_S, env={},
    )  # fmt: skip


def test_serves_until_the_context_is_left(tmp_path: Path) -> None:
    with serve(launch(tmp_path, FORKS)) as server:
        assert get_ok(server) is None
        assert server.how_ended() is None
        assert server.start_s > 0
        assert "listening soon" in server.logged()
        family = [server.pid, *(child.pid for child in psutil.Process(server.pid).children(recursive=True))]
        assert len(family) == 3  # the server, what it started, and the guard that ends both with us
    wait_for(lambda: not any(is_alive(pid) for pid in family))


def test_an_early_end_carries_exit_code_log_and_tail(tmp_path: Path) -> None:
    code = "import sys; print('weights are bad'); sys.exit(3)"
    with pytest.raises(StartError) as caught, serve(launch(tmp_path, code)):
        pass
    assert "the stub did not start: it exited with 3" in caught.value.message
    assert "serve.log" in caught.value.message
    assert "| weights are bad" in caught.value.message
    assert caught.value.advice


def test_a_server_that_never_gets_ready_is_stopped_and_says_why(tmp_path: Path) -> None:
    pids: list[int] = []

    def never(server: Server) -> str:
        pids.append(server.pid)
        return "still loading"

    impatient = replace(launch(tmp_path, probe=never), start_timeout_s=0.6)
    with pytest.raises(StartError, match=r"not ready after 0\.6 s: still loading"), serve(impatient):
        pass
    assert not is_alive(pids[0])


def test_a_hopeless_probe_ends_the_wait(tmp_path: Path) -> None:
    def hopeless(server: Server) -> str | None:
        if get_ok(server) is not None:
            return "not yet"
        raise StartError("it ignores top_k", advice="a newer version")

    expected = pytest.raises(StartError, match=r"(?s)it ignores top_k.*serve\.log")
    with expected as caught, serve(launch(tmp_path, probe=hopeless)):
        pass
    assert caught.value.advice == "a newer version"


def test_an_interrupt_while_loading_leaves_no_orphan(tmp_path: Path) -> None:
    pids: list[int] = []

    def interrupted(server: Server) -> str | None:
        pids.append(server.pid)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), serve(launch(tmp_path, FORKS, probe=interrupted)):
        pass
    assert not is_alive(pids[0])


def test_death_later_is_told_with_the_tail(tmp_path: Path) -> None:
    with serve(launch(tmp_path)) as server:
        psutil.Process(server.pid).kill()
        wait_for(server.how_ended)
        ended = server.how_ended() or ""
    assert "the stub was ended by SIGKILL" in ended
    assert "| listening soon" in ended


def test_only_this_servers_log_is_read(tmp_path: Path) -> None:
    (tmp_path / "serve.log").write_text("from another time\n")
    with serve(launch(tmp_path)) as server:
        assert "another time" not in server.logged()
        assert "another time" in (tmp_path / "serve.log").read_text()


def test_a_wanted_port_that_is_taken_is_refused_before_any_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"port {port} is taken"), serve(replace(launch(tmp_path), port=port)):
            pass
    assert not (tmp_path / "serve.log").exists()


def test_a_port_lost_in_the_race_is_replaced(tmp_path: Path) -> None:
    tries: list[int] = []

    def argv(port: int) -> Sequence[str]:
        tries.append(port)
        if len(tries) == 1:
            return [sys.executable, "-c", "import sys; sys.exit('OSError: [Errno 98] Address already in use')"]
        return [sys.executable, "-c", SERVER, str(port)]

    with serve(replace(launch(tmp_path), argv=argv)) as server:
        assert server.port == tries[-1]
    assert len(tries) == 2


def test_a_port_lost_again_and_again_is_an_error(tmp_path: Path) -> None:
    code = "import sys; sys.exit('OSError: [Errno 98] Address already in use')"
    with pytest.raises(StartError, match="the port is taken"), serve(launch(tmp_path, code)):
        pass


def test_servers_side_by_side_get_ports_of_their_own(tmp_path: Path) -> None:
    ports: list[int] = []
    errors: list[BaseException] = []
    everyone = threading.Barrier(6)

    def one(index: int) -> None:
        try:
            with serve(launch(tmp_path / str(index))) as server:
                everyone.wait(PATIENCE_S)  # all six are up at once
                ports.append(server.port)
                assert get_ok(server) is None
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=one, args=(index,)) for index in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    assert len(set(ports)) == 6


def test_a_leased_port_is_not_leased_again_though_nobody_listens_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(server_module, "_is_free", lambda port: True)
    monkeypatch.setattr(server_module, "PORTS", range(31_900, 31_902))
    with server_module._lease(launch(tmp_path)) as first, server_module._lease(launch(tmp_path)) as second:
        assert {first, second} == {31_900, 31_901}
        with pytest.raises(StartError, match="no free port"), server_module._lease(launch(tmp_path)):
            pass
    with server_module._lease(launch(tmp_path)) as again:
        assert again in {first, second}
