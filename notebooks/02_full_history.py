# %% [markdown]
# # 02 · Full history
#
# The simplest memory: send everything that was said so far, every time.
# It works at once, and then it gets expensive.

# %%
import inspect

import memlab
from memlab import show
from memlab.experiments import forgetting, hundred_turns
from memlab.experiments.loops import full_history

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# Two lines make the difference to lesson 1: the past goes along, and the question and the answer are appended to it.

# %%
print(inspect.getsource(full_history))

# %%
history = []
await full_history(lab, history, "我叫张三")
turn = await full_history(lab, history, "我叫什么名字")
print(turn.text)

# %%
lab.check("张三" in turn.text, "with its history in the request, the model knows the name")
lab.check(len(turn.sent) == 3, "three messages went out: the first turn's two, and the question")

# %% [markdown]
# ## A streamed chat
#
# The answer comes in pieces, and each is shown as it arrives.

# %%
history = []
for text in ["Меня зовут Олег.", "I live in Kazan.", "Как меня зовут?", "Where do I live?"]:
    print("you  >", text)
    print("model> ", end="")
    turn = await full_history(lab, history, text, say=lambda piece: print(piece, end=""))
    print(f"   [{turn.usage['input_token_count']} tokens sent]")

# %%
lab.check("Kazan" in turn.text, "history carries facts across languages")

# %% [markdown]
# ## What it costs: a conversation of 100 turns
#
# One student talks to an assistant: 40 facts, 35 remarks, 25 pasted tables.
# **Predict:** how many tokens go out in turn 100? How many in all 100 turns together?

# %%
talk = hundred_turns.load_conversation()
affordable = lab.affordable("100 turns with full history", input_tokens=2_000_000, output_tokens=4_000)
turns = talk.turns if affordable else talk.turns[:12]
turns[:3]

# %%
history = []
full = await hundred_turns.replay(turns, lambda text: full_history(lab, history, text), "full history")
full[["turn", "history", "input", "prompt_tokens", "completion_tokens"]].iloc[[0, 1, 9, len(full) - 1]]

# %%
by_part = full.melt("turn", ["history", "input"], var_name="part", value_name="tokens")
show.plot_token_cost(by_part)

# %% [markdown]
# Each turn sends all turns before it, so the tokens **of a turn grow linearly**, and those **of the whole
# conversation quadratically**: at twice the turns, a turn costs about twice as much, and the conversation about
# four times.

# %%
half, end = len(full) // 2, len(full)
per_turn = full["prompt_tokens"].iloc[-10:].mean() / full["prompt_tokens"].iloc[half - 10 : half].mean()
in_total = full["prompt_tokens"].sum() / full["prompt_tokens"].iloc[:half].sum()
print(f"from turn {half} to turn {end}: a turn × {per_turn:.2f}, the conversation × {in_total:.2f}")

# %%
lab.check(1.7 < per_turn < 2.3, "a turn grows linearly: twice the turns, about twice the tokens")
lab.check(3.5 < in_total < 4.5, "the total grows quadratically: twice the turns, about four times the tokens")

# %% [markdown]
# ## Money
#
# The classroom model is free. To get a feeling for the money, its tokens are priced as those of the models below;
# prices and their date stand in `data/prices.csv`, and you can edit them.

# %%
cost = hundred_turns.with_cost(full)
print("priced as", " and ".join(hundred_turns.PRICED_AS))
print(f"turn 1: ${cost['usd'].iloc[0]:.6f}   last turn: ${cost['usd'].iloc[-1]:.6f}   all: ${cost['usd'].sum():.4f}")
show.plot_cumulative_cost(cost.assign(total=cost["usd_total"]), unit="usd")

# %% [markdown]
# ## The window overflows
#
# A model reads at most its **context window**. The same conversation, with windows of 8k and 32k tokens:

# %%
overflow = {}
for name in ["classroom-8k", "classroom-32k"] if lab.offline else []:
    past, small = [], lab.with_model(name)
    overflow[name] = await hundred_turns.replay(turns, lambda text, p=past, s=small: full_history(s, p, text), name)

# %%
for name, frame in overflow.items():
    failed = frame[frame["error"] != ""]
    print(f"{name}: first overflow in turn {failed['turn'].iloc[0]}, {len(failed)} of {len(frame)} turns failed")

