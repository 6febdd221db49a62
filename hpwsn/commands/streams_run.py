"""`hpwsn streams run` and `history`: run services, and run them on past events.

Only the commands that need PySpark import it. If PySpark or Java is missing, the error says what to install.
"""

import argparse
import importlib.util
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hpwsn.commands.operations.operator_api import add_command, base_url, table
from hpwsn.errors import BadArguments, HpwsnError
from hpwsn.streams.deployment.cluster_settings import is_local, is_loopback_master, unreachable_node
from hpwsn.streams.deployment.local_python import NO_LOOKUP, local_python
from hpwsn.streams.deployment.worker_archive import check_archive, python_version
from hpwsn_client.commands.completion import print_warning
from hpwsn_client.environment import DEFAULT_URL, TOKEN, URL, bearer_token

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from hpwsn.streams.definition.definition import Definition
    from hpwsn.streams.definition.schema import Schema
    from hpwsn.streams.operators.sql import Tables

_RUN = """\
  hpwsn streams run traffic.toml
  hpwsn streams run flow.toml busiest.toml --checkpoint /var/lib/hpwsn-streams --history /data/history
  hpwsn streams run traffic.toml --master spark://spark.example.org:7077 --archive environment.tar.gz \\
      --url http://broker.example.org:8080/wsn --checkpoint /shared/checkpoints
  hpwsn streams run traffic.toml --once
"""
_HISTORY = """\
  hpwsn streams history busiest.toml --history /data/history
  hpwsn streams history flow.toml --input anpr=/data/anpr.csv --json
  hpwsn streams history flow.toml --input anpr=/data/anpr --to /data/flow
"""
SPARK_MISSING = (
    "Spark is not installed; in the checkout, pip install ./client '.[spark]'; "
    "it also requires Java 17 or later (Debian: default-jre-headless)"
)
MAX_PRINTED = 1000
UI_PORT = 4040


