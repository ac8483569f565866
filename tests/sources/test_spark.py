"""Spark on this machine is reachable from this machine alone, unless the user names a cluster."""

import json
import subprocess
import sys

import pytest

from rekindle.sources.spark import _names_a_cluster

SCRIPT = """
import json, psutil
from rekindle.sources.spark import spark_session
session = spark_session()
assert session.range(10).count() == 10
found = [
    (one.laddr.ip, one.laddr.port)
    for process in psutil.Process().children(recursive=True)
    for one in process.net_connections()
    if one.status == psutil.CONN_LISTEN
]
print(json.dumps({"listening": found, "ui": session.sparkContext.uiWebUrl, "conf": dict(session.sparkContext.getConf().getAll())}))
session.stop()
"""


@pytest.mark.slow
def test_nobody_else_can_reach_a_local_session():
    pytest.importorskip("pyspark")
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert found["listening"]
    assert {address.removeprefix("::ffff:") for address, _ in found["listening"]} <= {"127.0.0.1", "::1"}
    assert 4040 not in {port for _, port in found["listening"]}
    assert found["ui"] is None
    assert found["conf"]["spark.authenticate"] == "true"


def test_a_cluster_that_the_user_names(monkeypatch, tmp_path):
    for name in ("SPARK_REMOTE", "MASTER", "PYSPARK_SUBMIT_ARGS", "SPARK_CONF_DIR", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert not _names_a_cluster()
    for name, value in (
        ("SPARK_REMOTE", "sc://host"),
        ("MASTER", "spark://host:7077"),
        ("PYSPARK_SUBMIT_ARGS", "--master yarn pyspark-shell"),
    ):
        with monkeypatch.context() as patch:
            patch.setenv(name, value)
            assert _names_a_cluster()
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.ui.enabled true\n")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    assert not _names_a_cluster()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.master  spark://host:7077\n")
    assert _names_a_cluster()
