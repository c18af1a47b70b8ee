"""The meter: every request of a connection is counted, whoever makes it and however it comes back."""

import gzip
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from memlab.clients.meter import Meter
from memlab.settings import Lab, read_settings


@pytest.fixture
def lab():
    return Lab(read_settings({}, {}))


async def test_plain_and_streamed_chats_are_counted_alike(lab):
    messages = [{"role": "user", "content": "我叫张三"}]
    whole = await lab.client.chat.completions.create(model=lab.model, messages=messages)
    assert lab.meter.input_tokens == {lab.model: whole.usage.prompt_tokens}
    assert lab.meter.output_tokens == {lab.model: whole.usage.completion_tokens}
    stream = await lab.client.chat.completions.create(
        model=lab.model, messages=messages, stream=True, stream_options={"include_usage": True}
    )
    async for _ in stream:
        pass
    assert lab.meter.requests == {lab.model: 2}
    assert lab.meter.input_tokens == {lab.model: 2 * whole.usage.prompt_tokens}
    assert lab.meter.output_tokens == {lab.model: 2 * whole.usage.completion_tokens}
    assert lab.meter.unreported == 0


async def test_an_agents_turns_are_counted_as_the_agent_counts_them(lab):
    agent = lab.chat.as_agent()
    plain = await agent.run("我叫张三")
    streamed = await agent.run("我叫张三", stream=True).get_final_response()
    assert plain.usage_details == streamed.usage_details
    assert lab.meter.input_tokens[lab.model] == 2 * plain.usage_details["input_token_count"]


def test_embeddings_are_counted_as_the_embedder_counts_them(lab):
    lab.embedder.embed(["我叫张三", "hello"])
    lab.embedder.embed(["again"] * 100)
    assert lab.meter.requests == {lab.embedding_model: 2}
    assert lab.meter.input_tokens[lab.embedding_model] == lab.embedder.tokens_used > 100


async def test_a_stream_without_usage_and_an_abandoned_one_are_unreported(lab):
    messages = [{"role": "user", "content": "hello there"}]
    stream = await lab.client.chat.completions.create(model=lab.model, messages=messages, stream=True)
    async for _ in stream:
        pass
    stream = await lab.client.chat.completions.create(model=lab.model, messages=messages, stream=True)
    await anext(stream)
    await stream.close()
    assert (lab.meter.requests[lab.model], lab.meter.unreported) == (2, 2)
    assert "2 without usage" in lab.cost_so_far()


async def test_a_refused_request_costs_nothing(lab):
    with pytest.raises(Exception, match="no-such-model"):
        await lab.client.chat.completions.create(model="no-such-model", messages=[{"role": "user", "content": "hi"}])
    assert not lab.meter.requests


def test_a_message_that_talks_about_usage_is_not_counted_as_usage():
    meter = Meter()
    content = json.dumps({"choices": [{"message": {"content": '"usage": {"prompt_tokens": 999}'}}]})
    meter.add("m", content.encode())
    assert (meter.unreported, meter.input_tokens["m"]) == (1, 0)


def test_the_price_of_known_and_unknown_models():
    meter = Meter()
    assert meter.cost_usd() == 0
    meter.add("gpt-4o-mini", b'{"usage": {"prompt_tokens": 1000000, "completion_tokens": 1000000}}')
    assert meter.cost_usd() == 0.75
    meter.add("classroom-8k", b'{"usage": {"prompt_tokens": 5}}')
    assert meter.cost_usd() == 0.75
    meter.add("nobody-knows", b'{"usage": {"prompt_tokens": 5}}')
    assert meter.cost_usd() is None


# --- services that write another way ---


class Service(BaseHTTPRequestHandler):
    """Compresses what it may, and puts the usage of embeddings before the data."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        usage = {"prompt_tokens": 40, "total_tokens": 40}
        if "input" in request:
            rows = [{"index": i, "embedding": [0.125] * 3000} for i in range(len(request["input"]))]
            answer = {"object": "list", "usage": usage, "data": rows}
        else:
            choice = {"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}
            answer = {"id": "1", "choices": [choice], "usage": usage | {"completion_tokens": 2}}
        body, compress = json.dumps(answer).encode(), "gzip" in self.headers.get("accept-encoding", "")
        self.send_response(200)
        self.send_header("content-type", "application/json")
        if compress:
            body = gzip.compress(body)
            self.send_header("content-encoding", "gzip")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def service() -> Iterator[Lab]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        Thread(target=server.serve_forever, args=[0.01], daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        yield Lab(read_settings({"MEMLAB_MODE": "live", "OPENAI_BASE_URL": url, "MEMLAB_MODEL": "m"}, {}))
        server.shutdown()


async def test_a_service_that_would_compress_is_counted(service):
    response = await service.chat.as_agent().run("hi")
    assert (response.text, service.meter.input_tokens["m"], service.meter.unreported) == ("hi", 40, 0)


def test_usage_before_the_data_is_counted(service):
    assert service.embedder.embed(["a", "b"]).shape == (2, 3000)
    assert (service.meter.input_tokens[service.embedding_model], service.meter.unreported) == (40, 0)


async def test_responses_are_counted_under_their_own_names():
    lab = Lab(read_settings({}, {}))
    answer = await lab.client.responses.create(model=lab.model, input="我叫张三")
    async with await lab.client.responses.create(model=lab.model, input="我叫张三", stream=True) as events:
        async for _ in events:
            pass
    assert lab.meter.requests[lab.model] == 2
    assert lab.meter.input_tokens[lab.model] == 2 * answer.usage.input_tokens > 0
    assert lab.meter.output_tokens[lab.model] == 2 * answer.usage.output_tokens > 0
