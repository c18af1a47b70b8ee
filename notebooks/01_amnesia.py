# %% [markdown]
# # 01 · Amnesia
#
# We tell the model our name. In the next request we ask for it.

# %%
import inspect

import memlab
from memlab.experiments.loops import amnesia

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# The loop is short. Each request carries one message, and nothing is kept.

# %%
print(inspect.getsource(amnesia))

# %%
hello = await amnesia(lab, "我叫张三")
print(hello.text)

# %% [markdown]
# **Predict:** the model has just greeted us by name. Will it know the name now?

# %%
asked = await amnesia(lab, "我叫什么名字")
print(asked.text)

# %%
lab.check("张三" in hello.text, "the model can use the name while it stands in the request")
lab.check("张三" not in asked.text, "in the next request the name is gone")

# %% [markdown]
# Nothing was forgotten, because nothing was ever kept. This is all that the second request held:

# %%
asked.sent

# %%
lab.check(len(asked.sent) == 1, "the request carries one message")

# %% [markdown]
# ## The same in English and Russian

# %%
english = [await amnesia(lab, text) for text in ("My name is Anna", "What is my name?")]
russian = [await amnesia(lab, text) for text in ("Меня зовут Олег", "Как меня зовут?")]
for turn in english + russian:
    print(f"{turn.sent[0]['content']:20} → {turn.text}")

# %%
lab.check("Anna" in english[0].text and "Anna" not in english[1].text, "amnesia in English")
lab.check("Олег" in russian[0].text and "Олег" not in russian[1].text, "amnesia in Russian")

# %% [markdown]
# ## An agent has the same amnesia
#
# An `Agent` without a session sends its instructions and the input, nothing else. The trace of a response says so.

# %%
agent = memlab.Agent(lab.chat, "You are a friendly assistant.")
await agent.run("我叫张三")
response = await agent.run("我叫什么名字")
response.trace.frame()

# %%
lab.check("张三" not in response.text, "an agent without a session remembers nothing")

# %% [markdown]
# ## What to take along
#
# - A model is a function of its request. Memory is what somebody puts into that request.
# - "It knew my name a second ago" is no evidence of memory: ask in a **new** request.
#
# **Exercise.** Make one request that contains both the name and the question. How many messages do you need?

# %%
both = await amnesia(lab, "我叫张三。我叫什么名字？")
print(both.text)

# %%
lab.check("张三" in both.text, "one message is enough, if the answer stands in it")
print(lab.banner())
