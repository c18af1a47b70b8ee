"""What breaks around the stores: killed writers, damaged files, full disks, a database that restarts.

The promise: a clear error, nothing lost that was acknowledged, and the same call works again afterwards.
"""

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memlab import EVERYONE, MemlabError, MemoryRecord, MemoryScope, PostgresVectorStore, SqliteVectorStore
from tests.support_postgres import new_schema, postgres_url, restart, start_server  # noqa: F401 - a fixture

RNG = np.random.default_rng(0)
KILLS = 50

WRITER = """
import sys, numpy as np
from memlab import MemoryRecord, MemoryScope, SqliteVectorStore
path, name = sys.argv[1:]
store = SqliteVectorStore(path)
for batch in range(100_000):
    size = 1 + batch % 7
    scope = MemoryScope(session_id=f"{name} {batch}")
    ids = [f"{name} {batch} {i}" for i in range(size)]
    store.upsert("c", [MemoryRecord(f"{size}", scope=scope, id=i, embedding=np.ones(64)) for i in ids])
    print(batch, flush=True)  # acknowledged
"""


def some(count, dimensions=16, **fields):
    return [MemoryRecord(f"text {i}", embedding=RNG.normal(size=dimensions), **fields) for i in range(count)]


# --- SQLite: a killed process ---


def killed_writer(path, number):
    """Start a writer, kill it a moment after its first acknowledgement; the batches that it acknowledged."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, path, f"writer {number}"], stdout=subprocess.PIPE, text=True
    )
    first = writer.stdout.readline()
    time.sleep(random.Random(number).uniform(0, 0.04))
    writer.kill()
    acknowledged = (first + writer.communicate()[0]).split("\n")[:-1]  # a last line without its end was never said
    return [f"writer {number} {batch}" for batch in acknowledged]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9 on Windows")
def test_writers_that_are_killed_lose_nothing_acknowledged_and_leave_no_half_batch(tmp_path):
    path, store = tmp_path / "memory.db", SqliteVectorStore(tmp_path / "memory.db")
    with ThreadPoolExecutor(2) as pool:  # two at a time, so that one dies while the other writes
        acknowledged = [
            batch for batches in pool.map(lambda n: killed_writer(path, n), range(KILLS)) for batch in batches
        ]
    assert len(acknowledged) >= KILLS
    found: dict[str, list[MemoryRecord]] = {}
    for record in store.scan("c", scope=EVERYONE):
        found.setdefault(record.scope.session_id, []).append(record)
    assert set(acknowledged) <= set(found)
    assert all(len(records) == int(records[0].text) for records in found.values())
    assert SqliteVectorStore(path).scan("c", scope=EVERYONE) == store.scan("c", scope=EVERYONE)
    assert sqlite3.connect(path).execute("PRAGMA integrity_check").fetchall() == [("ok",)]


# --- SQLite: the file ---


def test_a_file_that_is_no_database_is_refused_and_stays_as_it_is(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes\n" * 500, encoding="utf-8")
    with pytest.raises(MemlabError, match=r"notes\.txt.*not a database.*another path"):
        SqliteVectorStore(path)
    assert path.read_text("utf-8") == "these are my notes\n" * 500


def test_a_database_of_another_program_is_refused_and_stays_as_it_is(tmp_path):
    with sqlite3.connect(tmp_path / "shop.db") as database:
        database.execute("CREATE TABLE customers (name TEXT)")
    with pytest.raises(MemlabError, match=r"shop\.db is a database of another program"):
        SqliteVectorStore(tmp_path / "shop.db")
    assert sqlite3.connect(tmp_path / "shop.db").execute("SELECT name FROM sqlite_schema").fetchall() == [
        ("customers",)
    ]


def test_a_database_of_a_later_memlab_is_refused(tmp_path):
    SqliteVectorStore(tmp_path / "m.db").close()
    sqlite3.connect(tmp_path / "m.db").execute("PRAGMA user_version = 99")
    with pytest.raises(MemlabError, match="format 99"):
        SqliteVectorStore(tmp_path / "m.db")


@pytest.mark.parametrize("share", [0.9, 0.5, 0.01])
def test_a_truncated_file_is_named_damaged_with_a_remedy(tmp_path, share):
    path = tmp_path / "memory.db"
    store = SqliteVectorStore(path)
    store.upsert("c", some(2000))
    store.close()
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(MemlabError, match=r"memory\.db: .*(restore|recover|another path)"):
        SqliteVectorStore(path).scan("c", scope=EVERYONE)


@pytest.mark.parametrize("name", ["missing/memory.db", "."])
def test_a_path_that_can_not_be_opened_is_an_error_that_says_why(tmp_path, name):
    with pytest.raises(MemlabError, match="its folder must exist"):
        SqliteVectorStore(tmp_path / name)


def delete(path):
    path.unlink()


def replace(path):
    other = SqliteVectorStore(path.with_name("other.db"))
    other.upsert("c", some(9))
    other.close()
    os.replace(other.path, path)


def move(path):
    path.rename(path.with_name("elsewhere.db"))


def move_folder(path):
    path.parent.rename(path.parent.with_name("elsewhere"))


USES = {
    "upsert": lambda store: store.upsert("c", some(1)),
    "delete": lambda store: store.delete("c", scope=EVERYONE),
    "search": lambda store: store.search("c", np.ones(16), scope=EVERYONE),
    "scan": lambda store: store.scan("c", scope=EVERYONE),
    "count": lambda store: store.count("c", scope=EVERYONE),
    "info": lambda store: store.info("c"),
}


@pytest.fixture
def opened(tmp_path):
    """An open store with three records, in a folder of its own."""
    (tmp_path / "shelf").mkdir()
    store = SqliteVectorStore(tmp_path / "shelf" / "memory.db")
    store.upsert("c", some(3))
    return store


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file from being deleted")
@pytest.mark.parametrize("lose", [delete, replace, move, move_folder])
@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_file_that_is_gone_under_an_open_store_is_noticed_at_the_next_use(opened, use, lose):
    lose(opened.path)
    for _ in range(2):
        with pytest.raises(
            MemlabError, match=r"memory\.db was deleted, moved or replaced.*put the file back, or close"
        ):
            use(opened)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file from being deleted")
def test_a_file_that_is_put_back_is_used_again(opened):
    away = opened.path.with_name("away.db")
    opened.path.rename(away)
    with pytest.raises(MemlabError, match="put the file back"):
        opened.upsert("c", some(1))
    away.rename(opened.path)
    opened.upsert("c", some(1))
    assert opened.count("c", scope=EVERYONE) == 4


@pytest.mark.skipif(sys.platform == "win32", reason="Windows keeps an open file from being deleted")
@pytest.mark.parametrize(("lose", "left"), [(delete, 0), (replace, 9)])
def test_closed_after_a_loss_a_store_uses_what_is_at_its_path(opened, lose, left):
    lose(opened.path)
    opened.close()
    for end in ("-wal", "-shm"):  # SQLite would take them for those of the new file
        opened.path.with_name(f"memory.db{end}").unlink(missing_ok=True)
    assert opened.count("c", scope=EVERYONE) == len(opened.scan("c", scope=EVERYONE)) == left
    opened.upsert("c", some(1))
    assert SqliteVectorStore(opened.path).count("c", scope=EVERYONE) == left + 1


def test_a_relative_path_outlives_a_change_of_the_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = SqliteVectorStore("memory.db")
    store.upsert("c", some(3))
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    store.upsert("c", some(1))
    assert store.count("c", scope=EVERYONE) == 4


@pytest.fixture
def open_folder():
    """A folder that every user may read; those of pytest are its own user's."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


