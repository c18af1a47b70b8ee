"""Errors that say what was given, what is allowed, and what to do."""


class MemlabError(Exception):
    """Base of every error that memlab raises on purpose."""


class InvalidInputError(MemlabError, ValueError):
    """A value that can't be used."""


class InvalidTypeError(MemlabError, TypeError):
    """A value of the wrong type."""


class ConfigurationError(MemlabError, RuntimeError):
    """A set-up that can't work: a missing key, a missing extra, two settings that exclude each other."""
