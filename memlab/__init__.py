"""memlab: how does a stateless language model come to remember?

    lab = memlab.connect()                               # offline unless live was asked for
    agent = memlab.Agent(lab.chat, "Answer briefly.")
    response = await agent.run("我叫张三", session=agent.create_session())

The names below are loaded when they are first used, so that `import memlab` costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memlab.agent import Agent
    from memlab.clients.chat_completions import OpenAIChatCompletionClient
    from memlab.clients.embedder import OpenAIEmbedder
    from memlab.clients.responses import OpenAIChatClient
    from memlab.contents import Text, ToolCall, ToolResult
    from memlab.errors import ConfigurationError, InvalidInputError, InvalidTypeError, MemlabError
    from memlab.messages import Message, MessageSource
    from memlab.providers.base import ContextProvider, SessionContext
    from memlab.providers.file_history import FileHistoryProvider
    from memlab.providers.history import HistoryProvider, InMemoryHistoryProvider
    from memlab.providers.memory import ChatHistoryMemoryProvider
    from memlab.providers.memory_options import ChatHistoryMemoryProviderOptions, SearchTime, State
    from memlab.providers.reducers import MessageCountReducer, TokenBudgetReducer
    from memlab.providers.sqlite_history import SqliteHistoryProvider
    from memlab.providers.state import ProviderSessionState
    from memlab.providers.summary import SummaryReducer
    from memlab.providers.tracking import ContextTrackingProvider, MessageProvider
    from memlab.response import AgentResponse, AgentResponseUpdate, ChatClient, ChatReply, ResponseStream
    from memlab.session import AgentSession, register_state_type
    from memlab.settings import Lab, connect
    from memlab.stores.base import EVERYONE, Hit, MemoryRecord, MemoryScope, VectorStore
    from memlab.stores.in_memory import InMemoryVectorStore
    from memlab.stores.postgres import PostgresVectorStore
    from memlab.stores.sqlite import SqliteVectorStore
    from memlab.tools import FunctionTool, record_event, tool
    from memlab.trace import Event, Trace
    from memlab.turn import AgentRunError
    from memlab.usage import UsageDetails
    from memlab.vectors import cosine_matrix, cosine_similarity, normalize, select_top_k

__version__ = "0.1.0"

_HOMES = {
    "agent": "Agent",
    "clients.chat_completions": "OpenAIChatCompletionClient",
    "clients.embedder": "OpenAIEmbedder",
    "clients.responses": "OpenAIChatClient",
    "contents": "Text ToolCall ToolResult",
    "errors": "ConfigurationError InvalidInputError InvalidTypeError MemlabError",
    "messages": "Message MessageSource",
    "providers.base": "ContextProvider SessionContext",
    "providers.file_history": "FileHistoryProvider",
    "providers.history": "HistoryProvider InMemoryHistoryProvider",
    "providers.memory": "ChatHistoryMemoryProvider",
    "providers.memory_options": "ChatHistoryMemoryProviderOptions SearchTime State",
    "providers.reducers": "MessageCountReducer TokenBudgetReducer",
    "providers.sqlite_history": "SqliteHistoryProvider",
    "providers.state": "ProviderSessionState",
    "providers.summary": "SummaryReducer",
    "providers.tracking": "ContextTrackingProvider MessageProvider",
    "response": "AgentResponse AgentResponseUpdate ChatClient ChatReply ResponseStream",
    "session": "AgentSession register_state_type",
    "settings": "Lab connect",
    "stores.base": "EVERYONE Hit MemoryRecord MemoryScope VectorStore",
    "stores.in_memory": "InMemoryVectorStore",
    "stores.postgres": "PostgresVectorStore",
    "stores.sqlite": "SqliteVectorStore",
    "tools": "FunctionTool record_event tool",
    "trace": "Event Trace",
    "turn": "AgentRunError",
    "usage": "UsageDetails",
    "vectors": "cosine_matrix cosine_similarity normalize select_top_k",
}
_HOME_OF = {name: f"memlab.{home}" for home, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'memlab' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
