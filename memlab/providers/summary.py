"""A reducer that asks a model for a summary of the older part of a conversation."""

from __future__ import annotations

from collections.abc import Sequence

from memlab.checks import check_type
from memlab.errors import InvalidInputError
from memlab.messages import Message, new_id
from memlab.providers.reducers import group_messages
from memlab.response import ChatClient, ChatReply, check_client

PROMPT = "Summarise the conversation below in a few sentences. Keep every fact that the user stated."


class SummaryReducer:
    """Above `max_messages`, everything but the newest `keep` messages becomes one summary.

    Parameters
    ----------
    client : the model that writes the summary.
    max_messages, keep : when to summarise, and how many messages stay as they are; `keep < max_messages`.
    prompt : what the model is told before the transcript.

    System messages and the newest group stay; a tool call stays with its result. Use it with
    `reducer_trigger="after_adding"`, which stores the summary; before each retrieval it would be written anew.
    """

    def __init__(self, client: ChatClient, max_messages: int = 20, keep: int = 6, prompt: str = PROMPT) -> None:
        check_client(client)
        check_type("max_messages", max_messages, int)
        check_type("keep", keep, int)
        check_type("prompt", prompt, str)
        if not 1 <= keep < max_messages:
            raise InvalidInputError(
                f"keep is {keep} and max_messages {max_messages}; 1 <= keep < max_messages is needed"
            )
        self.client, self.max_messages, self.keep, self.prompt = client, max_messages, keep, prompt

    async def reduce(self, messages: Sequence[Message]) -> list[Message]:
        """The system messages, a summary of what is old, and the newest messages."""
        system = [m for m in messages if m.role in ("system", "developer")]
        talk = [m for m in messages if m.role not in ("system", "developer")]
        if len(messages) <= self.max_messages:
            return list(messages)
        recent: list[Message] = []
        for group in reversed(group_messages(talk)):
            if recent and len(recent) + len(group) > self.keep:
                break
            recent = [*group, *recent]
        old = talk[: len(talk) - len(recent)]
        return [*system, *([await self._summary(old)] if old else []), *recent]

    async def _summary(self, old: Sequence[Message]) -> Message:
        transcript = "\n".join(f"{m.role}: {m.text}" for m in old if m.text.strip())
        request = [Message("user", f"{self.prompt}\n\n{transcript}")]
        async for part in self.client.complete(request, [], {}, stream=False):
            if isinstance(part, ChatReply) and part.message.text.strip():
                properties = {"summary_of": [m.message_id for m in old]}
                return Message("assistant", part.message.text, message_id=new_id(), additional_properties=properties)
        raise InvalidInputError(f"{type(self.client).__name__} gave no summary")