READ_ONLY = """
import os, sys
import numpy as np
from memlab import EVERYONE, MemlabError, MemoryRecord, SqliteVectorStore
if os.getuid() == 0:
    os.setuid(65534)  # root may write anything
store = SqliteVectorStore(sys.argv[1])
print(store.count("c", scope=EVERYONE))
try:
    store.upsert("c", [MemoryRecord("x", embedding=np.ones(16))])
except MemlabError as error:
    print(error)
print(store.count("c", scope=EVERYONE))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of files work differently on Windows")
def test_a_file_that_may_only_be_read_can_be_searched_and_says_so_when_written(open_folder):
    store = SqliteVectorStore(open_folder / "memory.db")
    store.upsert("c", some(5))
    for file in open_folder.iterdir():  # the -wal and -shm files of the open store are there
        file.chmod(0o444)
    run = subprocess.run([sys.executable, "-c", READ_ONLY, open_folder / "memory.db"], capture_output=True, text=True)
    count, error, after = run.stdout.splitlines() or [run.stderr] * 3
    assert count == after == "5"
    assert "readonly" in error
    assert "change its permissions" in error


FULL_DISK = """
import resource, signal, sys
import numpy as np
from memlab import EVERYONE, MemlabError, MemoryRecord, SqliteVectorStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store, acknowledged = SqliteVectorStore(sys.argv[1]), 0
resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, resource.RLIM_INFINITY))
try:
    for _ in range(1000):
        store.upsert("c", [MemoryRecord("x", embedding=np.ones(64)) for _ in range(20)])
        acknowledged += 20
