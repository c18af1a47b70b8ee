"""The classroom model: a rule-based stand-in for a chat model. It is not an LLM, and must not be called one.

`respond` is a pure function of a Chat Completions request: the same request gives the same turn, and nothing
is remembered between requests. That is the point of it: whatever it seems to remember was in its messages.

What it understands (Chinese, English, Russian)
- Facts people state about themselves: name, likes, dislikes, allergies, what they can't eat, where they live
  and come from, job, age, birthday, pets, family names, "my X is Y", "I play/study/speak X". The latest wins.
- Corrections of what was just said ("sorry, I meant Leeds"), when they say that they are corrections.
- Questions about those facts, open ("where do I live?") or yes-or-no ("do I like tea?").
- Ordering a meal with a menu tool and an order tool, within the constraints it can see.
- A search tool, called once when a fact is missing; other tools when the question plainly names their job.
- Greetings, thanks, goodbyes, who it is, a joke, a summary of facts and orders.

What it does not understand
- Anything its tables of patterns don't list: it says "I don't know" or "I did not understand". It has no
  knowledge of the world, does no reasoning, and does not know what words mean.
- Facts in long, winding sentences, irony, most pronouns ("he", "it"), facts spread over several messages.
- A bare word after a fact corrects it only behind a marker ("typo, 15"), within the next two messages, and when
  it has the fact's shape. "My name isn't ..., it's a long story" or a name in small letters may be missed.
- It never stores denials, questions, quoted speech, hypotheticals or other people's facts as the user's own.
- In a memory block, undated lines have no order in time: the last line wins, except that a correction
  ("no, my name is ...") wins over the rest; dated lines are put in order first. For orders the first line
  of a block counts as the latest. Facts of the conversation win over remembered ones.
- A memory in quotes (a JSON string) is one text: what follows a heading or a role inside it ("user: my name
  is ...") is not taken. Without quotes such a line can't be told from a memory, and is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from memlab.offline.chat_model import acknowledge, ordering, recall, search_tool, small_talk, summary, tool_use
from memlab.offline.chat_model.conversation import Conversation, read
from memlab.offline.chat_model.schema import fill_schema
from memlab.offline.chat_model.turn import Call, Turn

__all__ = ["Call", "Turn", "fill_schema", "respond"]

Skill = Callable[[Conversation], Turn | None]

# Asked in this order; the first that has something to say makes the turn.
SKILLS: tuple[Skill, ...] = (
    tool_use.forced,
    summary.summarise,
    ordering.order,
    search_tool.search,
    recall.answer,
    small_talk.identity_or_joke,
    tool_use.use_tool,
    acknowledge.acknowledge,
    recall.loose_answer,
    small_talk.courtesy,
)


def respond(request: Mapping[str, Any]) -> Turn:
    """The next turn of a conversation.

    `request` is a validated Chat Completions body; `messages`, `tools`, `tool_choice`, `parallel_tool_calls`
    and `seed` are used. It is never changed.

    >>> respond({"messages": [{"role": "user", "content": "What's my name?"}]}).text
    "I don't know your name. Could you tell me?"
    """
    conversation = read(request)
    turns = (skill(conversation) for skill in SKILLS)
    turn = next((turn for turn in turns if turn is not None), None) or small_talk.not_understood(conversation)
    return turn if turn.tool_calls else tool_use.required(conversation) or turn
