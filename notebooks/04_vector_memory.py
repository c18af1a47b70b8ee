# %% [markdown]
# # 04 · Vector memory
#
# Lesson 2 sent everything. Now we send only what is related to the question.

# %%
import inspect

import memlab
from memlab import EVERYONE, show, tokens
from memlab.experiments import comparison, hundred_turns
from memlab.experiments.loops import full_history, vector_memory

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# The loop, from top to bottom: embed the question **once** → cosine against every record → keep `score >= 0.3` →
# best first, at most 6 → a system message that says what follows, the retrieved messages in their own roles, the
# question → the answer, streamed → store question **and** answer, the question with the vector it already has.

# %%
print(inspect.getsource(vector_memory))

# %%
store = memlab.InMemoryVectorStore(lab.embedder)
await vector_memory(lab, store, "我叫张三")
turn = await vector_memory(lab, store, "我叫什么名字")
print(turn.text)

# %%
lab.check("张三" in turn.text, "the name was retrieved")
turn.sent

# %% [markdown]
# Every score of every search is in the trace:

# %%
turn.trace.searches[0].frame().round(3)

# %% [markdown]
# ## In three languages

# %%
for text in ["Я живу в Казани.", "I have a cat called Pixel.", "今天的地铁特别挤。"]:
    await vector_memory(lab, store, text)
for text in ["Где я живу?", "What is my cat's name?"]:
    turn = await vector_memory(lab, store, text, say=lambda piece: print(piece, end=""))
    print(f"   [{len(turn.sent)} messages sent, {store.count('chat', scope=EVERYONE)} records stored]")

# %%
lab.check("Pixel" in turn.text, "the right memory was found among the others")

# %% [markdown]
# ## The same 100 turns as in lesson 2
#
# **Predict:** how do the tokens of a turn develop now?

# %%
talk = hundred_turns.load_conversation()
affordable = lab.affordable("100 turns with full history", input_tokens=2_000_000, output_tokens=4_000)
turns = talk.turns if affordable else talk.turns[:12]
history, store = [], memlab.InMemoryVectorStore(lab.embedder)

# %%
full = await hundred_turns.replay(turns, lambda text: full_history(lab, history, text), "full history")
vector = await hundred_turns.replay(turns, lambda text: vector_memory(lab, store, text), "vector memory")
both = comparison.together(full, vector)
show.plot_tokens_by_strategy(both.rename(columns={"prompt_tokens": "tokens"}))

# %%
grows, flat = comparison.growth_per_turn(full), comparison.growth_per_turn(vector)
print(f"one more turn adds {grows:,.0f} tokens to full history and {flat:.1f} to vector memory")

# %%
longest = max(tokens.count_text(text) for text in talk.turns)
lab.check(flat < grows / 100, "full history grows with every turn, vector memory stays flat")
lab.check(vector["prompt_tokens"].max() < 8 * longest, "it is bounded: at most six records and the question")

# %% [markdown]
# The peaks are turns with a pasted table: such a question is long, and what is most similar to a table is other
# tables. So the bound is top-k times the longest record, not a fixed number.
#
# ## Does it still know?
#
# Forty questions about what was said. Full history keeps everything; vector memory sends what it finds.

# %%
ways = comparison.ways_to_ask(lab, history, store)
answers = [await hundred_turns.probe(talk.probes, ask, name) for name, ask in ways.items()]
shares = comparison.shares(answers)
shares.round(3)

# %%
show.plot_probe_answers(shares)

# %% [markdown]
# The interval is a bootstrap over the 40 questions: it says how much the share would move with other questions of
# the same kind, not with another conversation.

# %%
share = shares.set_index("strategy")["share_answered"]
lab.check(share["full history"] > share["last 20 messages"], "a window of 20 messages forgets most of it")
lab.check(share["vector memory"] > share["last 20 messages"], "vector memory reaches back to turn 1")

# %% [markdown]
# Where vector memory fails, look at the trace: was the fact never stored, not retrieved, or ignored?

# %%
missed = answers[-1][~answers[-1]["answered"]]
missed[["ask", "turn", "text"]]

# %%
question = missed["ask"].iloc[0] if len(missed) else talk.probes[0].ask
turn = await vector_memory(lab, store, question, remember=False)
print(question)
turn.trace.searches[0].frame().head(8).round(3)

# %% [markdown]
# ## When is it worth it?
#
# Vector memory also pays for embeddings. From which turn on is it cheaper in total?
# A common rule of thumb says: full history up to about 10 turns.

# %%
turn_of = comparison.break_evens(full, vector)
print("vector memory is cheaper in total from turn", turn_of)

# %% [markdown]
# This conversation pastes a long table in turn 4, and full history sends it again in every turn after. Without the
# tables, the same conversation:

# %%
short = [text for text in turns if "\n" not in text]
plain, fresh = [], memlab.InMemoryVectorStore(lab.embedder)
full_short = await hundred_turns.replay(short, lambda text: full_history(lab, plain, text), "full history")
vector_short = await hundred_turns.replay(short, lambda text: vector_memory(lab, fresh, text), "vector memory")
turn_of_short = comparison.break_evens(full_short, vector_short)
print("without pasted tables, from turn", turn_of_short)

# %%
first_ten = hundred_turns.with_cost(full_short)["usd_total"].iloc[min(9, len(full_short) - 1)]
print(f"ten turns of full history without tables: ${first_ten:.6f}")
lab.check(turn_of["usd"] is not None, "vector memory gets cheaper within the conversation")

# %% [markdown]
# So the price alone does not explain the rule. The reason for full history up to about 10 turns is another one: it
# forgets nothing, needs no second model, and at that length its price hardly matters. From then on the curves part:

# %%
cost = hundred_turns.with_cost(both)
show.plot_cumulative_cost(cost.assign(total=cost["usd_total"]), unit="usd")

# %% [markdown]
# ## The comparison
#
# Every cell is measured or computed in this notebook, none is quoted.

# %%
cheaper = f"from turn {turn_of['usd']} (without pasted tables: {turn_of_short['usd']})"
comparison.table(full, vector, shares, comparison.overflows(full, vector), cheaper)

# %% [markdown]
# ## The flaw
#
# Restart the kernel, and the store is empty. Here a second Python process opens "the same" store:

# %%
second_process = """
import memlab
store = memlab.InMemoryVectorStore(memlab.connect().embedder)
print(len(store.search("chat", "What is my name?", scope=memlab.EVERYONE)), "memories found")
"""
print(comparison.run_in_new_process(second_process))

# %%
here = len(store.search("chat", "What is my name?", scope=EVERYONE))
lab.check(here > 0, f"{here} memories in this process, none in the new one: this memory dies with its process")

# %% [markdown]
# ## What to take along
#
# - Vector memory makes the prompt a matter of top-k, not of the length of the conversation.
# - It answers only from what it retrieved: similar is not the same as needed.
# - Memories go best first, so they lose their order in time: an old statement may win over its correction.
# - The memory here is one list for everybody, and it is gone after a restart. Lessons 5, 6 and 10 repair that.

# %%
print(lab.banner())
