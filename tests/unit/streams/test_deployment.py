"""The archive for workers, and the settings that a Spark master requires."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from hpwsn.commands.main import main
from hpwsn.errors import HpwsnError
from hpwsn.streams.deployment.cluster_settings import (
    UNKNOWN_CLUSTER_PARTITIONS,
    is_loopback_master,
    master_settings,
    missing_python,
    shuffle_partitions,
    unreachable_node,
)
from hpwsn.streams.deployment.local_python import local_python, write_launcher
from hpwsn.streams.deployment.packed_files import Packed, find_files
from hpwsn.streams.deployment.worker_archive import (
    FOLDER,
    check_archive,
    python_version,
    read_manifest,
    write_archive,
)
from hpwsn_client import __version__

LOST = (
    'Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 0): java.io.IOException: Cannot run program "{}"'
)


@pytest.fixture(scope="module")
def packed() -> Packed:
    return find_files()


def test_workers_get_hpwsn_and_its_libraries_but_neither_spark_nor_tests(packed: Packed) -> None:
    for name in ("hpwsn/streams/spark/source.py", "hpwsn_client/__init__.py", "pyarrow/__init__.py"):
        assert packed.files[name].is_file()
    assert {"pyarrow", "lxml", "numpy", "protobuf", "lark"} <= set(packed.packages)
    tops = {name.partition("/")[0] for name in packed.files}
    assert not {"pyspark", "py4j", "pandas", "aiohttp", "spyne"} & tops
    assert not [name for name in packed.files if "/tests/" in name or name.startswith("..")]


def test_modules_of_the_user_are_packed_by_name_by_path_and_with_what_they_require(tmp_path: Path) -> None:
    (tmp_path / "rules.py").write_text("LIMIT = 3\n")
    (tmp_path / "shapes" / "round").mkdir(parents=True)
    (tmp_path / "shapes" / "round" / "circle.py").write_text("")
    found = find_files([str(tmp_path / "rules.py"), str(tmp_path / "shapes"), "pandas", "pyspark", "hpwsn"])
    assert {"rules.py", "shapes/round/circle.py", "pandas/__init__.py"} <= set(found.files)
    assert {"pandas", "python-dateutil"} <= set(found.packages)
    assert "pyspark/__init__.py" not in found.files
    for missing in ("no_such_module", "./no/such/file.py"):
        with pytest.raises(HpwsnError, match="there is no such"):
            find_files([missing])


def few_files(folder: Path) -> Packed:
    (folder / "rules.py").write_text("LIMIT = 3\n")
    return Packed({"rules.py": folder / "rules.py"}, {"lxml": "6.1"})


def test_an_archive_has_its_manifest_first_and_no_owners(tmp_path: Path) -> None:
    out, steps = tmp_path / "environment.tar.gz", list[int]()
    written = write_archive(out, few_files(tmp_path), steps.append)
    assert steps == [len("LIMIT = 3\n")]
    assert read_manifest(out) == check_archive(out) == written
    assert (written.python, written.hpwsn) == (python_version(), __version__)
    with tarfile.open(out) as archive:
        assert archive.getnames() == ["hpwsn-environment.json", "rules.py"]
        assert {(one.uid, one.uname, one.mode) for one in archive.getmembers()} == {(0, "", 0o644)}


def test_an_unpacked_archive_is_all_that_a_plain_python_needs(tmp_path: Path, packed: Packed) -> None:
    write_archive(tmp_path / "e.tgz", packed)
    with tarfile.open(tmp_path / "e.tgz") as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    code = "import hpwsn.streams.definition.schema, hpwsn_client, pyarrow.compute as c; print(c.__file__)"
    python = Path(sys.base_prefix) / "bin" / f"python{python_version()}"
    done = subprocess.run(
        [python, "-s", "-c", code],
        env={"PYTHONPATH": str(tmp_path / "unpacked")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(str(tmp_path / "unpacked"))


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"python": "3.5"}, r"is for Python 3\.5, but this job runs on Python"),
        ({"hpwsn": "0.0.1"}, r"has HPwsn 0\.0\.1, but this is"),
        ({"colour": "red"}, "is not an archive of `hpwsn streams pack`"),
    ],
)
def test_an_archive_of_another_python_or_version_is_refused(
    tmp_path: Path, changed: dict[str, str], words: str
) -> None:
    out = tmp_path / "environment.tar.gz"
    write_archive(out, few_files(tmp_path))
    with tarfile.open(out) as archive:
        archive.extractall(tmp_path, filter="data")
    file = tmp_path / "hpwsn-environment.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | changed))
    with tarfile.open(out, "w:gz") as archive:
        archive.add(file, file.name)
    with pytest.raises(HpwsnError, match=words):
        check_archive(out)


def test_what_is_not_an_archive_is_said(tmp_path: Path) -> None:
    (tmp_path / "text.tar.gz").write_text("not an archive")
    with tarfile.open(tmp_path / "other.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "text.tar.gz", "text")
    for name in ("text.tar.gz", "other.tar.gz"):
        with pytest.raises(HpwsnError, match="is not an archive of `hpwsn streams pack`"):
            read_manifest(tmp_path / name)
    with pytest.raises(HpwsnError, match="cannot be read: No such file"):
        read_manifest(tmp_path / "missing.tar.gz")
    with pytest.raises(HpwsnError, match=r"ends in \.tar\.gz"):
        write_archive(tmp_path / "environment.zip", few_files(tmp_path))
    with pytest.raises(HpwsnError, match="cannot be written: No such file"):
        write_archive(tmp_path / "missing" / "environment.tar.gz", few_files(tmp_path))


def test_the_command_does_not_replace_an_archive_without_being_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "environment.tar.gz"
    out.write_text("mine")
    assert main(["streams", "pack", "--out", str(out)]) == 1
    assert "exists; replace it with --force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main(["streams", "pack", "--out", str(out), "--force"]) == 0
    said = capsys.readouterr().out
    assert f"hpwsn {__version__}" in said
    assert f"MiB for Python {python_version()}" in said


@pytest.mark.parametrize(
    ("master", "conf", "partitions"),
    [
        ("local", {}, 1),
        ("local[2]", {}, 1),
        ("local[6,4]", {}, 3),
        ("spark://h:7077", {"spark.cores.max": "6"}, 12),
        ("yarn", {"spark.executor.instances": "4", "spark.executor.cores": "2"}, 16),
        ("k8s://https://h", {"spark.executor.instances": "3"}, 6),
        ("spark://h:7077", {}, UNKNOWN_CLUSTER_PARTITIONS),
    ],
)
def test_shuffles_have_as_many_partitions_as_the_cores_need(
    master: str, conf: dict[str, str], partitions: int
) -> None:
    assert shuffle_partitions(master, conf) == partitions


def test_settings_of_the_user_win_and_keep_their_archives_and_paths() -> None:
    given = {
        "spark.sql.shuffle.partitions": "5",
        "spark.archives": "a.zip#a",
        "spark.executorEnv.PYTHONPATH": "/mine",
        "spark.driver.host": "localhost",
    }
    found = master_settings("spark://127.0.0.1:7077", given, Path("/e.tar.gz"))
    assert found == {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.archives": f"a.zip#a,/e.tar.gz#{FOLDER}",
        "spark.executorEnv.PYTHONPATH": f"./{FOLDER}:/mine",
    }
    assert master_settings("yarn", {}) == {"spark.sql.shuffle.partitions": "16"}
    on_yarn = master_settings("yarn", {}, Path("/e.tar.gz"))
    assert on_yarn["spark.yarn.dist.archives"] == f"/e.tar.gz#{FOLDER}"
    assert "spark.archives" not in on_yarn


@pytest.mark.parametrize(
    ("master", "loopback"),
    [
        ("local[*]", True),
        ("spark://localhost:7077", True),
        ("spark://127.0.0.1:7077,[::1]:7078", True),
        ("spark://127.0.0.1:7077,h:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_a_node_on_the_loopback_address_is_reached_only_from_the_same_machine(
    master: str, loopback: bool
) -> None:
    assert is_loopback_master(master) is loopback
    assert bool(unreachable_node(master, "http://localhost:8080/wsn")) is not loopback
    assert not unreachable_node(master, "http://broker.example.org:8080/wsn")


def test_a_worker_without_the_python_of_the_job_is_named() -> None:
    assert missing_python(LOST.format("python3.14")).startswith(
        "the Spark worker 10.0.0.7 cannot run python3.14;"
    )
    here = missing_python('java.io.IOException: Cannot run program "python3.14": error=2')
    assert here.startswith("this machine cannot run python3.14;")
    assert not missing_python("ValueError: 3")


def test_a_local_spark_imports_pyspark_from_its_folder_and_not_from_the_zip(tmp_path: Path) -> None:
    (tmp_path / "pyspark.zip").write_text("")
    path = f"{tmp_path}/pyspark.zip:{tmp_path}/py4j-0.10-src.zip:/some/spark-core.jar:/mine"
    code = "import os, pyspark; print(os.environ['PYTHONPATH'], pyspark.__file__)"
    done = subprocess.run(
        [local_python(), "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    found, file = done.stdout.split()
    assert found == "/some/spark-core.jar:/mine"
    assert Path(file).is_file()


def test_a_launcher_keeps_arguments_and_a_path_without_zips(tmp_path: Path) -> None:
    odd = tmp_path / "a 'b' ü"
    odd.mkdir()
    launcher = write_launcher(odd / "python", sys.executable)
    code = "import os, sys; print(os.environ['PYTHONPATH'], sys.argv[1:])"
    done = subprocess.run(
        [launcher, "-c", code, "x y", "$z"],
        env={"PYTHONPATH": "/a:/b"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "/a:/b ['x y', '$z']\n"
