"""The same sweep in several processes: joblib's own, and a local Dask cluster. Only data travels, no client."""

import joblib
import pandas as pd
import pytest

from memlab import connect
from memlab.experiments.sweep import sweep
from tests.support_sweep import made_dataset

SETTINGS = {
    "top_k": [1, 3, 9],
    "threshold": [0.1, 0.3],
    "rank": ["cosine", "bm25", "hybrid", "mmr"],
    "template": ["{text}", "{date} {text}"],
    "resamples": 50,
    "progress": False,
}


@pytest.fixture(scope="module")
def alone():
    """What one process measures."""
    return sweep(made_dataset(), embedder=connect("offline").embedder, **SETTINGS)


def test_joblib_processes_give_the_same_table(alone):
    table = sweep(made_dataset(), embedder=connect("offline").embedder, n_jobs=2, **SETTINGS)
    pd.testing.assert_frame_equal(table, alone)


def test_a_dask_cluster_gives_the_same_table_and_did_the_work(alone, tmp_path):
    from dask.distributed import Client, LocalCluster

    embedder = connect("offline").cached_embedder(path=tmp_path / "vectors.sqlite")
    cluster = LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    with cluster, Client(cluster) as client, joblib.parallel_config("dask"):
        table = sweep(made_dataset(), embedder=embedder, **SETTINGS)
        moved = client.run_on_scheduler(lambda dask_scheduler: [entry[2] for entry in dask_scheduler.transition_log])
    pd.testing.assert_frame_equal(table, alone)
    assert "memory" in moved, "the scheduler saw tasks end with a result"


def test_a_dask_cluster_resumes(alone, tmp_path):
    from dask.distributed import Client, LocalCluster

    settings = {"embedder": connect("offline").embedder, "resume": tmp_path, **SETTINGS}
    sweep(made_dataset(), **{**settings, "rank": ["cosine"]})
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.json")}
    cluster = LocalCluster(n_workers=1, threads_per_worker=2, processes=True, dashboard_address=None)
    with cluster, Client(cluster), joblib.parallel_config("dask"):
        table = sweep(made_dataset(), n_jobs=-1, **settings)
    assert {path: path.stat().st_mtime_ns for path in before} == before
    pd.testing.assert_frame_equal(table, alone)
