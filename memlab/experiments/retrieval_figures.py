"""The retrieval figures of the kit, printed by one command:

    python -m memlab.experiments.retrieval_figures [--locomo FILE] [--madial FOLDER] [--top-k 6]

For each dataset: cosine with each encoder, BM25, and their fusion ("hybrid": min-max, "rrf": by places), with and
without speaker and date in the text.
Nothing is tuned to a dataset: BM25 has its usual constants, the fusion a weight of 0.5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from memlab.experiments.datasets import Dataset, load_locomo, load_madial, load_teaching_set
from memlab.experiments.metrics import best_first
from memlab.experiments.scoring import score
from memlab.experiments.sweep import sweep
from memlab.settings import connect
from memlab.stores.base import Embeds

if TYPE_CHECKING:
    import pandas as pd

TEMPLATES = ("{text}", "{speaker}: {text}", "{day} {speaker}: {text}")


def figures(dataset: Dataset, encoders: Sequence[str], top_k: int = 6) -> pd.DataFrame:
    """Recall at `top_k` of each retriever: one row each for encoder, rank and template, with intervals."""
    import pandas as pd

    lab, frames = connect("offline"), []
    for number, name in enumerate(encoders):
        embedder = lab.cached_embedder(lab.embedder_for(name))
        ranks = ["cosine", "hybrid"] + (["bm25"] if number == 0 else [])
        for template in TEMPLATES:
            frame = sweep(dataset, top_k=[top_k], rank=ranks, embedder=embedder, template=template, progress=False)
            frames.append(frame[frame["group"] == "all"])
            frames.append(_rrf_row(dataset, embedder, template, top_k))
    table = pd.concat(frames, ignore_index=True)
    table.loc[table["rank"] == "bm25", "embedder"] = "none"
    columns = ["embedder", "rank", "template", "n", "recall", "recall_low", "recall_high", "hit_rate", "tokens"]
    return table[columns].sort_values("recall", ascending=False, ignore_index=True)


def _rrf_row(dataset: Dataset, embedder: Embeds, template: str, top_k: int) -> pd.DataFrame:
    """Reciprocal rank fusion of cosine and BM25, to compare: it looks at places alone, so a weak half costs a lot.

    score(d) = sum over both rankings of 1 / (60 + place of d). Source: Cormack, Clarke, Buettcher (2009).
    """
    import pandas as pd

    found, questions = 0.0, 0
    for dense, lexical in zip(*(score(dataset, embedder, rank, template) for rank in ("cosine", "bm25")), strict=True):
        places = [np.argsort(each.order, axis=1) + 1 for each in (dense, lexical)]
        order = best_first(1000 * (1 / (60 + places[0]) + 1 / (60 + places[1])))
        gold = dense.gold()
        known = gold.sum(axis=1) > 0
        hits = np.take_along_axis(gold, order[:, :top_k], axis=1).sum(axis=1)[known]
        found, questions = found + (hits / gold.sum(axis=1)[known]).sum(), questions + int(known.sum())
    row = {"embedder": embedder.model, "rank": "rrf", "template": template, "n": questions, "recall": found / questions}
    return pd.DataFrame([row])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Print the retrieval figures.")
    parser.add_argument("--locomo", type=Path, help="a LoCoMo file")
    parser.add_argument("--madial", type=Path, help="the folder of MADial-Bench")
    parser.add_argument("--encoder", action="append", help="an encoder; by default every one that is installed")
    parser.add_argument("--top-k", type=int, default=6)
    given = parser.parse_args(arguments)
    datasets = [load_teaching_set()]
    if given.locomo:
        datasets.append(load_locomo(given.locomo))
    if given.madial:
        datasets += [
            load_madial(
                given.madial / f"MADial-Bench-{n}-dialogue.json", given.madial / f"MADial-Bench-{n}-memory.json", n
            )
            for n in ("zh", "en")
        ]
    encoders = given.encoder or connect("offline").embedding_models()
    for dataset in datasets:
        print(f"\n{dataset}\nrecall at {given.top_k}; the interval draws whole conversations: few make a rough one")
        print(figures(dataset, encoders, given.top_k).round(3).to_string(index=False), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
