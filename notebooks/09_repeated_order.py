# %% [markdown]
# # 09 · The repeated order
#
# An agent orders food. It is told to make each order as different from the last as it can, and it has a vector
# memory that works. It orders the same dish again and again. Why, and what really helps?

# %%
import inspect

import memlab
from memlab import show
from memlab.assets import data_path
from memlab.experiments import repeated_order as experiment
from memlab.experiments.orders import runs, strategies, summary
from memlab.experiments.orders.results import FILE_NAME, read_visits
from memlab.experiments.regulars import load_regulars
from memlab.experiments.takeout import open_kitchen

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# ## The agent and its rule
#
# It reads a menu, chooses, and places the order. A reply names the dishes, so a memory of the reply is a memory of the
# order.

# %%
kitchen = open_kitchen("zh")
print(kitchen.texts["instructions"])
print([f"{dish.name}{' (spicy)' if dish.spicy else ''}" for dish in kitchen.dishes])

# %% [markdown]
# Alice can't eat spicy food and wants one meat and one vegetable dish. On this menu that leaves her two times two
# meals:

# %%
alice = load_regulars(1)[0]
names = {dish.id: dish.name for dish in kitchen.dishes}
meals = [" + ".join(sorted(names[dish] for dish in meal)) for meal in alice.feasible_sets(kitchen.dishes)]
meals

# %%
assert len(meals) == 4

# %% [markdown]
# The classroom model chooses by a rule of one page, and is honest about it: it varies only against orders that it can
# **see** in its prompt. (It is no LLM. A live model follows the same pipeline; run this lesson live to compare.)

# %%
from memlab.offline.chat_model import choice

print(inspect.getsource(choice.choose))

# %% [markdown]
# ## Run A: Alice three times, then Bob twice
#
# Alice says once what she can't eat. Each later request is just 帮我点一份外卖, each in a new session. The memory
# brings the three records that are most similar to the request. **Predict:** will the third order differ from the
# second?

# %%
run_a = runs.replay_run("A")
runs.run_table("A", run_a).set_index("visit")

# %%
alices, bobs = run_a[:3], run_a[3:]
lab.check(alices[2].dishes == alices[1].dishes, "Alice's third order equals her second, as published")
lab.check(
    not any(kitchen.spicy(visit.order) for visit in alices), "Alice, whose constraint is in the prompt, gets mild"
)
lab.check(all(kitchen.spicy(visit.order) for visit in bobs), "Bob, who never said a word about it, gets spicy dishes")

# %% [markdown]
# Look at `retrieved` in visit 3. Her own second request, the same words, has similarity 1.00. Of her two **orders**
# only one is left, and it is the older one. Here is every candidate with its score:

# %%
run_a[2].searches[0].frame().round(2)

# %% [markdown]
# ## Run B: say it again, as a message
#
# The usual fix: add "vary the orders" to each request as a user message. Alice comes five times, and then a few more.
# **Predict:** does it help?

# %%
run_b = runs.replay_run("B", visits=7)
table_b = runs.run_table("B", run_b).set_index("visit")
table_b

# %%
lab.check(table_b["agrees"].dropna().all(), "order 3 equals 2, order 4 equals 1, order 5 is spicy: as published")
seen = table_b["constraint_in_prompt"]
lab.check(seen[:4].all() and not seen[5:].any(), "until visit 4 her constraint is in the prompt, then it is gone")
lab.check((table_b["spicy"] == ~seen).all(), "and spicy food comes exactly when it is gone")

# %% [markdown]
# That is the part that went unremarked: it is not only the orders that leave the prompt. By the fourth visit only
# requests are retrieved, and from the fifth on the one sentence that matters, 我不能吃辣, is crowded out as well.
#
# The same in English and Russian: the visits differ, the end is the same.

# %%
for language in ("en", "ru"):
    twin = runs.run_table("B", runs.replay_run("B", language, visits=6), language)
    print(language)
    print(twin[["visit", "retrieved", "constraint_in_prompt", "spicy", "same_as"]].to_string(index=False), "\n")

# %% [markdown]
# ## Does a threshold help?
#
# A threshold of 0.3 drops what is unlike the request. Unlike the request: that is, the orders.

# %%
strict = runs.replay_run("B", visits=6, strategy=strategies.STRATEGIES["vector, threshold 0.3"])
runs.run_table("B", strict)[["visit", "retrieved", "last_order_in_prompt", "order", "spicy", "same_as"]]

# %%
lab.check(
    not any(visit.retrieved and "×" in visit.retrieved[-1].text for visit in strict), "no order is ever retrieved"
)

