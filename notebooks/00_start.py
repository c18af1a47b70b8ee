# %% [markdown]
# # 00 · Start here
#
# A language model has no memory. What it seems to remember was put into its prompt, again, by somebody.
# This kit shows who puts it there, what that costs, and where it goes wrong, and it measures every claim.

# %%
import memlab

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# ## Offline or live
#
# **Offline** is the default: no key, no network, no cost, and the same result for everyone. The chat model is the
# **classroom model**. It is not a language model: it follows rules, and it can use only what stands in the request.
# That makes it a good witness. If it knows your name, your name was in the prompt.
# The embeddings are real (a multilingual sentence encoder), tokens are counted by a real tokenizer, and the official
# `openai` client does the talking.
#
# **Live** runs the same cells against any OpenAI-compatible endpoint, once you ask for it: set `MEMLAB_MODE=live`,
# or put a key or a URL into a `.env` file. A key that merely lies in your environment spends nothing.

# %%
print(lab.describe())

# %% [markdown]
# ## One request
#
# Everything in these lessons comes down to this: a list of messages goes out, one message comes back.

# %%
answer = await lab.client.chat.completions.create(
    model=lab.model,
    messages=[{"role": "user", "content": "我叫张三"}],
)
print(answer.choices[0].message.content)
print(answer.usage.prompt_tokens, "tokens went out,", answer.usage.completion_tokens, "came back")

# %% [markdown]
# ## How a claim is checked
#
# A lesson says something, and the next line tests it. Offline, a claim that fails stops the notebook.
# Live, a model may word things differently: then you see ✗ and the lesson goes on.

# %%
lab.check("张三" in answer.choices[0].message.content, "the model uses the name that stands in its prompt")

# %% [markdown]
# ## Figures
#
# Every figure is one function of `memlab.show`, with a description for those who can't see it.
# (The scores of this one are made up, only to show the look.)

# %%
from memlab.show import plot_similarities

plot_similarities(["我对花生过敏", "I like pierogi", "Я живу в Казани"], [0.61, 0.34, 0.12], threshold=0.3)

# %% [markdown]
# ## How to read the kit
#
# | | |
# |---|---|
# | 01 Amnesia | each request stands alone |
# | 02 Full history | send everything, and pay for it |
# | 03 Vectors | how texts become comparable |
# | 04 Vector memory | send only what is related |
# | 05 Providers and sessions | memory as a plug-in; a conversation saved and resumed |
# | 06 Scope isolation | one store, many users: who sees whom |
# | 07 Search on demand | memory as a tool; logs; a memory that gives orders |
# | 08 Sweeps | what top-k, threshold and ranking really do |
# | 10 Keeping it | files, databases, clusters, the real Agent Framework |
#
# Run the cells from top to bottom. Before a cell that begins with **Predict**, write down what you expect.
# Widgets need a running kernel; below each stands a plain figure that shows the same.
# If something does not work, `memlab doctor` in a terminal says what and why.
