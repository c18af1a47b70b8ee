"""Live mode, proven against endpoints in other processes, by the code that a learner runs."""

import json
import time
import urllib.request
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LESSONS = sorted(path.stem for path in (ROOT / "notebooks").glob("0[1-4]_*.py"))

SCRIPT = """
import asyncio, json, memlab

async def main():
    lab = memlab.connect()
    agent = memlab.Agent(lab.chat, "Be brief.")
    session = agent.create_session()
    await agent.run("我叫张三", session=session)
    plain = await agent.run("我叫什么名字", session=session)
    stream = agent.run("My name is Anna", stream=True)
    pieces = [update.text async for update in stream]
    final = await stream.get_final_response()
    vectors = lab.embedder.embed(["cat", "Katze", "invoice", "cat"])
    print(json.dumps({
        "offline": lab.offline, "text": plain.text, "usage": plain.usage_details,
        "estimated": plain.usage_details.estimated,
        "pieces": pieces, "streamed": final.text, "stream_estimated": final.usage_details.estimated,
        "shape": vectors.shape, "same": bool(abs(vectors[0] @ vectors[3] - vectors[0] @ vectors[0]) < 1e-5),
        "different": float(vectors[0] @ vectors[2]), "dimensions": lab.embedder.dimensions,
        "requests": lab.meter.requests, "input": lab.meter.input_tokens, "unreported": lab.meter.unreported,
        "cost": lab.cost_so_far(), "banner": lab.banner(), "settings": repr(lab.settings) + lab.describe(),
    }))
    await lab.client.close()

asyncio.run(main())
"""


def requests_seen(settings) -> int:
    url = settings["OPENAI_BASE_URL"].removesuffix("/v1") + "/stats"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {settings['OPENAI_API_KEY']}"})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return json.load(opener.open(request, timeout=10))["total"]


def outcome(process):
    assert process.returncode == 0, process.stderr
    return json.loads(process.stdout.splitlines()[-1])


def test_agent_embedder_and_meter_against_memlab_serve(run, served):
    got = outcome(run(served, "-c", SCRIPT))
    assert got["offline"] is False
    assert "LIVE" in got["banner"]
    assert "张三" in got["text"]
    assert got["usage"]["input_token_count"] > 0
    assert not got["estimated"]
    assert not got["stream_estimated"]
    assert "".join(got["pieces"]) == got["streamed"]
    assert got["shape"] == [4, 512]
    assert got["requests"] == {"classroom-128k": 3, "use-multilingual": 1}
    assert got["input"]["classroom-128k"] >= got["usage"]["input_token_count"]
    assert got["input"]["use-multilingual"] > 0
    assert got["unreported"] == 0
    assert served["OPENAI_API_KEY"] not in json.dumps(got)


def test_agent_embedder_and_meter_against_the_stub(run, stubbed):
    got = outcome(run(stubbed, "-c", SCRIPT))
    assert got["text"] == "[stub] Read 4 message(s)."  # instructions, the first turn's two, the question
    assert got["usage"]["input_token_count"] > 0
    assert got["estimated"]
    assert got["stream_estimated"]
    assert got["pieces"] == [got["streamed"]]
    assert got["shape"] == [4, 24]
    assert got["same"], "rows must be put in order by their index"
    assert got["different"] < 0.9
    assert got["dimensions"] == 24
    assert got["requests"] == {"stub-chat": 3, "stub-vectors": 1}
    assert got["unreported"] == 4
    assert "4 without usage" in got["cost"]
    assert "no price known" in got["cost"]


def test_a_claim_that_does_not_hold_is_shown_and_the_lesson_goes_on(run, stubbed):
    code = "import memlab; lab = memlab.connect(); lab.check(False, 'it rains'); lab.check(True, 'it pours')"
    process = run(stubbed, "-c", code)
    assert process.stdout.splitlines() == ["✗ it rains", "✓ it pours"]
    assert process.returncode == 0


def test_a_wrong_key_is_an_authentication_error(run, served):
    code = """
import asyncio, memlab, openai
lab = memlab.connect()
try:
    lab.embedder.embed(["x"])
except openai.AuthenticationError as error:
    print(error.status_code)
try:
    asyncio.run(memlab.Agent(lab.chat).run("x"))
except openai.AuthenticationError as error:
    print(error.code)
"""
    started = time.perf_counter()
    process = run(served | {"OPENAI_API_KEY": "wrong"}, "-c", code)
    assert process.stdout.split() == ["401", "invalid_api_key"], process.stderr
    assert time.perf_counter() - started < 15, "a wrong key must not be tried again and again"


@pytest.mark.parametrize("which", ["served", "stubbed"])
def test_doctor_says_ok(run, request, which):
    settings = request.getfixturevalue(which)
    process = run(settings, "-m", "memlab.cli", "doctor")
    assert process.returncode == 0, process.stdout
    assert "LIVE: MEMLAB_MODE says so" in process.stdout
    assert "the endpoint answers" in process.stdout
    assert "errors: 0" in process.stdout
    assert settings["OPENAI_API_KEY"] not in process.stdout


def test_doctor_names_a_wrong_key_and_keeps_it_secret(run, served):
    process = run(served | {"OPENAI_API_KEY": "wr0ng-k3y"}, "-m", "memlab.cli", "doctor")
    assert process.returncode == 1
    assert "refuses the API key (401)" in process.stdout
    assert "wr0ng" not in process.stdout + process.stderr


def test_chat_goes_on_after_an_error(run, served):
    lines = ["My name is Anna", "word " * 9000, "What is my name?"]
    chat = ("-m", "memlab.cli", "chat", "--model", "classroom-8k")
    process = run(served, *chat, input="\n".join(lines) + "\n")
    assert process.returncode == 0, process.stderr
    assert "context_length_exceeded" in process.stdout
    answers = [line for line in process.stdout.splitlines() if line.startswith("model> ")]
    assert len(answers) == 3
    assert "Anna" in answers[-1]


def test_chat_goes_on_after_a_broken_stream(run, stubbed):
    process = run(stubbed, "-m", "memlab.cli", "chat", input="hello\nhang up\nhello\n/memory\n")
    assert process.returncode == 0, process.stderr
    assert "error: the connection broke off" in process.stdout
    assert process.stdout.count("     user: ") == 2
    assert "model> [stub] Read 3 message(s)." in process.stdout


def test_chat_with_vector_memory_against_the_stub(run, stubbed):
    process = run(stubbed, "-m", "memlab.cli", "chat", "--memory", "vector", input="I like tea\nI like tea\n")
    assert process.returncode == 0, process.stderr
    assert "(estimated)" in process.stdout
    assert "no price known" in process.stdout
    assert "memories: 1 of 2 sent, scores 1.00" in process.stdout


@pytest.mark.parametrize("which", ["served", "stubbed"])
@pytest.mark.parametrize("lesson", LESSONS)
def test_a_lesson_runs_live(run, request, which, lesson):
    settings = request.getfixturevalue(which)
    before = requests_seen(settings)
    process = run(settings, str(ROOT / "notebooks" / "build.py"), "--live", lesson)
    assert process.returncode == 0, process.stdout + process.stderr
    assert requests_seen(settings) > before, "the lesson asked somebody else"