# %% [markdown]
# ## Which of it does the search see?
#
# Three places for the instruction. A memory searches with the caller's words; a message that another provider adds is
# not among them, whatever the order of the providers. Only a wider search filter changes that.

# %%
placements = [name for name in strategies.STRATEGIES if name.startswith("instruction")]
for name in placements:
    visit = experiment.replay(name, "Alice", visits=2, menu="small")[1]
    print(f"{name}\n   searched for: {visit.searches[0].query!r}")

# %%
queries = [experiment.replay(name, "Alice", visits=2, menu="small")[1].searches[0].query for name in placements]
lab.check(queries[0] == queries[1] == kitchen.texts["request"], "in the first two the search never sees it")
lab.check(kitchen.texts["variety"] in queries[2], "in the third it does")

# %% [markdown]
# ## The experiment
#
# Twenty users with constraints and tastes come twelve times each, and chat about other things in between. On the menu
# of seven dishes some of them could not avoid to repeat one of their last three orders, whatever the memory:

# %%
small = summary.feasible_table(load_regulars(), kitchen.dishes)
small[small["unavoidable_in_window"] > 0].round(2)

# %% [markdown]
# So the experiment has a menu of twenty dishes, where everybody could eat something new each time:

# %%
large = open_kitchen("zh", "large")
feasible = summary.feasible_table(load_regulars(), large.dishes)
feasible

# %%
assert feasible["feasible_sets"].min() >= 6
assert (feasible["unavoidable_repeats"] == 0).all()

# %% [markdown]
# Twenty-one strategies, each a configuration of the providers from lessons 2 to 7. None is a special case in the agent.
# **Predict** before you go on: which three repeat least? Which of them keep the constraint?

# %%
for strategy in strategies.STRATEGIES.values():
    print(f"{strategy.name:27}{strategy.about}")

# %%
print(inspect.getsource(strategies.Shop.order_log))

# %% [markdown]
# All strategies, three languages, 3 and 12 chat turns between two visits: 33,120 visits. They are stored with the kit;
# `memlab orders` makes them anew.

# %%
visits = read_visits()
table = summary.summarise_orders(visits, by=["strategy"])
columns = ["repeat_rate", "repeat_rate_low", "repeat_rate_high", "latest_visible", "constraint_violations", "utility"]
table.set_index("strategy")[[*columns, "prompt_tokens", "memory_tokens"]].round(2)

# %%
show.plot_strategies(visits)

# %% [markdown]
# Is the stored table true? A part of it, computed again here and now:

# %%
part = {"users": 3, "visits": 12, "language": "en", "chat_turns_between": 3}
sample = ["vector, top 3", "orders by recency", "order log + tastes", "random"]
if lab.offline:
    again = experiment.repeated_order(sample, **part, progress=False)
    key = ["strategy", "language", "chat_turns", "seed", "user", "visit"]
    both = again.merge(visits, on=key, suffixes=("", "_stored"))
    print(f"{len(both)} visits again, {(both['order'] == both['order_stored']).mean():.1%} with the same order")

# %%
assert not lab.offline or (both["order"] == both["order_stored"]).all()

# %% [markdown]
# What always holds, for every strategy:

# %%
lab.check(table["conditional_repeats"].sum() == 0, "an order that is visible and can be avoided is never repeated")
lab.check(table["violations_in_view"].sum() == 0, "a constraint in the prompt is never broken")
rates = table.set_index("strategy")
lab.check(rates.loc["oracle", "repeat_rate"] == 0, "knowing everything, nobody would have to repeat")

# %% [markdown]
# So a repeat is never the model's choice here. It is the memory that did not bring the order. With a real model a third
# reason comes in, "retrieved but ignored", and the same table tells how often.
#
# ## Where did the last order get lost?

# %%
repeats = visits[visits["why"] != ""]
repeats.groupby(["strategy", "why"], sort=False).size().unstack(fill_value=0)

# %%
lost = repeats[repeats["strategy"] == "vector, top 3"]
lost[["needed_rank", "needed_score", "lowest_kept", "kept_requests", "kept_chats", "kept_orders"]].describe().round(2)

# %% [markdown]
# A single repeat, explained: the record that was needed, its rank and score, and what stood in its place.

# %%
from memlab.experiments.orders.reasons import explain

walk = experiment.replay("vector, top 3", "Alice", visits=12, language="en")
for visit in walk:
    if found := explain(visit):
        print(f"visit {visit.number:2}  {found.reason}: {found.detail}")

# %% [markdown]
# ## The neighbours of a new request
#
# Similarity has no time axis. The nearest neighbours of a new request are the **old requests**, and each visit adds
# one:

# %%
show.plot_retrieved(visits, "vector, top 6")

