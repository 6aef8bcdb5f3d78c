"""The client against a small server: what is tried again, what is an answer, what ends the run, how fast it goes."""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from qgate.errors import DiedError, EngineError, HungError, Interrupted
from qgate.io import flight, proc
from qgate.io.calls import Call, Reply, Target, Watch
from qgate.io.client import Client
from tests.http_stub import HttpStub, Request
from tests.processes import wait_for

KEY = "sk-very-secret-4711"
PATIENCE_S = 60.0
"""Far more than anything here takes on a loaded machine, and what a test would wait for in vain."""


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "BACKOFF_S", 0.01)
    monkeypatch.setattr(flight, "LIVENESS_S", 0.05)


def client(
    url: str, *, concurrency: int = 8, request_timeout_s: float = PATIENCE_S, key: str | None = None, **watch: Any
) -> Client:
    watching = Watch(**{"name": "stub", "stall_timeout_s": PATIENCE_S, **watch})
    return Client(Target(url, concurrency, request_timeout_s, watching, key=key))


def calls(count: int, path: str = "/go", cost: int = 0) -> list[Call]:
    return [Call(str(index), path, {"index": index}, cost) for index in range(count)]


async def echo(request: Request) -> tuple[int, Any]:
    return 200, request.body


async def until(condition: Callable[[], object]) -> None:
    """What a server waits for before it answers; the client gives up after PATIENCE_S."""
    while not condition():
        await asyncio.sleep(0.005)


