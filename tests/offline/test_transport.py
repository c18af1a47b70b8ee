"""The in-process way never touches the network."""

import asyncio
import threading

import openai
import pytest

from memlab.offline.transport import OFFLINE_URL, OfflineTransport, async_http_client, sync_http_client

HELLO = [{"role": "user", "content": "hi"}]


def test_one_transport_serves_both_kinds_of_client() -> None:
    import httpx2

    transport = OfflineTransport()
    assert isinstance(transport, httpx2.BaseTransport)
    assert isinstance(transport, httpx2.AsyncBaseTransport)


def test_a_proxy_in_the_environment_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    with openai.OpenAI(base_url=OFFLINE_URL, api_key="x", http_client=sync_http_client(), max_retries=0) as client:
        assert client.chat.completions.create(model="classroom-8k", messages=HELLO).choices


def test_a_client_may_be_shared_by_threads() -> None:
    client = openai.OpenAI(base_url=OFFLINE_URL, api_key="x", http_client=sync_http_client())
    replies: list[str | None] = []

    def ask() -> None:
        reply = client.chat.completions.create(model="classroom-8k", messages=HELLO)
        replies.append(reply.choices[0].message.content)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(replies) == 8
    assert len(set(replies)) == 1


async def test_embedding_a_long_text_leaves_the_event_loop_free() -> None:
    waits: list[float] = []
    loop = asyncio.get_running_loop()

    async def watch() -> None:
        while True:
            before = loop.time()
            await asyncio.sleep(0.001)
            waits.append(loop.time() - before)

    async with openai.AsyncOpenAI(base_url=OFFLINE_URL, api_key="x", http_client=async_http_client()) as client:
        await client.embeddings.create(model="use-multilingual", input="load the encoder")
        watching = asyncio.create_task(watch())
        started = loop.time()
        await client.embeddings.create(model="use-multilingual", input=["word " * 2000] * 4)
        took = loop.time() - started
        watching.cancel()
    assert max(waits) < took / 2
