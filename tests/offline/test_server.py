"""The endpoint on a port."""

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx2
import openai
import pytest

from memlab.errors import ConfigurationError
from memlab.offline.server import Server

HELLO = [{"role": "user", "content": "我叫张三"}]
CHAT = "/v1/chat/completions"


@pytest.fixture
def http(server: Server) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url.removesuffix("/v1"), trust_env=False) as client:
        yield client


# --- keys, counts, limits ---


def test_without_the_key_nothing_is_served() -> None:
    with Server(port=0, api_key="sésame-1") as server:
        for wrong in ("sesame-2", "Bearer"):
            with openai.OpenAI(base_url=server.url, api_key=wrong, max_retries=0) as client:
                with pytest.raises(openai.AuthenticationError) as caught:
                    client.models.list()
                assert caught.value.code == "invalid_api_key"
                assert "same" not in str(caught.value)
        assert httpx2.get(server.url + "/models").status_code == 401
        assert httpx2.get(server.url.removesuffix("/v1") + "/stats").status_code == 401


def test_the_right_key_is_let_in() -> None:
    with Server(port=0, api_key="open") as server, openai.OpenAI(base_url=server.url, api_key="open") as client:
        assert client.chat.completions.create(model="classroom-8k", messages=HELLO).choices


def test_requests_are_counted() -> None:
    with Server(port=0) as server, openai.OpenAI(base_url=server.url, api_key="x") as client:
        client.models.list()
        client.models.retrieve("classroom-8k")
        client.chat.completions.create(model="classroom-8k", messages=HELLO)
        client.embeddings.create(model="lexical-hashing", input="a")
        with pytest.raises(openai.NotFoundError):
            client.get("/nowhere", cast_to=object)
        expected = {"/v1/models": 2, CHAT: 1, "/v1/embeddings": 1, "other": 1}
        assert server.counts == expected
        stats = httpx2.get(server.url.removesuffix("/v1") + "/stats").json()
        assert stats == {"requests": expected, "total": 5}


def test_a_rate_limit_is_waited_out_by_the_client() -> None:
    with Server(port=0, rate_limit_every=2, retry_after=0.2) as server:
        with openai.OpenAI(base_url=server.url, api_key="x", max_retries=1) as client:
            client.models.list()
            started = time.perf_counter()
            client.models.list()  # the second request is refused, the third answered
            assert time.perf_counter() - started >= 0.2
        assert server.counts == {"/v1/models": 3}


def test_a_client_without_patience_sees_the_limit() -> None:
    with Server(port=0, rate_limit_every=1, retry_after=7) as server:
        client = openai.OpenAI(base_url=server.url, api_key="x", max_retries=0)
        with client, pytest.raises(openai.RateLimitError) as caught:
            client.models.list()
    assert caught.value.code == "rate_limit_exceeded"
    assert caught.value.response.headers["retry-after"] == "7"


# --- many at once ---


async def test_fifty_requests_at_once() -> None:
    with Server(port=0) as server:
        limits = httpx2.Limits(max_connections=None)
        http = httpx2.AsyncClient(limits=limits, trust_env=False)
        async with openai.AsyncOpenAI(base_url=server.url, api_key="x", http_client=http, max_retries=0) as client:
            texts = [f"我叫张三，号码{i}" for i in range(50)]
            replies = await asyncio.gather(
                *(
                    client.chat.completions.create(
                        model="classroom-8k", messages=[{"role": "user", "content": text}], stream=False
                    )
                    for text in texts
                )
            )
        assert server.counts == {CHAT: 50}
    assert len({reply.id for reply in replies}) == 50
    assert all(reply.choices[0].finish_reason == "stop" for reply in replies)


def test_a_connection_is_kept_and_answers_fast(http: httpx2.Client) -> None:
    body = {"model": "classroom-8k", "messages": HELLO}
    http.post(CHAT, json=body)
    times = []
    for _ in range(20):
        started = time.perf_counter()
        http.post(CHAT, json=body).raise_for_status()
        times.append(time.perf_counter() - started)
    assert sorted(times)[10] < 0.03  # a socket with Nagle's delay needs 40 ms


