"""The three loops of lessons 1, 2 and 4, written by hand: what goes into a request, and what is kept afterwards.

amnesia         sends the question alone, keeps nothing
full_history    sends everything said so far, keeps everything
vector_memory   sends what is similar to the question, keeps everything in a vector store
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from memlab import tokens
from memlab.messages import UsageDetails
from memlab.settings import Lab
from memlab.stores.base import EVERYONE, MemoryRecord, VectorStore
from memlab.trace import Trace

Wire = dict[str, str]
Say = Callable[[str], object]

RELATED = "Earlier messages that are related to the question follow, the most similar first."
_COLLECTION = "chat"


@dataclass
class Turn:
    """One request and its answer.

    `parts` counts the prompt's tokens by part (an estimate); `usage` is what the service says.
    """

    text: str
    sent: list[Wire]
    usage: UsageDetails
    parts: dict[str, int]
    embedding_tokens: int = 0
    trace: Trace = field(default_factory=Trace)


async def amnesia(lab: Lab, question: str, say: Say | None = None) -> Turn:
    """Each request carries one message. The model can only know what is in it."""
    return await _answer(lab, {"input": [_wire("user", question)]}, say)


async def full_history(lab: Lab, history: list[Wire], question: str, say: Say | None = None) -> Turn:
    """Every past message goes along. `history` grows by the question and the answer once the answer is there."""
    turn = await _answer(lab, {"history": list(history), "input": [_wire("user", question)]}, say)
    history += [_wire("user", question), _wire("assistant", turn.text)]
    return turn


async def vector_memory(
    lab: Lab,
    store: VectorStore,
    question: str,
    say: Say | None = None,
    *,
    top_k: int = 6,
    threshold: float = 0.3,
    remember: bool = True,
) -> Turn:
    """What is similar to the question goes along: at most `top_k` records with a cosine of at least `threshold`.

    The question is embedded once, searched with, and stored with the vector it already has.
    """
    used, trace = lab.embedder.tokens_used, Trace()
    vector = lab.embedder.embed([question], role="query")[0]
    hits = store.search(_COLLECTION, vector, scope=EVERYONE, top_k=top_k, threshold=threshold, trace=trace)
    memories = [_wire(hit.record.role, hit.record.text) for hit in hits]
    if memories:
        memories.insert(0, _wire("system", RELATED))
    turn = await _answer(lab, {"memories": memories, "input": [_wire("user", question)]}, say)
    if remember:
        asked = MemoryRecord(question, "user", embedding=vector)
        store.upsert(_COLLECTION, [asked, MemoryRecord(turn.text, "assistant")] if turn.text.strip() else [asked])
    turn.trace, turn.embedding_tokens = trace, lab.embedder.tokens_used - used
    return turn


async def _answer(lab: Lab, parts: dict[str, list[Wire]], say: Say | None) -> Turn:
    """Send the parts as one streamed request; `say` gets each piece of the answer as it comes."""
    sent = [message for messages in parts.values() for message in messages]
    text, usage = "", None
    # The messages go through extra_body because the client spends 25 ms on checking a hundred of them.
    async with await lab.client.chat.completions.create(
        model=lab.model,
        messages=[],
        extra_body={"messages": sent},
        stream=True,
        stream_options={"include_usage": True},
    ) as stream:
        async for chunk in stream:
            usage = chunk.usage or usage
            for choice in chunk.choices:
                piece = choice.delta.content or ""
                text += piece
                if say and piece:
                    say(piece)
    counts = {name: sum(tokens.count_message(m, lab.model) for m in messages) for name, messages in parts.items()}
    if usage is not None:
        details = UsageDetails.of(usage.prompt_tokens, usage.completion_tokens)
    else:
        details = UsageDetails.of(sum(counts.values()) + 3, tokens.count_text(text, lab.model), estimated=True)
    return Turn(text, sent, details, counts)


def _wire(role: str, text: str) -> Wire:
    return {"role": role, "content": text}
