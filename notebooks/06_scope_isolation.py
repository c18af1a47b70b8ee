# %% [markdown]
# # 06 · Scope isolation
#
# One agent, one store, many users. Alice cannot eat spicy food; Bob never said so.
# Who may see what, and what leaks when a scope is missing?

# %%
import memlab
from memlab import ChatHistoryMemoryProvider, MemoryScope, State, show
from memlab.experiments import scopes
from memlab.experiments.takeout import open_kitchen, user_of, visit

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# ## The take-out agent
#
# It chooses dishes itself, at most three portions, and it is told to vary its orders. Two tools: the menu, and the
# order.

# %%
kitchen = open_kitchen("zh")
print(kitchen.texts["instructions"])
[(dish.name, dish.kind, "spicy" if dish.spicy else "mild") for dish in kitchen.dishes]

# %% [markdown]
# Memory is a provider with a store, a collection, and a function that says **whose** memories they are. That function
# is asked once for each session; without a user it refuses.

# %%
store = memlab.InMemoryVectorStore(lab.embedder)


def whose(session):
    return State(storage_scope=MemoryScope(user_id=user_of(session)))


memory = ChatHistoryMemoryProvider(store, "chat_history_memory", lab.embedder.dimensions, whose)
agent = kitchen.agent(lab.chat, [memory])

# %%
try:
    await agent.run(kitchen.texts["request"], session=agent.create_session())
except memlab.InvalidInputError as error:
    refused = str(error)
    print(refused)

# %%
assert refused == "User ID not found in session state."

# %% [markdown]
# ## Five orders
#
# Alice says once that she cannot eat spicy food. Every later request is just "order me a take-away", each in a new
# session. **Predict:** which orders will be spicy? Which will repeat?

# %%
first, later = kitchen.texts["first_request"], kitchen.texts["request"]
plan = [("Alice", first), ("Alice", later), ("Alice", later), ("Bob", later), ("Bob", later)]
visits = [(user, await visit(agent, user, request)) for user, request in plan]
for (user, _), order in zip(visits, kitchen.orders, strict=True):
    print(f"{user:6}{'spicy' if kitchen.spicy(order) else 'mild':7}{kitchen.named(order)}")

# %%
alice, bob = kitchen.orders[:3], kitchen.orders[3:]
lab.check(not any(map(kitchen.spicy, alice)), "Alice never gets a spicy dish: her words are found again")
lab.check(any(map(kitchen.spicy, bob)), "Bob gets spicy dishes: Alice's words do not reach him")
lab.check(alice[1] == alice[2], "and Alice's third order repeats her second, though the agent is told to vary")

# %% [markdown]
# The last line is the subject of lesson 9. Here is what the memory found for Alice's third order:

# %%
visits[2][1].trace.searches[0].frame().round(2)

# %% [markdown]
# ## What leaks without a scope
#
# The same five visits, with one change: records carry no user, so a search finds those of everybody.

# %%
leaky_kitchen = open_kitchen("zh")
shared = MemoryScope(application_id="take-out")
leaky = ChatHistoryMemoryProvider(
    memlab.InMemoryVectorStore(lab.embedder), "chats", lab.embedder.dimensions, lambda session: State(shared)
)
leaky_agent = leaky_kitchen.agent(lab.chat, [leaky])
mixed = [await visit(leaky_agent, user, request) for user, request in plan]

# %%
bobs_prompt = "\n".join(message.text for message in mixed[3].trace.sent)
print(bobs_prompt[bobs_prompt.index("##") :])

# %%
lab.check("不能吃辣" in bobs_prompt, "Bob's prompt now holds what Alice said about herself")
lab.check(not leaky_kitchen.spicy(leaky_kitchen.orders[3]), "and Bob, who likes it hot, is served by Alice's rules")

# %% [markdown]
# ## Who sees whom
#
# Two users, two sessions, two agents, two applications: 16 participants. Each says a secret number, then each asks
# for it. The matrix is **asked, not assumed**: a cell is filled when a secret reached somebody else's prompt.

# %%
who = scopes.participants()
cases = {
    "stored and searched by user": (["user_id"], None),
    "by user and session": (["user_id", "session_id"], None),
    "by agent only": (["agent_id"], None),
    "stored by user, searched by EVERYONE": (["user_id"], []),
}
seen = {name: await scopes.who_sees_whom(lab, *fields) for name, fields in cases.items()}

# %%
import pandas as pd

rows = [(name, int(m.to_numpy().sum()), scopes.leaks(m)) for name, m in seen.items()]
pd.DataFrame(rows, columns=["scope", "pairs that see each other", "of them different users"]).set_index("scope")

# %%
users = [one.user_id for one in who]
for name, matrix in seen.items():
    show.show_figure(show.plot_scope_matrix(matrix, users=users, title=name))

# %%
lab.check(scopes.leaks(seen["stored and searched by user"]) == 0, "a user scope lets no user see another")
lab.check(seen["by user and session"].to_numpy().sum() == 64, "with the session in it, nobody sees other sessions")
lab.check(scopes.leaks(seen["by agent only"]) > 0, "an agent scope mixes the agent's users")
lab.check(seen["stored by user, searched by EVERYONE"].to_numpy().all(), "EVERYONE sees everyone")

# %% [markdown]
# ## Mistakes that the kit refuses
#
# A search scope with a field that is never stored could find nothing; a blank id would mean "everyone". Both are
# errors.

# %%
for make in (
    lambda: State(MemoryScope(user_id="alice"), MemoryScope(user_id="alice", session_id="s1")),
    lambda: MemoryScope(user_id=" "),
    lambda: store.search("chat_history_memory", "spicy", scope=MemoryScope()),
):
    try:
        make()
    except memlab.InvalidInputError as error:
        print("-", error)

# %% [markdown]
# Ids are compared letter by letter, so ids that look alike stay apart:

# %%
twins = memlab.InMemoryVectorStore(lab.embedder)
for user in ["alice", "Alice", "alice ", "al_ice", "al-ice"]:
    twins.upsert("c", [memlab.MemoryRecord(f"I am {user!r}", scope=MemoryScope(user_id=user))])
found = twins.search("c", "Who am I?", scope=MemoryScope(user_id="alice"), top_k=10)
print([hit.record.text for hit in found])
assert len(found) == 1

# %% [markdown]
# ## Explore
#
# Set the fields of the storage scope and of the search scope, and watch the matrix. The figure below is its static
# twin.

# %%
show.scope_explorer()

# %%
show.scope_figure(storage_fields=["user_id", "session_id"], search_fields=["user_id"])

# %% [markdown]
# ## What to take along
#
# - A scope is the difference between memory and a data breach. Store with **all** fields you know, search with those
#   that you mean.
# - Storage scope and search scope are two decisions. "All sessions of one user" is: store user and session, search
#   user.
# - Test it by asking, with the matrix.

# %%
print(lab.banner())