# %%
windows = {"8k window": 8_192, "32k window": 32_768}
show.plot_context_windows(full.assign(tokens=full["prompt_tokens"])[["turn", "tokens"]], windows)

# %% [markdown]
# A turn that fails is not the end: a short question may still fit. But the memory is full: from now on nothing
# long can be said. This is the API's own error:

# %%
import openai

long = [{"role": "user", "content": "word " * 9_000}]
try:
    await full_history(lab.with_model("classroom-8k") if lab.offline else lab, long, "Do you still hear me?")
    code = "none: this model has a larger window"
except openai.BadRequestError as error:
    code = error.code
    print(error.message)

# %%
lab.check(code == "context_length_exceeded", "a full window is an error, not a loss of memory")
lab.check(len(long) == 1, "the failed turn was not added to the history")

# %% [markdown]
# ## Noise
#
# Ask for the name at the end. How much of the prompt is about that question?

# %%
first = talk.turns[0]
asked = await full_history(lab, list(history), "What is my name?")
share = forgetting.signal_share(asked.sent, first)
print(f"{asked.text}   ({share:.2%} of the prompt's tokens are the message that says so)")

# %%
lab.check("Mira" in asked.text, "the fact is still there")
lab.check(share < 0.01, "more than 99 % of the prompt is noise for this question")

# %% [markdown]
# The classroom model reads every message with the same care, so noise costs it only tokens. A large language model
# may overlook what stands in the middle of a long prompt: try this cell live.
#
# ## Reducers: send less, forget something
#
# A reducer shortens what is sent. Each of them forgets, only differently.

# %%
reducers = {
    "everything": None,
    "last 20 messages": memlab.MessageCountReducer(20),
    "4,000 tokens": memlab.TokenBudgetReducer(4_000),
}
kept = await forgetting.kept_by_reducers(history, reducers, forgetting.fact_turns(talk.probes))
show.plot_kept_by_reducer(kept)

# %%
facts = kept[kept["kind"] == "fact"]
facts.groupby(["strategy", "status"], sort=False).size().unstack(fill_value=0)

# %%
short = await forgetting.reduced(history, reducers["last 20 messages"])
forgot = await full_history(lab, list(short), "What is my name?")
print(forgot.text)

# %%
lab.check("Mira" not in forgot.text, "the name was said in turn 1, and the last 20 messages do not reach that far")

# %% [markdown]
# ## An agent with history
#
# The same as a plug-in: with a session, an `Agent` keeps the history for you. Its trace tells what was sent and why.

# %%
agent = memlab.Agent(lab.chat, "You are a friendly assistant.")
session = agent.create_session()
await agent.run("我叫张三", session=session)
response = await agent.run("我叫什么名字", session=session)
response.trace.frame()

# %%
lab.check("张三" in response.text, "an agent with a session remembers")

# %% [markdown]
# ## Exercise: a classic slip
#
# This chat prints its answers, and yet something is missing. Find it, repair it, and run the check.


# %%
async def chat(history, question):
    history.append({"role": "user", "content": question})
    answer = await lab.client.chat.completions.create(model=lab.model, messages=history)
    print(answer.choices[0].message.content)


# %%
mine = []
await chat(mine, "Tell me a joke.")
await chat(mine, "我叫张三")
roles = [message["role"] for message in mine]
print("✓ repaired" if roles == ["user", "assistant"] * 2 else f"Hint: the history holds {roles}. Who is missing?")

# %% [markdown]
# <details><summary>Solution</summary>
#
# The reply is printed but never appended, so the model can't see what it said itself. Add as the last line:
# `history.append({"role": "assistant", "content": answer.choices[0].message.content})`
#
# </details>
#
# ## Explore: what will your conversation cost?
#
# The widget needs a running kernel; the figure below it shows the same for one setting. Both are estimates by formula.

# %%
show.token_cost_explorer()

# %%
show.token_cost_figure(turns=100, tokens_per_message=170, window=32_768)

# %% [markdown]
# ## What to take along
#
# - Full history is perfect until the window is full, and its price grows with the square of the conversation.
# - Reducers bound the price and forget by age, not by importance.
# - Is there a way to send just what matters for the question? That needs a measure of "related": lesson 3.

# %%
print(lab.banner())