def test_events_of_a_stream_arrive_one_by_one(http: httpx2.Client) -> None:
    body = {"model": "classroom-8k", "messages": HELLO, "stream": True}
    with http.stream("POST", CHAT, json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.headers["transfer-encoding"] == "chunked"
        text = b"".join(response.iter_raw()).decode()
    events = text.split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""]
    assert all(event.startswith("data: {") for event in events[:-2])


# --- what should not arrive ---


@pytest.mark.parametrize(
    "raw",
    [
        b"garbage\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",  # a client that speaks TLS
        b"POST /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: minus one\r\n\r\n",
        b"POST /v1/models HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nshort",
        b"GET /v1/models HTTP/1.1\r\nHost",
    ],
)
def test_malformed_http_does_no_harm(server: Server, http: httpx2.Client, raw: bytes) -> None:
    with socket.create_connection((server.host, server.port)) as connection:
        connection.sendall(raw)
    assert http.get("/v1/models").status_code == 200


def test_a_body_that_is_too_large_is_a_413() -> None:
    with Server(port=0, max_body=1000) as server, httpx2.Client(base_url=server.url) as http:
        for body in (b"x" * 5000, iter([b"x" * 600] * 3)):
            reply = http.post("/chat/completions", content=body)
            assert reply.status_code == 413
            assert reply.json()["error"]["code"] == "request_too_large"
        assert http.get("/models").status_code == 200


@pytest.mark.parametrize(("method", "status"), [("PUT", 405), ("BREW", 405), ("DELETE", 405), ("OPTIONS", 405)])
def test_other_methods_get_the_error_shape(http: httpx2.Client, method: str, status: int) -> None:
    reply = http.request(method, "/v1/models")
    assert reply.status_code == status
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


def test_a_bug_answers_one_request_with_500(monkeypatch: pytest.MonkeyPatch, http: httpx2.Client) -> None:
    def fail(*args: object, **options: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setattr("memlab.offline.http_handler.dispatch", fail)
    reply = http.get("/v1/models")
    assert reply.status_code == 500
    assert reply.json()["error"]["type"] == "server_error"
    assert "secret" not in reply.text
    monkeypatch.undo()
    assert http.get("/v1/models").status_code == 200


def test_a_client_that_leaves_a_stream_leaves_the_server_well(server: Server, http: httpx2.Client) -> None:
    body = json.dumps({"model": "classroom-8k", "messages": HELLO, "stream": True}).encode()
    head = f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    for _ in range(5):
        with socket.create_connection((server.host, server.port)) as connection:
            connection.sendall(head + body)
            connection.recv(10)
    assert http.get("/v1/models").status_code == 200


# --- start and stop ---


def test_a_taken_port_is_explained(server: Server) -> None:
    with pytest.raises(ConfigurationError, match=f"{server.port}.*Choose another port"):
        Server(port=server.port).start()


def test_it_listens_on_this_machine_only_unless_told(server: Server) -> None:
    assert server.url == f"http://127.0.0.1:{server.port}/v1"


def test_a_stopped_server_is_gone() -> None:
    with Server(port=0) as server:
        assert httpx2.get(server.url + "/models").status_code == 200
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(server.url + "/models")


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGTERM to send to one process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_serve_says_how_to_use_it_and_stops_on_a_signal(number: signal.Signals) -> None:
    command = [sys.executable, "-m", "memlab.cli", "serve", "--port", "0", "--api-key", "k-123"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ)
    try:
        assert process.stdout is not None
        printed = "".join(process.stdout.readline() for _ in range(5))
        url = re.search(r"OPENAI_BASE_URL=(\S+)", printed)[1]
        assert httpx2.get(url + "/models", headers={"Authorization": "Bearer k-123"}).status_code == 200
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0
    assert "stopped after 1 requests" in out
    assert "k-123" not in printed + out + err
    assert err == ""
