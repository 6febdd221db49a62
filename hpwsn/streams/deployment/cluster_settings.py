"""Spark settings that depend on the master: partitions, the Python of workers, and the address of the driver.

Settings that the user gives win, except that the path of the user's `PYTHONPATH` comes after the archive's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from hpwsn.streams.deployment.worker_archive import FOLDER

PARTITIONS = "spark.sql.shuffle.partitions"
UNKNOWN_CLUSTER_PARTITIONS = 16
"""Shuffle partitions if the settings do not tell how many cores a job gets.

Spark's own default is 200. Each partition of an operator with state is a task and a state store, and costs a
few milliseconds in every batch, so that 200 of them take seconds on a small cluster.
"""
_ARCHIVES, _YARN_ARCHIVES = "spark.archives", "spark.yarn.dist.archives"
_PYTHONPATH = "spark.executorEnv.PYTHONPATH"
_NO_PYTHON = re.compile(r'(?:\((\S+) executor \S+\): )?java\.io\.IOException: Cannot run program "([^"]+)"')
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?$")


def is_local(master: str) -> bool:
    """Whether Spark runs in one process on this machine; no master means `local[*]`, or spark-submit's."""
    return (master or "local").startswith("local")


def is_loopback_master(master: str) -> bool:
    """Whether all of Spark runs on this machine: locally, or with a master at a loopback address."""
    if is_local(master):
        return True
    hosts = master.removeprefix("spark://").split(",") if master.startswith("spark://") else []
    return bool(hosts) and all(_is_loopback(urlsplit(f"//{one}").hostname or "") for one in hosts)


def shuffle_partitions(master: str, conf: Mapping[str, str]) -> int:
    """The default number of shuffle partitions: half the cores of a local job, twice those of a cluster's.

    In a local job the reading tasks need the other cores, and each partition costs time in every batch. On a
    cluster twice the cores, because the first run fixes the number in the checkpoint, and the cluster may
    grow; and cores that finish early have more to do.
    """
    if is_local(master):
        return max(1, _local_cores(master) // 2)
    cores = _number(conf, "spark.cores.max") or (
        _number(conf, "spark.executor.instances") * max(1, _number(conf, "spark.executor.cores"))
    )
    return 2 * cores or UNKNOWN_CLUSTER_PARTITIONS


def master_settings(master: str, conf: Mapping[str, str], archive: Path | None = None) -> dict[str, str]:
    """The settings that a master and an archive for its workers require, without those that are in `conf`."""
    settings = {PARTITIONS: str(shuffle_partitions(master, conf))}
    if is_local(master):
        settings["spark.driver.memory"] = "1g"
    elif is_loopback_master(master):
        settings["spark.driver.host"] = settings["spark.driver.bindAddress"] = "127.0.0.1"
    settings = {key: value for key, value in settings.items() if key not in conf}
    if archive is not None:
        key = _YARN_ARCHIVES if master == "yarn" else _ARCHIVES
        others = [one for one in conf.get(key, "").split(",") if one]
        settings[key] = ",".join([*others, f"{archive.resolve()}#{FOLDER}"])
        given = conf.get(_PYTHONPATH, "")
        settings[_PYTHONPATH] = os.pathsep.join(one for one in (f"./{FOLDER}", given) if one)
    return settings


def unreachable_node(master: str, url: str) -> str:
    """Why workers on other machines cannot reach the node, or an empty text."""
    host = urlsplit(url).hostname or ""
    if is_loopback_master(master) or not _is_loopback(host):
        return ""
    return (
        f"the workers of {master} may not reach the node at {url}: {host} is the worker's own machine there;"
        " give --url an address of this machine, and start the node with --host 0.0.0.0"
    )


def missing_python(error: str) -> str:
    """What to do if Spark's error says that a machine does not have the job's Python; else an empty text."""
    found = _NO_PYTHON.search(error)
    if found is None:
        return ""
    where = f"the Spark worker {found[1]}" if found[1] else "this machine"
    return (
        f"{where} cannot run {found[2]}; install that version of Python in its PATH,"
        " or set PYSPARK_PYTHON to a path that is valid on all machines"
    )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _local_cores(master: str) -> int:
    found = _LOCAL.match(master or "local")
    given = found[1] if found else None
    if given == "*":
        return os.cpu_count() or 1
    return int(given) if given else 1


def _number(conf: Mapping[str, str], key: str) -> int:
    given = conf.get(key, "")
    return int(given) if given.isdecimal() else 0
