"""Official clients on the endpoint: in process and over a port."""

from collections.abc import AsyncIterator, Iterator

import openai
import pytest

from memlab.offline.server import Server
from memlab.offline.transport import OFFLINE_URL, async_http_client, sync_http_client


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server(port=0) as running:
        yield running


@pytest.fixture(params=["in process", "on a port"])
def client(request: pytest.FixtureRequest) -> Iterator[openai.OpenAI]:
    """The official sync client, once on each way to the endpoint."""
    if request.param == "in process":
        made = openai.OpenAI(base_url=OFFLINE_URL, api_key="x", http_client=sync_http_client(), max_retries=0)
    else:
        made = openai.OpenAI(base_url=request.getfixturevalue("server").url, api_key="x", max_retries=0)
    with made:
        yield made


@pytest.fixture(params=["in process", "on a port"])
async def async_client(request: pytest.FixtureRequest) -> AsyncIterator[openai.AsyncOpenAI]:
    """The official async client, once on each way to the endpoint."""
    if request.param == "in process":
        made = openai.AsyncOpenAI(base_url=OFFLINE_URL, api_key="x", http_client=async_http_client(), max_retries=0)
    else:
        made = openai.AsyncOpenAI(base_url=request.getfixturevalue("server").url, api_key="x", max_retries=0)
    async with made:
        yield made
