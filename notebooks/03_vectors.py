# %% [markdown]
# # 03 · Vectors
#
# To send only what is related to a question, a program must measure "related".
# An **embedding model** turns a text into a vector; related texts point in similar directions.

# %%
import inspect

import numpy as np

import memlab
from memlab import cosine_matrix, cosine_similarity, select_top_k, show
from memlab.experiments.pairs import best_threshold, kept_by_threshold, load_pairs, related_and_unrelated

lab = memlab.connect()
print(lab.banner())

# %% [markdown]
# ## Cosine by hand
#
# $\cos(a, b) = \dfrac{a \cdot b}{|a|\,|b|}$: the dot product, divided by both lengths.
# Take $a = (3, 4)$ and $b = (4, 3)$. The product is $12 + 12 = 24$, both lengths are 5, so the cosine is $24/25$.

# %%
a, b = [3, 4], [4, 3]
product = a[0] * b[0] + a[1] * b[1]
length_a, length_b = (a[0] ** 2 + a[1] ** 2) ** 0.5, (b[0] ** 2 + b[1] ** 2) ** 0.5
print(product, length_a, length_b, product / (length_a * length_b))

# %%
show.plot_vectors_2d([a, b], ["a = (3, 4)", "b = (4, 3)"])

# %% [markdown]
# **Predict** the cosine of (1, 0) with each of (2, 0), (0, 5), (-3, 0) and (1, 1).
# Length does not matter, direction does.

# %%
others = [[2, 0], [0, 5], [-3, 0], [1, 1]]
for other in others:
    print(other, round(cosine_similarity([1, 0], other), 4))

# %%
scores = [cosine_similarity([1, 0], other) for other in others]
assert np.allclose(scores, [1, 0, -1, 0.5**0.5])
assert all(-1 <= score <= 1 for score in scores)

# %% [markdown]
# ## With NumPy, against scikit-learn
#
# All pairs at once are one matrix product of unit vectors. This is the function of the kit:

# %%
print(inspect.getsource(cosine_matrix))

# %%
from sklearn.metrics.pairwise import cosine_similarity as sklearn_cosine

rng = np.random.default_rng(3)
left, right = rng.normal(size=(50, 8)), rng.normal(size=(40, 8))
difference = np.abs(cosine_matrix(left, right) - sklearn_cosine(left, right)).max()
assert difference < 1e-12
print("largest difference to scikit-learn is below 1e-12")

# %% [markdown]
# A zero vector has no direction, so it has no cosine. The kit refuses it and says which one it is:

# %%
try:
    cosine_matrix([[1.0, 0.0], [0.0, 0.0]], [[1.0, 1.0]])
except memlab.InvalidInputError as error:
    print(error)

# %% [markdown]
# ## From text to vector

# %%
texts = [
    "我对花生过敏。",
    "Peanuts make me ill.",
    "От арахиса мне плохо.",
    "我每天骑自行车上班。",
    "I cycle to work every day.",
    "Я езжу на работу на велосипеде.",
]
vectors = lab.embedder.embed(texts)
print(lab.embedder.model, vectors.shape, vectors.dtype)

# %%
show.plot_similarity_matrix(cosine_matrix(vectors, vectors), texts)

# %%
matrix = cosine_matrix(vectors, vectors)
same = [matrix[i, j] for i in range(3) for j in range(i)] + [matrix[i, j] for i in range(3, 6) for j in range(3, i)]
different = matrix[:3, 3:].ravel()
lab.check(min(same) > max(different), "one meaning in three languages is closer than two meanings in one language")

# %% [markdown]
# ## Top-k and threshold
#
# A question is compared with every memory. Two rules choose: keep `score >= threshold`,
# then at most `top_k`, best first.

# %%
question = "我不能吃什么？"
scores = cosine_matrix(vectors, lab.embedder.embed([question], role="query"))[:, 0]
chosen = select_top_k(scores, top_k=2, threshold=0.3)
for i in chosen:
    print(f"{scores[i]:.2f}", texts[i])

# %%
assert len(chosen) <= 2
assert all(scores[i] >= 0.3 for i in chosen)
show.plot_similarities(texts, scores, threshold=0.3, top_k=2, question=question)

# %% [markdown]
# ## Related and unrelated pairs
#
# 36 questions, each with the memory that answers it, a third each in Chinese, English and Russian.
# Related: a question and its memory. Unrelated: a question and any other memory of its language.

# %%
pairs = load_pairs()
pairs.groupby("lang").head(1)

# %%
spread = {}
for model in lab.embedding_models():
    spread[model] = related_and_unrelated(lab.embedder_for(model), pairs)
list(spread)

# %% [markdown]
# One figure for each embedding model, all with the **same** threshold of 0.3. **Predict:** does it work for all?

# %%
for model, (related, unrelated) in spread.items():
    show.show_figure(show.plot_similarity_distribution(related, unrelated, title=model, threshold=0.3))

# %%
import pandas as pd

rows = [(model, *kept_by_threshold(*scores, threshold=0.3)) for model, scores in spread.items()]
kept = pd.DataFrame(rows, columns=["model", "related kept", "unrelated kept"]).set_index("model")
kept.round(3)

# %% [markdown]
# ## A threshold does not carry over
#
# Each model has its own scale. A threshold of 0.3 that separates well for one model keeps **everything** for another,
# or drops what matters for a third. A threshold belongs to a model: change the model, and you must measure again.

# %%
gap = kept["related kept"].max() - kept["related kept"].min()
lab.check(gap > 0.5, "the same threshold keeps most of what is related with one model, and little of it with another")

# %%
from sklearn.metrics import roc_auc_score

kept["best threshold"] = [best_threshold(*scores) for scores in spread.values()]
kept["related beats unrelated"] = [
    roc_auc_score([1] * len(related) + [0] * len(unrelated), np.concatenate([related, unrelated]))
    for related, unrelated in spread.values()
]
kept.round(3)

# %% [markdown]
# The last column depends on no threshold: how often does a related pair score above an unrelated one?
# A model whose scores all look alike may still rank well, with a threshold of its own.

# %%
if "multilingual-e5-small" in kept.index:
    e5 = kept.loc["multilingual-e5-small"]
    lab.check(e5["unrelated kept"] == 1, "with e5, a threshold of 0.3 keeps all, related or not")
    lab.check(e5["related beats unrelated"] > 0.8, "and yet e5 can tell them apart, at a threshold of its own")

# %% [markdown]
# ## Explore
#
# Type a question, move top-k and threshold. The widget needs a running kernel; the figure below it is its static twin.

# %%
memories = pairs["memory"].tolist()[:12]
explorer = show.similarity_explorer(lab.embedder, memories, "我养了什么宠物？", top_k=3, threshold=0.3)
explorer

# %%
show.similarity_figure(lab.embedder, memories, "我养了什么宠物？", top_k=3, threshold=0.3)

# %% [markdown]
# ## What to take along
#
# - Cosine compares directions, from -1 to 1. Real sentence vectors use only a part of that range, each model its own.
# - Top-k bounds how much is sent; the threshold decides whether anything is sent at all.
# - Related does not mean relevant: similarity knows nothing of time, of persons, or of truth.
#   Lessons 6 and 9 live on that.

# %%
print(lab.banner())
