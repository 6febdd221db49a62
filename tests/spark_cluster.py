"""A Spark standalone cluster on the loopback address: a master and workers, each a process of its own.

Its machines have Spark and a plain Python, and nothing of this checkout: they get the interpreter that the
tests' virtual environment was made from, and no PYTHONPATH. So HPwsn reaches them only as a job brings it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Self

import pyspark

from tests.needs import need
from tests.patience import PATIENCE, until
from tests.spark import CHEAP

SPARK_HOME = Path(pyspark.__file__).parent
CHEAP_JAVA = CHEAP["spark.driver.extraJavaOptions"]
WORKER_MEMORY, EXECUTOR_MEMORY = "800m", "512m"
_MASTER_URL = re.compile(r"Starting Spark master at (spark://\S+)")
_REGISTERED = "Successfully registered with master"


class Daemon:
    """A master or a worker, in a session of its own, so that it is killed with its executors."""

    def __init__(self, log: Path, environment: dict[str, str], *arguments: str) -> None:
        self._log = log
        with log.open("wb") as output:
            self.process = subprocess.Popen(
                [SPARK_HOME / "bin" / "spark-class", *arguments],
                stdout=output,
                stderr=output,
                env=environment,
                cwd=log.parent,
                start_new_session=True,
            )

    def log(self) -> str:
        """All that it wrote so far; an assertion fails if it has ended."""
        text = self._log.read_text()
        assert self.process.poll() is None, text
        return text

    def kill(self) -> None:
        """SIGKILL, to the executors of a worker too."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)


class SparkCluster:
    """A master and `size` workers of one core each, ready in the block."""

    def __init__(self, folder: Path, size: int = 2) -> None:
        need("Java 17 or later")
        self._folder, self._size = folder, size
        self._started = 0
        self.workers: list[Daemon] = []
        self._daemons: list[Daemon] = []
        self.url = ""

    def __enter__(self) -> Self:
        self._folder.mkdir()
        master = Daemon(
            self._folder / "master.log",
            self.environment(),
            "org.apache.spark.deploy.master.Master",
            *("--host", "127.0.0.1", "--port", "0", "--webui-port", "0"),
        )
        self._daemons.append(master)
        until(lambda: _MASTER_URL.search(master.log()), master.log)
        found = _MASTER_URL.search(master.log())
        assert found
        self.url = found[1]
        for _ in range(self._size):
            self.start_worker()
        self.wait_for_workers()
        return self

    def __exit__(self, *error: object) -> None:
        for one in self._daemons:
            one.kill()
        # Every executor has unpacked the archive of its job.
        shutil.rmtree(self._folder, ignore_errors=True)

    def start_worker(self) -> None:
        """Start a worker, and do not wait."""
        self._started += 1
        place = self.work_folders()[-1]
        worker = Daemon(
            self._folder / f"{place.name}.log",
            self.environment(),
            "org.apache.spark.deploy.worker.Worker",
            *("--host", "127.0.0.1", "--cores", "1", "--memory", WORKER_MEMORY, "--webui-port", "0"),
            *("--work-dir", str(place), self.url),
        )
        self._daemons.append(worker)
        self.workers.append(worker)

    def wait_for_workers(self) -> None:
        """Wait until the master knows all workers."""
        for worker in self.workers:
            until(lambda worker=worker: _REGISTERED in worker.log(), worker.log)  # type: ignore[misc]

    def work_folders(self) -> list[Path]:
        """The folders of the executors, one for each worker that was ever started."""
        return [self._folder / f"worker-{number}" for number in range(1, self._started + 1)]

    def kill_worker(self) -> None:
        """Kill a worker and its executor."""
        self.workers.pop(0).kill()

    def environment(self) -> dict[str, str]:
        """The environment of the cluster's machines."""
        kept = {name: os.environ[name] for name in ("JAVA_HOME", "LANG", "LC_ALL") if name in os.environ}
        return {
            **kept,
            "PATH": os.pathsep.join((str(Path(sys.base_prefix) / "bin"), "/usr/local/bin:/usr/bin:/bin")),
            "HOME": str(self._folder),
            "PYTHONNOUSERSITE": "1",
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": self._java_options("-Dspark.master.rest.enabled=false"),
        }

    def job_environment(self, folder: Path) -> dict[str, str]:
        """Variables for a job's driver: a cheap Spark that keeps its files in this folder of the cluster."""
        folder.mkdir()
        settings = {
            **CHEAP,
            "spark.driver.extraJavaOptions": self._java_options(),
            "spark.executor.extraJavaOptions": self._java_options(),
            "spark.executor.memory": EXECUTOR_MEMORY,
        }
        lines = [f"{key} {value}\n" for key, value in settings.items()]
        (folder / "spark-defaults.conf").write_text("".join(lines))
        return {
            "SPARK_CONF_DIR": str(folder),
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
            "PYTHONWARNINGS": "ignore",
        }

    def _java_options(self, *more: str) -> str:
        return " ".join((CHEAP_JAVA, f"-Djava.io.tmpdir={self._folder}", *more))