def add_run_parsers(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the actions `run` and `history` to the command `streams`."""
    run = add_command(actions, "run", "run services on Spark, until SIGTERM or Ctrl-C", _RUN)
    _add_files(run)
    _add_spark(run)
    run.add_argument(
        "--archive",
        type=Path,
        metavar="FILE",
        help="with --master of a cluster: the environment of its workers, made by `streams pack`",
    )
    run.add_argument("--url", help="the node's address, as in its `ready` line")
    run.add_argument(
        "--checkpoint",
        default="hpwsn-checkpoints",
        metavar="DIR",
        help="folder of Spark's checkpoints, from which a run continues (default: ./hpwsn-checkpoints)",
    )
    run.add_argument(
        "--start", default="oldest", help="start of the first run: oldest (default), now, or an offset"
    )
    run.add_argument("--once", action="store_true", help="process the events that exist now, and end")
    run.add_argument("--trigger", default="", metavar="TIME", help='time between batches, such as "1 second"')
    run.add_argument("--history", default="", metavar="DIR", help="write published events there, as Parquet")
    run.add_argument(
        "--backbone", default="", metavar="URL", help="publish through ActiveMQ: stomp://user:pw@host:61613"
    )
    run.add_argument("--node", default="", metavar="NAME", help="with --backbone: the name of the node")
    run.add_argument(
        "--registration",
        default="",
        metavar="ID",
        help="id or address of the publisher's registration, if the node requires one",
    )
    run.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help=f"file with the token to read internal topics, such as DATA/job.token (default: ${TOKEN})",
    )
    run.add_argument("--every", type=float, default=5.0, metavar="S", help="seconds between progress lines")
    run.add_argument(
        "--rows",
        type=int,
        default=50_000,
        metavar="N",
        help="maximum rows per input and batch (default: 50000)",
    )
    run.add_argument(
        "--ui",
        nargs="?",
        type=int,
        const=UI_PORT,
        metavar="PORT",
        help=f"open Spark's own page, at loopback (default: the first free port from {UI_PORT})",
    )
    run.set_defaults(handler=_run, action="run")
    past = add_command(actions, "history", "run services on past events", _HISTORY, asks_node=False)
    _add_files(past)
    _add_spark(past)
    past.add_argument("--history", default="", metavar="DIR", help="folder of `run --history`")
    past.add_argument(
        "--input",
        dest="inputs",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="past events of an input: Parquet, CSV or JSON lines; may be repeated",
    )
    past.add_argument("--to", default="", metavar="DIR", help="write Parquet there instead of printing")
    past.add_argument("--json", action="store_true", help="print all events as JSON, one per line")
    past.set_defaults(handler=_history, action="history")


def _add_files(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="definitions, in TOML or Python")


def _add_spark(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--master", default="local[2]", help="Spark master (default: local[2])")
    parser.add_argument("--packages", default="", help="Spark packages, such as the one for Kafka")
    parser.add_argument("--jars", default="", metavar="FILES", help="jars for Spark, separated by commas")
    parser.add_argument(
        "--conf",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="a Spark setting; may be repeated",
    )


def _definitions(arguments: argparse.Namespace, streams: bool) -> "list[Definition]":
    """The services of the files; modules of user-defined functions are imported from the same folders.

    Only queries in SQL need Spark here. Its session then is the one that the services run in.
    """
    from hpwsn.streams.definition_files import load

    def analyse(query: str, tables: "Tables") -> "Schema":
        session = _session(arguments)
        from hpwsn.streams.spark.sql_analysis import QueryAnalysis

        return QueryAnalysis(lambda: session, streams)(query, tables)

    sys.path[:0] = list(dict.fromkeys(str(file.resolve().parent) for file in arguments.files))
    return load(*arguments.files, analyse=analyse)


def _session(arguments: argparse.Namespace) -> "SparkSession":
    """The Spark session of the command; the same one for every call."""
    conf = {**_ui_settings(getattr(arguments, "ui", None)), **_settings(arguments)}
    archive = getattr(arguments, "archive", None)
    require_spark(arguments.master, archive)
    from hpwsn.streams.spark.session import open_session

    name = f"hpwsn streams {arguments.action}"
    checkpoint = getattr(arguments, "checkpoint", "")
    return open_session(name, arguments.master, conf, arguments.packages, archive, checkpoint)


def require_spark(master: str, archive: Path | None = None) -> None:
    """Raise HpwsnError if PySpark or Java is missing; prepare the environment for a session."""
    if any(importlib.util.find_spec(name) is None for name in ("pyspark", "pyarrow")):
        raise HpwsnError(SPARK_MISSING)
    if not os.environ.get("JAVA_HOME") and shutil.which("java") is None:
        raise HpwsnError(
            "Java is not installed, and Spark requires it; install Java 17 (Debian: default-jre-headless)"
        )
    if "PYSPARK_PYTHON" not in os.environ:
        os.environ["PYSPARK_PYTHON"] = local_python() if is_local(master) else _worker_python(archive)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", NO_LOOKUP)
    if is_loopback_master(master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    if sys.flags.utf8_mode:
        # In the C locale Python uses UTF-8 for file names, but Java cannot open names with other characters
        # than ASCII.
        os.environ["LC_ALL"] = "C.UTF-8"


def _worker_python(archive: Path | None) -> str:
    """The Python of a cluster's workers: without an archive this path, at which they must have HPwsn.

    With an archive it is a name that each worker looks up in its own PATH. The driver starts Python by the
    same name, and must find this one.
    """
    if archive is None:
        return sys.executable
    here, name = Path(sys.executable).parent, f"python{python_version()}"
    if not (here / name).exists():
        raise HpwsnError(f"{here} has no {name}, which --archive requires; run hpwsn from a venv")
    os.environ["PATH"] = os.pathsep.join((str(here), os.environ.get("PATH", os.defpath)))
    return name


def _settings(arguments: argparse.Namespace) -> dict[str, str]:
    """The Spark settings of `--conf` and `--jars`."""
    for one in arguments.conf:
        if "=" not in one:
            raise BadArguments(f"--conf {one}: write a Spark setting as KEY=VALUE")
    for file in arguments.jars.split(",") if arguments.jars else ():
        if "://" not in file and not Path(file).is_file():
            raise BadArguments(f"--jars {file}: there is no such file")
    given = {"spark.jars": arguments.jars} if arguments.jars else {}
    return given | dict(one.split("=", 1) for one in arguments.conf)


def _ui_settings(port: int | None) -> dict[str, str]:
    return (
        {}
        if port is None
        else {
            "spark.ui.enabled": "true",
            "spark.sql.streaming.ui.enabled": "true",
            "spark.ui.port": str(port),
        }
    )


def _check_ui(arguments: argparse.Namespace) -> None:
    if arguments.ui is not None and not 0 <= arguments.ui < 65536:
        raise BadArguments(f"--ui {arguments.ui}: give a port from 0 to 65535")
    local = arguments.master.startswith("local") or os.environ.get("SPARK_LOCAL_IP")
    if arguments.ui is not None and not local:
        raise BadArguments(
            f"--ui: with --master {arguments.master} Spark's page would listen on all addresses, without a"
            " password; set SPARK_LOCAL_IP to the address that it is to listen on"
        )


def _check_archive(arguments: argparse.Namespace) -> None:
    if arguments.archive is None:
        return
    if is_local(arguments.master):
        raise BadArguments("--archive is for the workers of a cluster; give its --master, or no --archive")
    check_archive(arguments.archive)


def _take_token(file: Path | None) -> None:
    """Put the token of a file into the environment, where Spark and its workers on this machine find it.

    An argument or a Spark setting would show it in the list of processes.
    """
    if file is not None:
        try:
            os.environ[TOKEN] = file.read_text("ascii").strip()
        except UnicodeError:
            raise BadArguments(f"--token-file {file}: the file has no token") from None
        except OSError as error:
            raise BadArguments(f"--token-file {file}: {error.strerror}") from None
        if not os.environ[TOKEN]:
            raise BadArguments(f"--token-file {file}: the file is empty")
    try:
        bearer_token()
    except ValueError as error:
        raise BadArguments(str(error) if file is None else f"--token-file {file}: it has no token") from None


def _run(arguments: argparse.Namespace) -> int:
    _take_token(arguments.token_file)
    definitions = _definitions(arguments, streams=True)
    url = arguments.url or os.environ.get(URL) or DEFAULT_URL
    base_url(url)
    if bool(arguments.backbone) != bool(arguments.node):
        raise BadArguments("--backbone and --node require each other; give both, or neither")
    if not (arguments.start in ("oldest", "now") or arguments.start.isdecimal()):
        raise BadArguments(f"--start {arguments.start}: give oldest, now, or an offset")
    _settings(arguments)
    _check_ui(arguments)
    _check_archive(arguments)
    require_spark(arguments.master, arguments.archive)
    if problem := unreachable_node(arguments.master, url):
        print_warning(problem)
    from hpwsn.streams.spark.job import Job, Options

    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: stopping.append(number))
    print("starting Spark", flush=True)
    spark = _session(arguments)
    if spark.sparkContext.uiWebUrl:
        print(f"Spark's page: {spark.sparkContext.uiWebUrl}", flush=True)
    options = Options(
        url=url,
        checkpoint=arguments.checkpoint,
        start=arguments.start,
        once=arguments.once,
        trigger=arguments.trigger,
        history=arguments.history,
        backbone=arguments.backbone,
        node=arguments.node,
        registration=arguments.registration,
        every=arguments.every,
        rows=max(1, arguments.rows),
    )
    job = Job(spark, definitions, options, report=lambda line: print(line, flush=True))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: job.stop())
    try:
        if not stopping:
            job.run()
    finally:
        spark.stop()
    print("stopped", flush=True)
    return 0


def _history(arguments: argparse.Namespace) -> int:
    definitions = _definitions(arguments, streams=False)
    inputs = dict(one.split("=", 1) for one in arguments.inputs if "=" in one)
    if len(inputs) != len(arguments.inputs):
        raise BadArguments("--input: write NAME=PATH, each name once")
    if len(definitions) != 1 and (arguments.to or inputs):
        raise BadArguments("--to and --input work with one service only; give one definition")
    _settings(arguments)
    require_spark(arguments.master)
    from hpwsn.streams.spark.history import json_lines, query_history

    spark = _session(arguments)
    try:
        for definition in definitions:
            frame = query_history(spark, definition, arguments.history, inputs)
            if arguments.to:
                frame.write.mode("errorifexists").parquet(arguments.to)
            elif arguments.json:
                for line in json_lines(frame):
                    print(line)
            else:
                rows = [json.loads(line) for line in json_lines(frame.limit(MAX_PRINTED))]
                print(table(rows, frame.columns, "no events"))
    finally:
        spark.stop()
    return 0
