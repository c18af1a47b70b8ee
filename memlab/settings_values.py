"""The values of settings: what can't work is refused, with what to write instead. A key is never repeated."""

from __future__ import annotations

import re

from memlab.errors import ConfigurationError

PLACEHOLDER = (
    "the API key is a placeholder, as an example file holds one: fill in your own key, or remove its line from .env "
    "(in the environment: unset OPENAI_API_KEY)"
)
_PLACEHOLDER = re.compile(
    r"""
      <.*> | \[.*\] | \{.*\} | \$\{?\w+\}?             # <key>
    | .*(\.\.\.|…|\*\*\*).*                          # sk-...
    | sk-(proj-)?x+ | x{8,}                          # sk-xxxx
    | (sk-)?((add|enter|insert|paste|put|the)[-_ ])?your([-_ ]|api|key).*  # your-key-here
    | (openai[-_ ])?api[-_ ]?key([-_ ]here)? | key[-_ ]here
    | (change|replace|fill)[-_ ]?(me|this|in) | placeholder | todo | the-key-you-chose
    """,
    re.IGNORECASE | re.VERBOSE | re.DOTALL,
)


def is_placeholder(key: str) -> bool:
    """Whether a key is the text that an example has in its place.

    Words that stand for "none" are keys: a server of one's own may be given any.

    >>> [is_placeholder(key) for key in ("your-key-here", "sk-...", "<key>", "ollama", "sk-no-key-required")]
    [True, True, True, False, False]
    """
    return _PLACEHOLDER.fullmatch(key.strip().strip("\"'")) is not None


def read_dimensions(value: str | None) -> int | None:
    """The length of vectors, as a number."""
    if value is None:
        return None
    if not value.isdecimal() or int(value) < 1:
        raise ConfigurationError(f"MEMLAB_EMBEDDING_DIMENSIONS is {value!r}; it must be a whole number like 2048")
    return int(value)


def read_base_url(value: str | None) -> str | None:
    """The base URL without a slash at its end."""
    if value is None:
        return None
    if not value.startswith(("http://", "https://")):
        raise ConfigurationError("the base URL must begin with http:// or https://, like https://host/v1")
    for ending in ("/chat/completions", "/embeddings", "/responses"):
        if value.rstrip("/").endswith(ending):
            raise ConfigurationError(f"the base URL ends in {ending}; leave that out, the client adds it")
    return value.rstrip("/")


def read_api_key(key: str | None, base_url: str | None) -> str:
    """The key; "none" for a server that may want none."""
    if key is None and base_url is None:
        raise ConfigurationError(
            "live needs a key or a URL: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own; "
            "MEMLAB_MODE=offline goes without"
        )
    if key is not None and is_placeholder(key):
        raise ConfigurationError(PLACEHOLDER)
    if key is not None and not all("!" <= character <= "~" for character in key):
        raise ConfigurationError(
            "the API key holds a space or a character that is not ASCII; copy it again, without quotes"
        )
    return key or "none"  # a server of one's own mostly wants no key, but the client insists on one
