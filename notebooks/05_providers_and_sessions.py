# %% [markdown]
# # 05 · Providers and sessions
#
# The memories of lessons 2 and 4 were written by hand. Here they become **plug-ins** of an agent.
# The names are those of Microsoft's Agent Framework: what you write here runs there.

# %%
import inspect
import json
import tempfile
from pathlib import Path

import memlab
from memlab.experiments.comparison import run_in_new_process

lab = memlab.connect()
folder = Path(tempfile.mkdtemp())
print(lab.banner())

# %% [markdown]
# ## A session
#
# An `AgentSession` is one conversation: an id and a `state`. The agent itself keeps nothing, so one agent serves many.

# %%
agent = memlab.Agent(lab.chat, "You are a friendly assistant.")
zhang, anna = agent.create_session(), agent.create_session()
await agent.run("我叫张三", session=zhang)
await agent.run("My name is Anna", session=anna)
print((await agent.run("我叫什么名字", session=zhang)).text)
print((await agent.run("What is my name?", session=anna)).text)

# %%
lab.check("张三" in (await agent.run("我叫什么名字", session=zhang)).text, "each session has a history of its own")
lab.check("张三" not in (await agent.run("我叫什么名字")).text, "and without a session there is none")

# %% [markdown]
# Where is the history? In the session's state, put there by an `InMemoryHistoryProvider`, which an agent with a
# session uses unless you give it another history.

# %%
{name: len(part["messages"]) for name, part in zhang.state.items()}

# %%
lab.check(len(zhang.state["in_memory"]["messages"]) == 6, "three turns are six messages")

# %% [markdown]
# ## The simple custom provider: load and store
#
# A history provider of your own needs two methods. This one keeps its messages in a dictionary.


# %%
class DictHistoryProvider(memlab.HistoryProvider):
    def __init__(self, source_id="dict_history"):
        super().__init__(source_id)
        self.shelf = {}

    async def get_messages(self, session_id, *, state=None, **kwargs):
        return list(self.shelf.get(session_id, []))

    async def save_messages(self, session_id, messages, *, state=None, **kwargs):
        self.shelf.setdefault(session_id, []).extend(messages)


# %%
shelf = DictHistoryProvider()
agent = memlab.Agent(lab.chat, context_providers=[shelf])
session = agent.create_session()
await agent.run("Меня зовут Олег", session=session)
response = await agent.run("Как меня зовут?", session=session)
print(response.text, "|", len(shelf.shelf[session.session_id]), "messages on the shelf")

# %%
lab.check("Олег" in response.text, "two methods are enough for a history")

# %% [markdown]
# ## The advanced custom provider: both hooks
#
# `before_run` adds to a request, `after_run` learns from the answer. The provider below writes a diary: it tells the
# model how many turns there were, and it counts a turn only when it succeeded. What belongs to the session is in
# `state`, never in the provider.


# %%
class DiaryProvider(memlab.ContextProvider):
    async def before_run(self, *, agent, session, context, state):
        note = f"## Diary\nSo far the user has had {state.get('turns', 0)} answers."
        context.extend_messages(self, [memlab.Message("user", note)])

    async def after_run(self, *, agent, session, context, state):
        state["turns"] = state.get("turns", 0) + 1


# %%
agent = memlab.Agent(lab.chat, context_providers=[memlab.InMemoryHistoryProvider(), DiaryProvider("diary")])
session = agent.create_session()
await agent.run("我叫张三", session=session)
response = await agent.run("我叫什么名字", session=session)
response.trace.frame()

# %% [markdown]
# Every message is stamped with its source: history first, then the input, then what providers added. And because the
# note is stamped, it is not stored as if somebody had said it:

# %%
stored = session.state["in_memory"]["messages"]
lab.check(not any("Diary" in message.text for message in stored), "what a provider added is not stored as history")
lab.check(session.state["diary"] == {"turns": 2}, "the diary counts two turns")

