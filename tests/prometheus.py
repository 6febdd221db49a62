"""A real Prometheus with the files of scripts/deploy/prometheus, and its own checker promtool."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.harness import ROOT, quiet_port
from tests.needs import need
from tests.patience import PATIENCE, until

FILES = ROOT / "scripts" / "deploy" / "prometheus"


def promtool(*arguments: str, stdin: str = "") -> str:
    """Run promtool; what it prints, if it has no complaint."""
    need("Prometheus")
    ran = subprocess.run(
        ["promtool", *arguments], input=stdin, capture_output=True, text=True, cwd=FILES, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr


def dashboard_queries() -> list[str]:
    """The queries of the Grafana dashboard, as Grafana sends them for all nodes."""
    dashboard = json.loads((FILES / "grafana-dashboard.json").read_text())
    found = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    variables = {"$__rate_interval": "10s", "$instance": ".*"}
    for name, value in variables.items():
        found = [query.replace(name, value) for query in found]
    assert not any("$" in query for query in found)
    return found


class Prometheus:
    """Prometheus in a folder of its own, which scrapes these addresses every second."""

    def __init__(self, folder: Path, **jobs: list[str]) -> None:
        """`jobs` are the addresses, as host and port, of the jobs of the example configuration."""
        self.folder = folder
        self.jobs = {name.replace("_", "-"): addresses for name, addresses in jobs.items()}
        self.port = quiet_port()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        need("Prometheus")
        self.folder.mkdir()
        (self.folder / "hpwsn-alerts.yml").write_text((FILES / "hpwsn-alerts.yml").read_text())
        (self.folder / "prometheus.yml").write_text(self._configuration())
        command = [
            "prometheus",
            f"--config.file={self.folder / 'prometheus.yml'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address=127.0.0.1:{self.port}",
        ]
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until(self._is_ready, self.log)
        return self

    def _configuration(self) -> str:
        """The example, with the addresses of a test and a scrape every second."""
        text = (FILES / "prometheus.yml").read_text().replace("_interval: 15s", "_interval: 1s")
        for job, addresses in self.jobs.items():
            pattern = rf"(job_name: {job}\n.*?targets: )\[.*?\]"
            text, count = re.subn(pattern, rf"\g<1>{json.dumps(addresses)}", text, count=1, flags=re.DOTALL)
            assert count == 1, job
        return text

    @property
    def log_file(self) -> Path:
        """What it writes."""
        return self.folder / "log"

    def log(self) -> str:
        """What it has written."""
        return self.log_file.read_text()

    def _is_ready(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/-/ready", timeout=PATIENCE) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def ask(self, path: str, **parameters: str) -> Any:
        """The data of an answer of its API."""
        query = urllib.parse.urlencode(parameters)
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/api/v1/{path}?{query}") as answer:
            found = json.load(answer)
        assert found["status"] == "success", found
        return found["data"]

    def values(self, query: str) -> list[float]:
        """The values of an instant query."""
        return [float(one["value"][1]) for one in self.ask("query", query=query)["result"]]

    def rules(self) -> list[dict[str, Any]]:
        """The rules that it evaluates."""
        return [rule for group in self.ask("rules")["groups"] for rule in group["rules"]]

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(PATIENCE)
