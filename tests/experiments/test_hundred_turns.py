"""The hundred-turn conversation, the loops that it is replayed through, and what is measured of it."""

import pandas as pd
import pytest

import memlab
from memlab import EVERYONE, prices, tokens
from memlab.experiments import comparison, forgetting, hundred_turns
from memlab.experiments.loops import amnesia, full_history, vector_memory


@pytest.fixture
def lab():
    return memlab.connect("offline")


def frame(prompt_tokens, embedding_tokens=0, strategy="any"):
    """A frame of `replay` with these prompt tokens."""
    turns = range(1, len(prompt_tokens) + 1)
    return pd.DataFrame(
        {
            "strategy": strategy,
            "turn": turns,
            "input": 10,
            "prompt_tokens": prompt_tokens,
            "completion_tokens": 0,
            "embedding_tokens": embedding_tokens,
        }
    )


def test_the_conversation_is_what_its_description_says():
    talk = hundred_turns.load_conversation()
    pasted = [text for text in talk.turns if "\n" in text]
    assert (len(talk.turns), len(talk.probes), len(pasted)) == (100, 40, 25)
    assert len({probe.ask for probe in talk.probes}) == 40
    for probe in talk.probes:
        assert probe.answered_by(talk.turns[probe.turn - 1]), probe


def test_the_conversation_overflows_8k_and_32k_but_not_128k():
    total = sum(map(tokens.count_text, hundred_turns.load_conversation().turns))
    assert 32_768 * 0.9 < total < 131_072


async def test_amnesia_sends_one_message_and_full_history_all(lab):
    turn = await amnesia(lab, "Hello")
    assert turn.sent == [{"role": "user", "content": "Hello"}]
    history = []
    first = await full_history(lab, history, "My name is Anna.")
    second = await full_history(lab, history, "What is my name?")
    assert "Anna" in second.text
    assert second.sent[1] == {"role": "assistant", "content": first.text}
    assert [message["role"] for message in history] == ["user", "assistant"] * 2


async def test_a_failed_turn_is_not_added_to_the_history(lab):
    history = [{"role": "user", "content": "word " * 9_000}]
    result = await hundred_turns.replay(
        ["Hello"], lambda text: full_history(lab.with_model("classroom-8k"), history, text), "full"
    )
    assert result["error"].tolist() == ["context_length_exceeded"]
    assert len(history) == 1


async def test_vector_memory_sends_related_records_best_first_and_stores_both_sides(lab):
    store = memlab.InMemoryVectorStore(lab.embedder)
    for text in ["My name is Anna.", "The lift is broken again.", "I have a cat called Pixel."]:
        await vector_memory(lab, store, text)
    before = store.count("chat", scope=EVERYONE)
    turn = await vector_memory(lab, store, "What is my cat called?", top_k=2, threshold=0.3)
    assert "Pixel" in turn.text
    assert turn.sent[0]["role"] == "system"
    assert turn.sent[-1] == {"role": "user", "content": "What is my cat called?"}
    retrieved = turn.sent[1:-1]
    assert 1 <= len(retrieved) <= 2
    search = turn.trace.searches[0]
    assert [message["content"] for message in retrieved] == [search.candidates[i].text for i in search.kept]
    scores = [search.scores[i] for i in search.kept]
    assert scores == sorted(scores, reverse=True)
    assert min(scores) >= 0.3
    assert store.count("chat", scope=EVERYONE) == before + 2


async def test_vector_memory_embeds_the_question_once(lab):
    embedder = lab.embedder_for("use-multilingual")
    seen = []

    class Watched:
        model, dimensions = embedder.model, embedder.dimensions
        tokens_used = 0

        def embed(self, texts, role="document"):
            seen.extend(texts)
            return embedder.embed(texts, role)

    lab = lab.with_model(lab.model)
    lab.__dict__["embedder"] = Watched()
    await vector_memory(lab, memlab.InMemoryVectorStore(lab.embedder), "My name is Anna.")
    assert seen.count("My name is Anna.") == 1
    assert len(seen) == 2


async def test_nothing_related_sends_the_question_alone(lab):
    store = memlab.InMemoryVectorStore(lab.embedder)
    await vector_memory(lab, store, "I have a cat called Pixel.")
    turn = await vector_memory(lab, store, "1234 5678", threshold=0.99)
    assert [message["role"] for message in turn.sent] == ["user"]


async def test_probes_do_not_add_to_the_memory(lab):
    store, history = memlab.InMemoryVectorStore(lab.embedder), []
    await full_history(lab, history, "My name is Anna.")
    await vector_memory(lab, store, "My name is Anna.")
    probes = [hundred_turns.Probe("What is my name?", ("Anna",), 1)]
    for name, ask in comparison.ways_to_ask(lab, history, store).items():
        result = await hundred_turns.probe(probes, ask, name)
        assert result["answered"].all() == (name != "no memory"), name
    assert len(history) == 2
    assert store.count("chat", scope=EVERYONE) == 2


def test_break_even_is_the_first_turn_after_which_the_other_stays_cheaper():
    full, flat = frame([10, 20, 30, 40]), frame([20, 20, 20, 20])
    assert hundred_turns.break_even(full, flat, "prompt_tokens") == 4
    assert hundred_turns.break_even(frame([50, 50]), frame([10, 10]), "prompt_tokens") == 1
    assert hundred_turns.break_even(frame([10, 10]), frame([10, 10]), "prompt_tokens") is None


def test_cost_counts_chat_and_embeddings_at_the_prices_of_the_table():
    priced = hundred_turns.with_cost(frame([1_000_000, 0], embedding_tokens=[0, 1_000_000]))
    table = prices.load_prices()
    chat, embedding = (table[model].input_per_million for model in hundred_turns.PRICED_AS)
    assert priced["usd"].tolist() == pytest.approx([chat, embedding])
    assert priced["usd_total"].tolist() == pytest.approx([chat, chat + embedding])
    with pytest.raises(memlab.InvalidInputError, match="no-such-model"):
        hundred_turns.with_cost(frame([1]), ("no-such-model", "text-embedding-3-small"))


def test_growth_per_turn_is_the_slope_of_ordinary_turns():
    result = frame([5 * turn for turn in range(1, 41)])
    result.loc[35, ["input", "prompt_tokens"]] = [5_000, 90_000]
    assert comparison.growth_per_turn(result) == pytest.approx(5)


def test_lines_of_code_leaves_out_docstring_and_comments():
    assert comparison.lines_of_code(amnesia) == 2


async def test_reducers_are_shown_message_by_message():
    history = [{"role": role, "content": str(i)} for i in range(30) for role in ("user", "assistant")]
    kept = await forgetting.kept_by_reducers(
        history, {"all": None, "last 20": memlab.MessageCountReducer(20)}, fact_turns=[1, 30]
    )
    counts = kept[kept["status"] == "sent"].groupby("strategy").size()
    assert counts.to_dict() == {"all": 30, "last 20": 10}
    assert kept[kept["kind"] == "fact"]["turn"].unique().tolist() == [1, 30]


def test_signal_share_is_the_evidence_over_the_whole_prompt():
    evidence = {"role": "user", "content": "My name is Anna."}
    assert forgetting.signal_share([evidence], "My name is Anna.") == 1
    assert forgetting.signal_share([evidence, evidence | {"content": "noise " * 500}], "My name is Anna.") < 0.05


def test_a_new_process_prints_unicode():
    assert comparison.run_in_new_process("print('我叫张三')") == "我叫张三"
