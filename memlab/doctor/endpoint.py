"""Does a live endpoint answer, and if not, why: errors of the client in words, each with its remedy."""

from __future__ import annotations

from memlab.doctor.finding import Finding, Findings
from memlab.settings import Lab, Settings


def check_endpoint(settings: Settings) -> Findings:
    """One small request: the list of models, or one token where there is no list."""
    import openai

    try:
        client = Lab(settings).sync_client.with_options(max_retries=0, timeout=20)
        try:
            names = [model.id for model in client.models.list().data or []]
        except openai.APIStatusError as error:
            if error.status_code not in (404, 405, 501):
                raise
            names = []
            body = {"messages": [{"role": "user", "content": "hi"}]}
            client.chat.completions.create(model=settings.model, messages=[], max_tokens=1, extra_body=body)
    except (openai.OpenAIError, OSError, ValueError, AttributeError) as error:
        yield explain(error)
        return
    yield Finding("ok", "the endpoint answers")
    for name in (settings.model, settings.embedding_model):
        if names and name not in names:
            some = ", ".join(sorted(names)[:8])
            what = f"the endpoint lists no model {name}; it has {some}"
            yield Finding("warn", what, "set MEMLAB_MODEL or MEMLAB_EMBEDDING_MODEL")


def explain(error: Exception) -> Finding:
    """What an error of the client means and what to do. Never repeats a key, as the API's own text may."""
    import httpx2
    import openai

    if isinstance(error, openai.APIConnectionError | httpx2.HTTPError):
        return _explain_connection(error)
    if isinstance(error, openai.AuthenticationError):
        return Finding("error", "the endpoint refuses the API key (401)", "is OPENAI_API_KEY this endpoint's?")
    if isinstance(error, OSError):
        return Finding("error", f"the client can't be made: {error.strerror}", "check SSL_CERT_FILE and SSL_CERT_DIR")
    if not isinstance(error, openai.APIError):
        return Finding("error", f"the answer is not one of this API ({type(error).__name__})", "check the base URL")
    status = getattr(error, "status_code", 0)  # an error in the middle of a stream has none
    body = error.body if isinstance(error.body, dict) else {}
    said = body.get("message") or (f"HTTP status {status}" if status else error.message)
    return Finding("error", f"{error.code or status or 'error'}: {said}", _remedy(status, error.code))


def _remedy(status: int, code: str | None) -> str:
    if code == "context_length_exceeded":
        return "send less, or take a model with a larger window"
    return {
        400: "the endpoint can't do what was asked: see the message",
        403: "the key may not use this model: see the provider's settings",
        404: "check MEMLAB_MODEL, and the base URL: it mostly ends in /v1",
        429: "wait and try again; for insufficient_quota see the account's billing",
    }.get(status, "try again later")


def _explain_connection(error: Exception) -> Finding:
    """The client says "Connection error."; the reason stands in what caused it."""
    reasons = ""
    cause: BaseException | None = error
    while cause is not None:
        reasons += f" {type(cause).__name__} {cause}".lower()
        cause = cause.__cause__ or cause.__context__
    for signs, what, remedy in _SIGNS:
        if any(sign in reasons for sign in signs):
            return Finding("error", what, remedy)
    return Finding("error", "the endpoint can't be reached", "check the base URL, the network, HTTPS_PROXY, NO_PROXY")


_SIGNS = (
    (
        ("certificate",),
        "the endpoint's TLS certificate is not trusted",
        "set SSL_CERT_FILE to your CA file",
    ),
    (("ssl",), "the endpoint does not speak TLS", "begin the URL of a server of your own with http://"),
    (
        ("refused",),
        "nothing listens at the base URL (connection refused)",
        "start the server, or correct URL and proxy",
    ),
    (
        ("getaddrinfo", "name or service", "nodename nor", "name resolution"),
        "the host is unknown",
        "correct the base URL",
    ),
    (("proxy",), "the proxy refuses or fails", "check HTTPS_PROXY; NO_PROXY lists hosts to reach directly"),
    (("timeout", "timed out"), "the endpoint does not answer in time", "check the base URL, the network, the proxy"),
    (("peer closed", "disconnected", "readerror"), "the connection broke off", "try again; check the network"),
    (("illegal header",), "the API key can't be sent", "copy the key again, the bare key alone"),
)