# %% [markdown]
# ## What it costs
#
# Repeats against tokens. Low and to the left is good, but only where no constraint is broken.

# %%
show.plot_repeat_pareto(visits)

# %%
good = rates[(rates["repeat_rate"] < 0.01) & (rates["constraint_violations"] == 0)].dropna(subset=["prompt_tokens"])
good[["repeat_rate", "constraint_violations", "prompt_tokens", "utility"]].round(2)

# %%
full, combined = (rates.loc[name, "prompt_tokens"] for name in ("full history", "order log + tastes"))
lab.check(set(good.index) == {"full history", "order log + tastes"}, "two strategies do both: all of it, or the log")
lab.check(combined < full / 5, f"and one of them takes {full / combined:.1f} times fewer tokens")
only_log = rates.loc["order log"]
lab.check(only_log["repeat_rate"] == 0 < only_log["constraint_violations"], "a log alone forgets what Alice can't eat")

# %% [markdown]
# ## Does it last?
#
# Twelve visits are few. The same with 40 visits, for four of the strategies (4,800 visits, stored as well).
# **Predict:** the 20 most similar records kept the constraint so far. Will they at visit 40?

# %%
forty = read_visits(data_path("results", "forty_visits", FILE_NAME))
long = summary.summarise_orders(forty, by=["strategy"]).set_index("strategy")
long[["repeat_rate", "latest_visible", "constraint_visible", "constraint_violations", "prompt_tokens"]].round(2)

# %%
show.plot_retrieved(forty, "vector, top 20")

# %%
lab.check(long.loc["vector, top 20", "constraint_violations"] > 0, "a larger top-k only loses the constraint later")
kept = long.loc["order log + tastes"]
lab.check(kept["repeat_rate"] == kept["constraint_violations"] == 0, "the log with tastes still does both")

# %% [markdown]
# ## Does the model's stubbornness make it?
#
# The classroom model breaks ties the same way each time, like a model at temperature 0. With ties broken anew in each
# visit even an agent without a memory hardly repeats: chance varies for it. So a repeat rate also says how set in its
# ways a model is (the published runs show that a large one can be). What memory decides is whether it **can** vary, and
# that stays as it was: see `latest_visible`, and the constraints that are still broken.

# %%
loose = {"users": 10, "language": "zh", "chat_turns_between": 3, "fresh_ties": True, "progress": False}
if lab.affordable("the experiment with fresh ties", 3_000_000, 100_000):
    fresh = experiment.repeated_order(["no memory", "vector, top 3", "order log + tastes", "random"], **loose)
    lucky = summary.summarise_orders(fresh, by=["strategy"]).set_index("strategy")
    print(lucky[["repeat_rate", "latest_visible", "constraint_violations"]].round(2))

# %% [markdown]
# ## Step through it
#
# Two strategies side by side, visit by visit: what was retrieved, at what score, and what the model then chose.

# %%
pair = {name: experiment.replay(name, "Alice", visits=8) for name in ("vector, top 3", "order log + tastes")}
show.order_player(pair)

# %%
show.order_figure(pair, visit=6)

# %% [markdown]
# ## Live
#
# The same call runs on a real model. It first says what it will cost, and refuses above a limit:
#
# ```python
# experiment.repeated_order(["vector, top 3", "order log + tastes"], users=2, visits=4, limit_usd=0.05)
# ```

# %% [markdown]
# ## What to use when
#
# From the table above, not from opinion:

# %%
advice = {
    "vector, top 3": "finding what was said about a topic; not what happened last",
    "instruction after memory": "nothing here: the search never sees it, and the orders are still missing",
    "deduplicated": "keeping one-time statements findable; it does not bring the last order",
    "orders by recency": "events, roughly in order; it drops the constraint",
    "order log": "what happened last; it knows no tastes",
    "order log + tastes": "both: a list for what happened, a search for what is true of the user",
    "full history": "short conversations, or where tokens do not matter",
}
chosen = rates.loc[list(advice), ["repeat_rate", "constraint_violations", "prompt_tokens"]].round(2)
print(chosen.assign(use_it_for=advice).to_string())

# %% [markdown]
# ## What to take along
#
# - Similarity answers "what is like this?", never "what came last?". A question about time needs a list by time.
# - What repeats in your traffic crowds out what was said once. That costs you the rare, important sentence first.
# - Store events as records of their own kind, when they happen, and fetch the newest by scope.
# - A prompt can't fix a memory: telling the model to vary does not show it what to vary from.
# - Before you blame the model, ask: never stored, stored but not retrieved, or retrieved but ignored?

# %%
print(lab.banner())
