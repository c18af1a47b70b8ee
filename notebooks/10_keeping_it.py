# %% [markdown]
# # 10 · Keeping it
#
# The memory of lesson 4 died with its process. Here it outlives it: in a file, in a database, on several machines.
# And the same provider moves into the real Agent Framework.

# %%
import asyncio
import tempfile
from pathlib import Path

import memlab
from memlab import EVERYONE, ChatHistoryMemoryProvider, MemoryRecord, MemoryScope, State
from memlab.experiments.comparison import run_in_new_process
from memlab.experiments.takeout import user_of, visit

lab = memlab.connect()
folder = Path(tempfile.mkdtemp())
print(lab.banner())

# %% [markdown]
# ## One protocol, three stores
#
# Everything so far worked on `InMemoryVectorStore`. The other stores take the same calls.

# %%
alice, bob = MemoryScope(user_id="alice"), MemoryScope(user_id="bob")
store = memlab.SqliteVectorStore(folder / "memory.sqlite", embedder=lab.embedder)
store.upsert("facts", [MemoryRecord("我不能吃辣", scope=alice), MemoryRecord("I like it hot", scope=bob)])
[hit.record.text for hit in store.search("facts", "Can I eat chilli?", scope=alice)]

# %%
lab.check(store.count("facts", scope=alice) == 1, "scopes work as before")

# %% [markdown]
# ## It outlives the process
#
# **Predict:** a second process opens the file. What does it find?

# %%
code = f"""
import memlab
store = memlab.SqliteVectorStore({str(folder / "memory.sqlite")!r}, embedder=memlab.connect().embedder)
print([record.text for record in store.scan("facts", scope=memlab.EVERYONE)])
store.upsert("facts", [memlab.MemoryRecord("Written elsewhere", scope=memlab.MemoryScope(user_id="alice"))])
"""
print(run_in_new_process(code))

# %%
texts = [record.text for record in store.scan("facts", scope=alice)]
lab.check(texts == ["Written elsewhere", "我不能吃辣"], "both processes see what the other wrote, newest first")

# %% [markdown]
# ## Several processes at once
#
# Four processes write to one file at the same time, each its own hundred records.

# %%
writer = f"""
import sys, numpy as np, memlab
store = memlab.SqliteVectorStore({str(folder / "busy.sqlite")!r})
for i in range(100):
    record = memlab.MemoryRecord(f"{{sys.argv[1]}} {{i}}", embedding=np.ones(8, dtype=np.float32))
    store.upsert("busy", [record])
"""
(folder / "writer.py").write_text(writer, encoding="utf-8")


async def run_writer(name):
    import sys

    process = await asyncio.create_subprocess_exec(sys.executable, str(folder / "writer.py"), name)
    return await process.wait()


codes = await asyncio.gather(*(run_writer(name) for name in "abcd"))

# %%
busy = memlab.SqliteVectorStore(folder / "busy.sqlite")
lab.check(codes == [0] * 4 and busy.count("busy", scope=EVERYONE) == 400, "four writers, no record lost")

# %% [markdown]
# ## A collection knows its embedding model
#
# Vectors of two models do not compare. A collection remembers its model and refuses another; embedding it again is
# one call.

# %%
other = lab.embedder_for("lexical-hashing")
try:
    memlab.SqliteVectorStore(folder / "memory.sqlite", embedder=other).search("facts", "chilli", scope=EVERYONE)
except memlab.InvalidInputError as error:
    print(error)

# %% [markdown]
# ## PostgreSQL with pgvector
#
# For many users and machines. This cell starts a real PostgreSQL from a Python package, where that is installed
# (the extra `tests`); with `MEMLAB_POSTGRES_URL` it would use your own.

# %%
from memlab.experiments.lesson_database import open_lesson_database

server = open_lesson_database()
print("a PostgreSQL is running" if server else "no PostgreSQL here: the cells about it are left out")

# %%
if server:
    shared = memlab.PostgresVectorStore(server.url, embedder=lab.embedder)
    shared.upsert("facts", [MemoryRecord("我不能吃辣", scope=alice), MemoryRecord("I like it hot", scope=bob)])
    found = [hit.record.text for hit in shared.search("facts", "Can I eat chilli?", scope=alice)]
    lab.check(found == ["我不能吃辣"], "the same calls, the same answers, from a database")

# %% [markdown]
# ## The same provider on any store


# %%
def memory_on(store):
    def whose(session):
        return State(MemoryScope(user_id=user_of(session)))

    return ChatHistoryMemoryProvider(store, "chats", lab.embedder.dimensions, whose)


stores = {"memory": memlab.InMemoryVectorStore(lab.embedder), "SQLite": store} | (
    {"PostgreSQL": shared} if server else {}
)
for name, each in stores.items():
    agent = memlab.Agent(lab.chat, context_providers=[memory_on(each)])
    await visit(agent, "anna", "My cat is called Pixel.")
    answer = (await visit(agent, "anna", "What is my cat's name?")).text
    print(f"{name:10} {answer}")
    lab.check("Pixel" in answer, f"recalled from {name}")

# %% [markdown]
# ## Sweeps on a cluster
#
# A sweep is made of independent parts, and runs through joblib. On a Dask cluster it takes one more line:

# %%
from memlab.experiments.datasets import load_teaching_set
from memlab.experiments.sweep import sweep

settings = {"top_k": [3, 6], "rank": ["cosine", "hybrid"], "progress": False, "resamples": 0}
settings["embedder"] = lab.cached_embedder(path=folder / "embeddings.sqlite")
here = sweep(load_teaching_set(), **settings)

# %%
import joblib

try:
    from dask.distributed import Client, LocalCluster
except ImportError:
    Client = None
    print("no Dask here: the next cell is left out (extra `dask`)")

# %%
if Client is not None:
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    with cluster, Client(cluster), joblib.parallel_config("dask"):
        there = sweep(load_teaching_set(), n_jobs=-1, **settings)
    lab.check(there.round(6).equals(here.round(6)), "the cluster gives the same table")

# %% [markdown]
# For a real cluster, put its address into `Client("tcp://...")`; its workers need memlab installed and the same data.
#
# ## In the real Agent Framework
#
# What you wrote here carries over. The adapter hands this very provider to Microsoft's `Agent`.

# %%
try:
    import agent_framework
except ImportError:
    agent_framework = None
    print("Agent Framework is not installed: the next cell is left out (extra `agent-framework`)")

# %%
if agent_framework:
    from agent_framework.openai import OpenAIChatCompletionClient

    from memlab.interop.agent_framework import adapt

    client = OpenAIChatCompletionClient(model=lab.model, async_client=lab.client)
    theirs = agent_framework.Agent(client=client, context_providers=[adapt(memory_on(store))])
    session = theirs.create_session()
    session.state["user_id"] = "anna"
    answer = await theirs.run("What is my cat's name?", session=session)
    print(answer.text)
    lab.check("Pixel" in answer.text, "Agent Framework's agent remembers what our agent was told")

# %% [markdown]
# ## What to take along
#
# - A store is one small protocol. Choose it by who writes: one notebook, several processes, or many machines.
# - An acknowledged record survives a killed process, in SQLite and in PostgreSQL; a power cut is another matter.
# - Vectors belong to their model. Keep the texts, and you can always embed again.

# %%
if server:
    server.stop()
print(lab.banner())
