# %% [markdown]
# # 08 · Sweeps and calibration
#
# Lesson 4 took `top_k=6` and `threshold=0.3` on trust. Here we measure what they do, on conversations whose answers
# are known, and what the ranking and the embedding model add.

# %%
import json
import tempfile
from pathlib import Path

import numpy as np

import memlab
from memlab import show
from memlab.experiments.calibrate import calibrate, calibrate_all
from memlab.experiments.datasets import load_teaching_set, load_transcript
from memlab.experiments.scoring import evidence_ranks, score
from memlab.experiments.stored_vectors import StoredEmbedder
from memlab.experiments.sweep import sweep

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# ## The data
#
# Twelve people talk to an assistant over several months, in Chinese, English and Russian. Each question is labelled
# with the turns that answer it. Many questions are worded far from their evidence; some were never answered.

# %%
data = load_teaching_set()
data

# %%
talk = data.conversations[0]
for question in talk.questions[:3]:
    said = [turn.text for turn in talk.turns if turn.id in question.evidence]
    print(f"[{question.category}] {question.ask}\n    ← {' / '.join(said)[:110]}")

# %% [markdown]
# ## One search, judged
#
# **Recall**: how much of the evidence was found. **Precision**: how much of what was found is evidence.
# A search for each question, in its own person's memory, the best six:

# %%
folder = Path(tempfile.mkdtemp())
embedder = lab.cached_embedder(path=folder / "embeddings.sqlite")
one = sweep(data, top_k=[6], rank="cosine", embedder=embedder, progress=False)
one[["group", "n", "recall", "precision", "hit_rate", "tokens", "recall_low", "recall_high"]].round(3)

# %% [markdown]
# The interval draws whole people again and again, so it says what twelve other people might give.
#
# **Predict:** more results mean more recall. What happens to precision, and to the prompt?
#
# ## The grid: top-k × threshold
#
# Twenty values of top-k, fifty thresholds: a thousand settings. The whole grid costs one product and one sort.

# %%
grid = sweep(data, threshold=np.linspace(0, 1, 50), rank="cosine", embedder=embedder, progress=False)
everyone = grid[grid["group"] == "all"]
show.plot_heat_map(everyone, metric="recall")

# %%
show.plot_heat_map(everyone, metric="precision")

# %%
loose, strict = (everyone[(everyone["top_k"] == 6) & (everyone["threshold"].round(2) == t)] for t in (0.1, 0.39))
print("tokens a search:", loose["tokens"].round(0).tolist(), strict["tokens"].round(0).tolist())
print("recall:         ", loose["recall"].round(3).tolist(), strict["recall"].round(3).tolist())

# %%
recall = everyone.pivot(index="threshold", columns="top_k", values="recall").to_numpy()
lab.check((np.diff(recall, axis=1) >= 0).all(), "more results never lose recall")
lab.check((np.diff(recall, axis=0) <= 0).all(), "a higher threshold never wins recall")

# %% [markdown]
# ## Rankings
#
# Cosine compares meanings, BM25 compares words, the hybrid takes both. Which one finds the evidence?

# %%
ranks = ["cosine", "bm25", "hybrid", "mmr", "recency", "newest"]
by_rank = sweep(data, rank=ranks, embedder=embedder, by=["language"], progress=False)
six = by_rank[by_rank["top_k"] == 6]
six.pivot(index="rank", columns="group", values="recall").round(3)

# %%
at_six = six[six["group"] == "all"].set_index("rank")["recall"]
lab.check(at_six["hybrid"] > at_six["cosine"], "words and meanings together find more than meanings alone")
lab.check(at_six["newest"] < at_six["cosine"] / 2, "the newest records are seldom the right ones")
lab.check(at_six["recency"] < at_six["cosine"], "and time added to similarity makes these searches worse")

# %%
show.plot_pareto(by_rank[by_rank["group"] == "all"])

# %% [markdown]
# ## Where is the evidence?

# %%
found = {rank: evidence_ranks(score(data, embedder, rank)) for rank in ("cosine", "hybrid")}
for rank, places in found.items():
    show.show_figure(show.plot_evidence_ranks(places, title=rank))

# %% [markdown]
# ## Precision against recall
#
# Each curve is one ranking, from strict to loose.

# %%
curves = sweep(data, top_k=range(1, 41), rank=["cosine", "bm25", "hybrid"], embedder=embedder, progress=False)
show.plot_precision_recall(curves[curves["group"] == "all"])

# %% [markdown]
# ## A threshold for each embedding model
#
# Lesson 3 showed that a threshold does not carry over. So it is calibrated: which threshold keeps 80 % of the evidence,
# and what comes along with it?

# %%
chosen = calibrate(data, embedder, recall=0.8)
print(
    f"{chosen.model}: threshold {chosen.threshold:.3f} keeps {chosen.recall:.0%} of the evidence,"
    f" and {chosen.precision:.2%} of what it keeps is evidence"
)

# %%
lexical = lab.embedder_for("lexical-hashing") if lab.offline else embedder
calibrate_all(data, [embedder, StoredEmbedder(), lexical], recall=0.8).round(3)

# %% [markdown]
# The second model is multilingual-e5-small, whose vectors of this data set come along with the kit.
# A threshold alone is a blunt tool here: at 80 % recall nearly everything comes along. It is top-k that bounds the
# prompt; a threshold decides when to send nothing. How well does it do that?

# %%
silent = everyone[everyone["top_k"] == 6].set_index("threshold")[["recall", "abstention", "empty_rate"]]
silent.iloc[::5].round(3)

# %% [markdown]
# `abstention` is the share of **unanswerable** questions for which nothing was sent, `empty_rate` the share of
# answerable ones: silence where it was right, and where it was wrong.
#
# ## The map of a memory
#
# All that one person said, on a plane (principal components), with a question and its nearest neighbours.

# %%
texts = [turn.text for turn in talk.turns if turn.speaker == "user"]
places = memlab.normalize(embedder.embed(texts))
question = talk.questions[0].ask
query = memlab.normalize(embedder.embed([question], role="query"))[0]
near = memlab.select_top_k(places @ query, 3)
sessions = [f"session {turn.session_id}" for turn in talk.turns if turn.speaker == "user"]
show.plot_memory_map(places, sessions, question=query, neighbours=near, title=question)

# %% [markdown]
# ## Explore
#
# Choose a question, move top-k and threshold, change the ranking. The figure below is the static twin.

# %%
show.retrieval_explorer(data, embedder)

# %%
show.retrieval_figure(data, embedder, question=0, top_k=6, threshold=0.2)

# %% [markdown]
# ## Your own data
#
# A transcript is a JSON Lines or CSV file with a column `text`; labels are a second file with `ask` and `evidence`.

# %%
said = ["Nuts make me ill.", "The tram was late.", "My cat is called Pixel."]
(folder / "chat.jsonl").write_text("\n".join(json.dumps({"id": i, "text": t}) for i, t in enumerate(said, 1)))
(folder / "questions.csv").write_text("ask,evidence\nWhat must I not eat?,1\nDo I have a pet?,3\n")
mine = load_transcript(folder / "chat.jsonl", folder / "questions.csv")
sweep(mine, top_k=[1, 2], rank=["cosine", "hybrid"], progress=False, resamples=0).iloc[:, 2:9].round(2)

# %% [markdown]
# ## What to take along
#
# - Measure on conversations like yours: recall, precision, and tokens, each with its interval.
# - Top-k bounds the prompt. A threshold belongs to one embedding model and decides about silence.
# - The ranking often matters more than both. Words and meanings together are hard to beat.

# %%
print(lab.banner())