# %% [markdown]
# **Predict:** the next request fails, because the model does not exist. What does the session keep of it?

# %%
import openai

before = session.to_dict()
broken = memlab.Agent(lab.with_model("no-such-model").chat, context_providers=agent.context_providers)
try:
    await broken.run("I like pierogi", session=session)
    failed = False
except openai.NotFoundError as error:
    failed = True
    print(error.code)

# %%
lab.check(failed and session.to_dict() == before, "a run that fails stores nothing")

# %% [markdown]
# ## A database behind it
#
# `SqliteHistoryProvider` is the pattern for any database: **the key is in the session's state, the connection in the
# provider**. Its two central methods:

# %%
print(inspect.getsource(memlab.SqliteHistoryProvider._read))
print(inspect.getsource(memlab.SqliteHistoryProvider._key))

# %%
database = memlab.SqliteHistoryProvider(folder / "chats.sqlite")
agent = memlab.Agent(lab.chat, context_providers=[database])
session = agent.create_session(session_id="lesson-5")
await agent.run("I live in Gdansk.", session=session)
session.state

# %%
lab.check("messages" not in session.state["sqlite_history"], "the session carries a key, not the messages")

# %% [markdown]
# ## Save a session, resume it in a new process
#
# A session is JSON. With an in-memory history, the messages travel inside; with a database, only the key does.

# %%
small = session.to_dict()
(folder / "session.json").write_text(json.dumps(small), encoding="utf-8")
whole = zhang.to_dict()
print(len(json.dumps(small)), "bytes with a database,", len(json.dumps(whole)), "bytes with the messages inside")

# %%
resume = f"""
import asyncio, json, memlab
folder = {str(folder)!r}
session = memlab.AgentSession.from_dict(json.load(open(folder + "/session.json", encoding="utf-8")))
database = memlab.SqliteHistoryProvider(folder + "/chats.sqlite")
agent = memlab.Agent(memlab.connect().chat, context_providers=[database])
print(asyncio.run(agent.run("Where do I live?", session=session)).text)
"""
answer = run_in_new_process(resume)
print(answer)

# %%
lab.check("Gdansk" in answer, "another process goes on with the conversation")

# %% [markdown]
# By id alone works, too: whoever knows the session's id finds the history in the database.

# %%
again = agent.create_session(session_id="lesson-5")
response = await agent.run("Where do I live?", session=again)
lab.check("Gdansk" in response.text, "a session opened by its id has its history")

# %% [markdown]
# What can't be kept as JSON is refused by name, instead of getting lost:

# %%
again.state["window"] = object()
try:
    again.to_dict()
except memlab.InvalidTypeError as error:
    print(str(error).split(" object at")[0], "…", str(error).split("; ")[-1])

# %% [markdown]
# ## History kept by the service
#
# The Responses API can keep the history itself. The session then holds only the service's id, and each request
# carries only what is new. `OpenAIChatClient` speaks that API.

# %%
served = memlab.OpenAIChatClient(lab.model, client_of=lambda: lab.client).as_agent(instructions="Be brief.")
session = served.create_session()
await served.run("Remember that I like Italian food.", session=session)
resumed = served.get_session(service_session_id=session.service_session_id)
response = await served.run("What food do I like?", session=resumed)
print(response.text, "|", len(response.trace.sent), "messages sent")

# %%
lab.check("Italian" in response.text, "the service remembers")
lab.check(len(response.trace.sent) == 2, "instructions and question went out, no history")

# %% [markdown]
# ## What to take along
#
# - The agent is stateless; a session is a small piece of JSON; a provider decides where the history lives.
# - Two methods make a history, two hooks make any other memory.
# - All of this still remembers **one conversation**. A memory over many conversations, for many users: lesson 6.
#
# **Exercise.** Give `DictHistoryProvider` a limit: only the last four messages are sent. There are two ways: change
# `get_messages`, or pass a reducer to the base class. Which one keeps what was said?

# %%
print(lab.banner())
