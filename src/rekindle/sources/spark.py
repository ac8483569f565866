"""The Spark session: that of the user's cluster, or one of this machine alone that nobody else can reach."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from rekindle.frames import optional

_ALONE = {
    "spark.ui.enabled": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Spark makes the secret itself where it runs on this machine only; given here, it would be seen in the list of processes.
    "spark.authenticate": "true",
}


def spark_session() -> Any:
    """The running session, or a new one.

    Where the user names a cluster (`SPARK_REMOTE`, `MASTER`, ``--master`` in `PYSPARK_SUBMIT_ARGS`, or `spark.master` in
    ``spark-defaults.conf``), Spark's own settings hold. Otherwise it runs on this machine only: without its web page, bound
    to the loopback address, and with authentication.
    """
    session = optional("pyspark.sql", extra="spark", what="`engine='spark'`").SparkSession
    if active := session.getActiveSession():
        return active
    builder = session.builder.appName("rekindle")
    if not _names_a_cluster():
        builder = builder.master("local[*]")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # the workers' Python, which must have Rekindle
        for name, value in _ALONE.items():
            builder = builder.config(name, value)
    return builder.getOrCreate()


def _names_a_cluster() -> bool:
    if os.environ.get("SPARK_REMOTE") or os.environ.get("MASTER"):
        return True
    if "--master" in os.environ.get("PYSPARK_SUBMIT_ARGS", ""):
        return True
    folders = [os.environ.get("SPARK_CONF_DIR"), os.environ.get("SPARK_HOME") and f"{os.environ['SPARK_HOME']}/conf"]
    files = [Path(folder) / "spark-defaults.conf" for folder in folders if folder]
    return any(
        line.split()[:1] == ["spark.master"] or line.startswith("spark.master=")
        for file in files
        if file.is_file()
        for line in file.read_text(errors="replace").splitlines()
    )
