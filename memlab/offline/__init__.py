"""The offline endpoint: an OpenAI-compatible service that needs no network, no key and no money."""