except MemlabError as error:
    print(error)
print(acknowledged, store.count("c", scope=EVERYONE), SqliteVectorStore(sys.argv[1]).count("c", scope=EVERYONE))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))  # room was made
store.upsert("c", [MemoryRecord("x", embedding=np.ones(64))])
print(store.count("c", scope=EVERYONE))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no limit on a file's size on Windows")
def test_a_disk_that_is_full_stops_a_write_as_a_whole_and_room_lets_it_go_on(tmp_path):
    run = subprocess.run([sys.executable, "-c", FULL_DISK, tmp_path / "memory.db"], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    error, counts, after = run.stdout.splitlines()
    acknowledged, here, there = map(int, counts.split())
    assert "full" in error
    assert 0 < acknowledged == here == there < 20_000
    assert int(after) == acknowledged + 1


def test_a_file_that_another_process_keeps_locked_is_named(tmp_path):
    store = SqliteVectorStore(tmp_path / "memory.db")
    store._file._open().execute("PRAGMA busy_timeout = 50")  # not the 30 s of real life
    other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(MemlabError, match=r"locked.*another process"):
        store.upsert("c", some(1))
    assert store.count("c", scope=EVERYONE) == 0  # reading goes on
    other.execute("ROLLBACK")
    store.upsert("c", some(1))
    assert store.count("c", scope=EVERYONE) == 1


# --- PostgreSQL ---


@pytest.fixture(scope="module")
def own_server():
    """A server that may be stopped."""
    server = start_server()
    yield server
    server.cleanup()


def test_a_database_that_restarts_in_mid_run_loses_nothing_acknowledged(own_server):
    store = PostgresVectorStore(new_schema(own_server.get_uri()))
    acknowledged, errors, done = [], [], threading.Event()

    def write():
        number = 0
        while not done.is_set():
            record = MemoryRecord(f"{number}", id=f"{number}", embedding=np.ones(16))
            try:
                acknowledged.extend(store.upsert("c", [record]))
                number += 1
            except MemlabError as error:  # anything else ends the thread, and the test
                errors.append(str(error))
                time.sleep(0.05)

    with ThreadPoolExecutor(1) as pool:
        writer = pool.submit(write)
        for _ in range(3):
            before = len(acknowledged)
            wait_until(lambda: len(acknowledged) > before + 5 or writer.done())  # noqa: B023 - called at once
            restart(own_server)
        before = len(acknowledged)
        wait_until(lambda: len(acknowledged) > before + 5 or writer.done())
        done.set()
        writer.result()
    assert set(acknowledged) <= {record.id for record in store.scan("c", scope=EVERYONE)}
    assert all("PostgreSQL database 'postgres'" in error for error in errors)


def wait_until(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.01)


def test_idle_connections_that_dropped_are_opened_again_without_an_error(own_server):
    store = PostgresVectorStore(new_schema(own_server.get_uri()))
    store.upsert("c", some(3))
    store._server.run(lambda connection: store.count("c", scope=EVERYONE))  # takes two connections
    restart(own_server)
    assert store.count("c", scope=EVERYONE) == 3
    restart(own_server)
    store.upsert("c", some(3))
    assert store.delete("c", scope=EVERYONE) == 6


def test_a_database_that_is_down_is_named_without_its_password():
    with pytest.raises(MemlabError, match=r"'shop' can't be reached.*is it running") as error:
        PostgresVectorStore("postgresql://me:secret-word@127.0.0.1:9/shop")
    assert "secret-word" not in str(error.value)
    with pytest.raises(MemlabError, match="URL") as error:
        PostgresVectorStore("mysql://me:secret-word@127.0.0.1/shop")
    assert "secret-word" not in str(error.value)


def test_a_table_that_somebody_dropped_is_named(postgres_url):  # noqa: F811
    store = PostgresVectorStore(new_schema(postgres_url))
    store.upsert("c", some(3, scope=MemoryScope(user_id="a")))

    def drop(connection):
        name = connection.execute("SELECT table_name FROM memlab_collections").fetchone()[0]
        connection.execute(f"DROP TABLE {name}")

    store._server.run(drop)
    with pytest.raises(MemlabError, match="does not exist"):
        store.count("c", scope=EVERYONE)
    store.close()