@contextmanager
def nobody() -> Iterator[str]:
    """An address where nobody listens and nobody can begin to."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


def test_every_call_is_answered_and_connections_are_kept() -> None:
    with HttpStub(echo) as stub:
        found = list(client(stub.url).run(calls(200)))
    assert {reply.id: reply.body for reply in found} == {str(index): {"index": index} for index in range(200)}
    assert {(reply.status, reply.attempt) for reply in found} == {("ok", 1)}
    assert stub.num_connections <= 10


def test_replies_come_as_they_finish_and_concurrency_is_bounded() -> None:
    others_came = threading.Event()

    async def slow_first(request: Request) -> tuple[int, Any]:
        await until(others_came.is_set if request.body["index"] == 0 else lambda: stub.most_in_flight >= 4)
        return 200, {}

    with HttpStub(slow_first) as stub:
        replies = client(stub.url, concurrency=4).run(calls(20))
        others = {next(replies).id for _ in range(19)}
        others_came.set()
        assert [reply.id for reply in replies] == ["0"]
    assert others == {str(index) for index in range(1, 20)}
    assert stub.most_in_flight == 4


def test_a_thousand_calls_at_256_are_not_held_up_by_the_client() -> None:
    async def after_a_moment(request: Request) -> tuple[int, Any]:
        await until(lambda: stub.most_in_flight >= 256)
        await asyncio.sleep(0.05)
        return 200, {"text": "x" * 2000}

    with HttpStub(after_a_moment) as stub:
        began = time.process_time()
        found = list(client(stub.url, concurrency=256).run(calls(1024)))
        cpu_s = time.process_time() - began
    assert len(found) == 1024
    assert stub.most_in_flight == 256
    assert cpu_s < 20  # with the stub's own; it takes about 2 where nothing else runs


def test_the_first_calls_do_not_wait_for_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "START_PAUSE_S", 2 * PATIENCE_S)

    async def once_a_group_is_there(request: Request) -> tuple[int, Any]:
        await until(lambda: stub.most_in_flight >= flight.START_GROUP)
        return 200, {}

    with HttpStub(once_a_group_is_there) as stub:
        found = list(client(stub.url, concurrency=4 * flight.START_GROUP).run(calls(3 * flight.START_GROUP)))
    assert {reply.status for reply in found} == {"ok"}
    assert (len(found), stub.most_in_flight) == (3 * flight.START_GROUP, flight.START_GROUP)


def test_a_slow_consumer_delays_no_call() -> None:
    with HttpStub(echo) as stub:
        replies = client(stub.url).run(calls(50))
        next(replies)
        wait_for(lambda: len(stub.seen) == 50)
        assert len(list(replies)) == 49


def test_transport_errors_are_tried_again() -> None:
    async def drops_at_first(request: Request) -> tuple[int, Any]:
        if request.ordinal < 2:
            raise ConnectionError
        return 200, {}

    with HttpStub(drops_at_first) as stub:
        (reply,) = client(stub.url).run(calls(1))
    assert (reply.status, reply.attempt) == ("ok", 3)


def test_a_connection_that_always_drops_is_an_error_answer() -> None:
    async def drops(request: Request) -> tuple[int, Any]:
        raise ConnectionError

    with HttpStub(drops) as stub:
        (reply,) = client(stub.url).run(calls(1))
    assert (reply.status, reply.attempt) == ("error", flight.MAX_ATTEMPTS)
    assert "ServerDisconnectedError" in (reply.error or "")


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (400, {"error": {"message": "temperature must be positive"}}, "HTTP 400: temperature must be positive"),
        (404, {"message": "no such model"}, "HTTP 404: no such model"),
        (500, "Internal Server Error", "HTTP 500: Internal Server Error"),
        (503, {"error": "queue is full"}, "HTTP 503: queue is full"),
        (200, {"error": {"message": "model overloaded", "code": 500}}, "an error with HTTP 200: model overloaded"),
    ],
)
def test_what_the_server_refuses_is_an_answer_and_is_not_tried_again(status: int, body: Any, said: str) -> None:
    async def refuses(request: Request) -> tuple[int, Any]:
        return (200, "") if request.path == "/health" else (status, body)

    with HttpStub(refuses) as stub:
        (reply,) = client(stub.url, health_path="/health").run(calls(1))
    assert (reply.status, reply.error, reply.http_status, reply.attempt) == ("error", said, status, 1)


def test_an_answer_that_is_no_json_is_an_error() -> None:
    async def html(request: Request) -> tuple[int, Any]:
        return 200, "<html>"

    with HttpStub(html) as stub:
        (reply,) = client(stub.url).run(calls(1))
    assert reply.status == "error"
    assert "no JSON" in (reply.error or "")


def test_a_call_that_takes_too_long_is_a_timeout_and_the_rest_goes_on() -> None:
    async def one_hangs(request: Request) -> tuple[int, Any]:
        await asyncio.sleep(30 if request.body["index"] == 3 else 0)
        return 200, {}

    with HttpStub(one_hangs) as stub:
        found = {reply.id: reply for reply in client(stub.url, request_timeout_s=3).run(calls(10))}
    assert found.pop("3").status == "timeout"
    assert {reply.status for reply in found.values()} == {"ok"}


def collect(replies: Iterator[Reply], into: list[Reply]) -> None:
    for reply in replies:
        into.append(reply)  # noqa: PERF402  (what came before the error is the point)


def test_the_process_ending_ends_the_run_at_once_and_keeps_what_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flight, "BACKOFF_S", 30.0)  # before any call is given up, the process is seen to have ended
    stub = HttpStub(answer_until(5))
    ended = False

    def how_ended() -> str | None:
        return "stub was ended by SIGKILL" if ended else None

    got: list[Reply] = []
    with stub:
        replies = client(stub.url, how_ended=how_ended).run(calls(50))
        got.extend(next(replies) for _ in range(5))
        stub.stop()
        ended = True
        began = time.monotonic()
        with pytest.raises(DiedError, match="SIGKILL"):
            collect(replies, got)
    assert time.monotonic() - began < PATIENCE_S / 2
    assert len(got) == 5


def test_an_interrupt_ends_the_run_and_keeps_what_came() -> None:
    with HttpStub(answer_until(5)) as stub:
        replies = client(stub.url).run(calls(50))
        got = [next(replies) for _ in range(4)]
        wait_for(lambda: len(stub.seen) == 5 + 8)  # the fifth reply is there, and every worker waits for another
        try:
            proc.stop_all()
            with pytest.raises(Interrupted, match="interrupted while stub was asked"):
                collect(replies, got)
        finally:
            proc.stopped()
    assert [reply.status for reply in got] == ["ok"] * 5
    assert len(stub.seen) == 5 + 8


def answer_until(count: int) -> Callable[[Request], Any]:
    async def answer(request: Request) -> tuple[int, Any]:
        if request.ordinal >= count:
            await asyncio.sleep(10 * PATIENCE_S)
        return 200, {}

    return answer


def test_nobody_listening_is_a_death_not_a_list_of_errors() -> None:
    with nobody() as url, pytest.raises(DiedError, match="gone"):
        list(client(url).run(calls(100)))


def test_a_5xx_of_a_dying_server_is_no_answer() -> None:
    async def dying(request: Request) -> tuple[int, Any]:
        return (503, "") if request.path == "/health" else (500, {"error": {"message": "EngineCore encountered"}})

    with HttpStub(dying) as stub, pytest.raises(DiedError, match=r"EngineCore encountered.*health is HTTP 503"):
        list(client(stub.url, health_path="/health").run(calls(3)))


def test_silence_is_a_hang() -> None:
    with HttpStub(answer_until(3)) as stub:
        began = time.monotonic()
        got: list[Reply] = []
        with pytest.raises(HungError, match="finished nothing for"):
            collect(client(stub.url, stall_timeout_s=2).run(calls(10)), got)
    assert len(got) == 3
    assert 2 <= time.monotonic() - began < PATIENCE_S / 2


def test_a_slow_server_whose_pulse_grows_is_not_hung() -> None:
    pulses = 0

    async def slow(request: Request) -> tuple[int, Any]:
        nonlocal pulses
        if request.path == "/metrics":
            pulses += 1
            return 200, f"tokens {pulses}"
        await until(lambda: pulses > patience)
        return 200, {}

    with HttpStub(slow) as stub:
        patience = 2  # asked for its pulse half-way and when the time is up; then the time begins anew
        watch = {"stall_timeout_s": 2, "pulse_path": "/metrics", "pulse": lambda body: float(body.split()[1])}
        assert [reply.status for reply in client(stub.url, **watch).run(calls(1))] == ["ok"]
        patience, watch["pulse"] = 1000, lambda body: 1.0
        with pytest.raises(HungError):
            list(client(stub.url, **watch).run(calls(1)))


def test_a_budget_bounds_what_is_in_flight_and_lets_one_too_large_through() -> None:
    async def moment(request: Request) -> tuple[int, Any]:
        await until(lambda: stub.most_in_flight >= 2)
        await asyncio.sleep(0.02)
        return 200, {}

    with HttpStub(moment) as stub:
        assert len(list(client(stub.url).run(calls(12, cost=10), budget=25))) == 12
        assert stub.most_in_flight == 2
        assert len(list(client(stub.url).run(calls(3, cost=100), budget=25))) == 3
        assert stub.most_in_flight == 2


def test_a_chain_of_calls_delivers_the_last_reply() -> None:
    def then(body: dict[str, Any]) -> Call:
        return Call("0", "/second", {"index": body["index"] + 1})

    with HttpStub(echo) as stub:
        (reply,) = client(stub.url).run([Call("0", "/first", {"index": 1}, then=then)])
        assert reply.body == {"index": 2}
        assert [request.path for request in stub.seen] == ["/first", "/second"]


def test_a_chain_stops_at_an_error() -> None:
    async def refuses(request: Request) -> tuple[int, Any]:
        return 400, {}

    with HttpStub(refuses) as stub:
        (reply,) = client(stub.url).run([Call("0", "/first", {}, then=lambda body: pytest.fail("not reached"))])
    assert reply.status == "error"


def test_a_chain_that_cannot_go_on_ends_with_why_and_the_others_go_on() -> None:
    def then(body: dict[str, Any]) -> Call:
        if body["index"] == 0:
            raise EngineError("no tokens in it")
        return Call("1", "/second", body)

    with HttpStub(echo) as stub:
        asked = [Call(str(index), "/first", {"index": index}, then=then) for index in range(2)]
        first, second = sorted(client(stub.url).run(asked), key=lambda reply: reply.id)
    assert (first.status, first.body, first.error, second.body) == ("error", None, "no tokens in it", {"index": 1})


def test_an_error_in_the_calls_is_raised() -> None:
    def broken() -> Iterator[Call]:
        yield from calls(2)
        raise ValueError("broken")

    with HttpStub(echo) as stub, pytest.raises(ValueError, match="broken"):
        list(client(stub.url).run(broken()))


def test_leaving_early_ends_the_calls_in_flight() -> None:
    with HttpStub(answer_until(1)) as stub:
        replies = client(stub.url).run(calls(50))
        next(replies)
        began = time.monotonic()
        replies.close()
        assert time.monotonic() - began < PATIENCE_S / 2


def test_the_key_is_sent_and_never_shown(caplog: pytest.LogCaptureFixture) -> None:
    async def tells(request: Request) -> tuple[int, Any]:
        return 401, {"error": {"message": f"wrong key {request.headers['authorization']}"}}

    caplog.set_level(logging.DEBUG)
    with HttpStub(tells) as stub:
        asking = client(stub.url, key=KEY)
        (reply,) = asking.run(calls(1))
        _, body = asking.get("/x")
    assert stub.seen[0].headers["authorization"] == f"Bearer {KEY}"
    assert "***" in (reply.error or "")
    said = [reply.error or "", body, repr(asking), repr(Target("u", 1, 1.0, Watch("n", 1.0), key=KEY))]
    said += [record.getMessage() for record in caplog.records]
    assert not any(KEY in text for text in said)


def test_proxies_of_the_environment_are_not_asked_for_a_local_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "")
    with HttpStub(echo) as stub:
        assert [reply.status for reply in client(stub.url).run(calls(1))] == ["ok"]


def test_a_proxy_of_the_environment_is_asked_where_the_target_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with HttpStub(echo) as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        far = Target("http://models.test", 1, PATIENCE_S, Watch("far", PATIENCE_S), key=KEY, trust_env=True)
        assert [reply.status for reply in Client(far).run(calls(1))] == ["ok"]
        assert proxy.seen[0].headers["host"] == "models.test"
        with nobody() as url, pytest.raises(EngineError, match="Cannot connect"):
            Client(replace(far, base_url=url)).get("/health")


def far(url: str) -> Client:
    return Client(Target(url, 1, PATIENCE_S, Watch("far", PATIENCE_S), key=KEY, trust_env=True))


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_is_not_told_the_key_of_the_server_nor_is_its_own_password_told(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    async def refuses(request: Request) -> tuple[int, Any]:
        return (200, {}) if request.method == "POST" else (407, "")

    with HttpStub(refuses) as proxy:
        monkeypatch.setenv("no_proxy", "")
        monkeypatch.setenv(f"{scheme}_proxy", proxy.url)
        (reply,) = far(f"{scheme}://models.test").run(calls(1))
        monkeypatch.setenv(f"{scheme}_proxy", proxy.url.replace("://", "://me:pass-4711@"))
        (again,) = far(f"{scheme}://models.test").run(calls(1))
    assert {reply.status, again.status} == ({"ok"} if scheme == "http" else {"error"})
    assert "pass-4711" not in repr(again)
    assert [KEY in str(request.headers.get("authorization")) for request in proxy.seen] == [
        request.method == "POST" for request in proxy.seen
    ]
    assert {request.headers.get("proxy-authorization") for request in proxy.seen} == {
        None,
        f"Basic {base64.b64encode(b'me:pass-4711').decode()}",
    }


def test_a_proxy_may_be_named_without_a_scheme_and_left_out_by_port(monkeypatch: pytest.MonkeyPatch) -> None:
    with HttpStub(echo) as proxy:
        monkeypatch.setenv("http_proxy", f"127.0.0.1:{proxy.port}")
        monkeypatch.setenv("no_proxy", f"127.0.0.1:{proxy.port}")
        far("http://models.test").get("/a")
        far(proxy.url).get("/b")
    assert [request.path for request in proxy.seen] == ["http://models.test/a", "/b"]


def test_a_proxy_that_speaks_no_http_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("http_proxy", "socks5://me:pass-4711@127.0.0.1:9")
    for ask in (lambda: far("http://models.test").get("/a"), lambda: list(far("http://models.test").run(calls(1)))):
        with pytest.raises(EngineError, match=r"socks5 proxy, which is not spoken$"):
            ask()


def test_a_netrc_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login me password mine")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with HttpStub(echo) as stub:
        target = Target(stub.url, 1, PATIENCE_S, Watch("stub", PATIENCE_S), trust_env=True)
        assert [reply.status for reply in Client(target).run(calls(1))] == ["ok"]
        assert "authorization" not in stub.seen[0].headers


def test_a_redirect_is_not_followed() -> None:
    async def moved(request: Request) -> tuple[int, Any]:
        return 307, ""

    with HttpStub(moved) as stub:
        (reply,) = client(stub.url).run(calls(1))
    assert (reply.status, reply.http_status) == ("error", 307)
    assert len(stub.seen) == 1


def test_a_body_of_many_megabytes_arrives_whole() -> None:
    sent = {"prompt": list(range(1_000_000))}

    with HttpStub(echo) as stub:
        (reply,) = client(stub.url).run([Call("0", "/go", sent)])
    assert reply.body == sent


def test_a_single_request_without_an_answer_is_an_engine_error() -> None:
    with nobody() as url, pytest.raises(EngineError, match="no answer from"):
        client(url).get("/health")
