"""What the scripts say where a machine lacks something: Python, root, apt, a writable checkout, Linux.

Commands of the machine (`uname`, `id`, `sudo`, `apt-get`, interpreters) are replaced by small programs on
PATH, since a test cannot take them away; the scripts themselves are the real ones.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = ROOT / "scripts" / "lib" / "environment.sh"


class Machine:
    """A machine whose commands are those of this one, but for the ones that a test replaces."""

    def __init__(self, folder: Path, others: Path) -> None:
        self.folder = folder
        self.others = others
        self.home = folder / "home"
        self.home.mkdir(parents=True)

    def command(self, name: str, script: str) -> Path:
        """Replace one command by a script for the shell."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def python(self, version: str, *, venv: bool = True, name: str = "", gil: bool = True) -> Path:
        """An interpreter that says it has this version, and whether it can make virtual environments."""
        major, minor = version.split(".")
        script = f"""
case "$3" in
    *ensurepip*) exit {0 if venv else 1} ;;
    *GIL_DISABLED*) exit {1 if gil else 0} ;;
    *argv*) case " $4 " in *" {major}.{minor} "*) ;; *) exit 1 ;; esac
            [ -z "$5" ] || [ "$5" = {version} ] ;;
    *) echo {version} ;;
esac"""
        return self.command(name or f"python{version}", script)

    def shell(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a script after the library of the scripts."""
        return self.run("bash", "-c", f'source "{ENVIRONMENT}"\n{script}', **variables)

    def run(self, *command: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a command with the replaced ones first on PATH."""
        kept = {
            name: value for name, value in os.environ.items() if name not in ("CI", "PYTHON", "PYENV_ROOT")
        }
        path = f"{self.folder}:{self.others}"
        return subprocess.run(
            command,
            env=kept | {"PATH": path, "HOME": str(self.home)} | variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the commands of this machine, but without a Python."""
    folder = tmp_path_factory.mktemp("commands")
    for command in [*Path("/bin").iterdir(), *Path("/usr/bin").iterdir()]:
        if not command.name.startswith("python") and not (folder / command.name).is_symlink():
            (folder / command.name).symlink_to(command)
    return folder


@pytest.fixture
def machine(tmp_path: Path, others: Path) -> Machine:
    return Machine(tmp_path / "machine", others)


@pytest.fixture
def ordinary_user(machine: Machine) -> Machine:
    """A machine on which this is not root, and sudo refuses."""
    machine.command("id", "echo 1000")
    machine.command("sudo", "echo 'sorry' >&2; exit 1")
    machine.command("apt-get", "echo 'apt-get was called' >&2; exit 100")
    return machine


class TestTheChoiceOfPython:
    def test_takes_the_newest_supported_one_on_path(self, machine: Machine) -> None:
        for version in ("3.11", "3.13", "3.10", "3.99"):
            machine.python(version)
        assert machine.shell("newest_python").stdout == f"{machine.folder}/python3.13\n"

    def test_takes_python3_where_only_that_name_exists(self, machine: Machine) -> None:
        python = machine.python("3.14", name="python3")
        assert machine.shell("newest_python").stdout.splitlines() == [str(python)]

    def test_prefers_one_that_can_make_environments_now(self, machine: Machine) -> None:
        machine.python("3.14", venv=False)
        python = machine.python("3.13")
        assert machine.shell("newest_python").stdout.splitlines() == [str(python)]

    def test_passes_over_a_free_threaded_build(self, machine: Machine) -> None:
        machine.python("3.14", gil=False)
        python = machine.python("3.13")
        assert machine.shell("newest_python").stdout.splitlines() == [str(python)]

    def test_passes_over_a_command_that_does_not_run(self, machine: Machine) -> None:
        machine.command("python3.14", "exit 127")
        python = machine.python("3.13")
        assert machine.shell("newest_python").stdout.splitlines() == [str(python)]

    def test_obeys_the_variable(self, machine: Machine) -> None:
        machine.python("3.13")
        machine.python("3.12")
        assert machine.shell('choose_python; echo "$CHOSEN"', PYTHON="python3.12").stdout == "python3.12\n"

    def test_takes_a_bare_version_in_the_variable(self, machine: Machine) -> None:
        python = machine.python("3.12")
        assert machine.shell('choose_python; echo "$CHOSEN"', PYTHON="3.12").stdout == f"{python}\n"

    def test_finds_what_pyenv_keeps_off_path(self, machine: Machine) -> None:
        folder = machine.home / ".pyenv" / "versions" / "3.12.9" / "bin"
        folder.mkdir(parents=True)
        machine.python("3.12").rename(folder / "python")
        chosen = machine.shell('choose_python; echo "$CHOSEN"', PYTHON="python3.12").stdout
        assert chosen == f"{folder}/python\n"

    @pytest.mark.parametrize("name", ["3.10", "python3.10", "/nowhere/python", "3.99"])
    def test_refuses_one_that_is_not_supported(self, machine: Machine, name: str) -> None:
        machine.python("3.10")
        refused = machine.shell("choose_python; echo no", PYTHON=name)
        assert (refused.returncode, refused.stdout) == (1, "")
        assert f"PYTHON={name} is not a supported Python; name one of 3.14 3.13 3.12 3.11" in refused.stderr


class TestMissingPackages:
    WANTS = "require one two -- false\nwant three -- false\nwant four -- true\n"

    def test_go_to_apt_in_one_call(self, machine: Machine, tmp_path: Path) -> None:
        machine.command("id", "echo 0")
        machine.command("apt-get", f'echo "$@" >>"{tmp_path}/calls"')
        done = machine.shell(self.WANTS + "install_missing")
        assert done.returncode == 0, done.stderr
        calls = (tmp_path / "calls").read_text().splitlines()
        assert [call.split()[-1] for call in calls] == ["update", "two"]
        assert calls[1].endswith("install --no-install-recommends one three two")
        assert all("DPkg::Lock::Timeout=" in call for call in calls)

    def test_are_one_line_for_root_where_sudo_refuses(self, ordinary_user: Machine) -> None:
        refused = ordinary_user.shell(self.WANTS + "install_missing; echo no")
        assert (refused.returncode, refused.stdout) == (1, "")
        lines = refused.stderr.splitlines()
        assert [line for line in lines if "apt-get install one three two" in line] == [lines[0]]
        assert "cannot go on without one two" in lines[1]

    def test_are_told_again_when_apt_fails(self, machine: Machine) -> None:
        machine.command("id", "echo 0")
        machine.command("apt-get", "echo 'no such package' >&2; exit 100")
        refused = machine.shell(self.WANTS + "install_missing")
        assert refused.returncode == 1
        assert "no such package" in refused.stderr
        assert "as root try: apt-get install one two three" in refused.stderr

    def test_that_exist_are_installed_where_another_does_not(self, machine: Machine) -> None:
        machine.command("id", "echo 0")
        machine.command("apt-get", 'case "$*" in *three*) exit 100 ;; esac')
        done = machine.shell(self.WANTS + "install_missing; echo on")
        assert done.stdout == "on\n", done.stderr
        assert "as root try: apt-get install three" in done.stderr
        assert "going on without three" in done.stderr

    def test_that_are_only_wanted_do_not_end_the_script(self, ordinary_user: Machine) -> None:
        done = ordinary_user.shell("want three -- false\ninstall_missing; echo on")
        assert done.stdout == "on\n"
        assert "going on without three; tests that need them are skipped" in done.stderr

    def test_that_are_only_wanted_end_it_in_ci(self, ordinary_user: Machine) -> None:
        refused = ordinary_user.shell("want three -- false\ninstall_missing; echo no", CI="true")
        assert (refused.returncode, refused.stdout) == (1, "")

    def test_of_a_system_without_apt_are_named(self, machine: Machine, tmp_path: Path) -> None:
        few = tmp_path / "few"
        few.mkdir()
        for name in ("bash", "uname", "dirname", "basename", "sort", "id"):
            (few / name).symlink_to(shutil.which(name) or name)
        refused = machine.shell(self.WANTS + f"PATH={few}\ninstall_missing; echo no")
        assert (refused.returncode, refused.stdout) == (1, "")
        assert "needs what Debian calls one three two" in refused.stderr

    def test_are_found_by_the_thing_itself(self, machine: Machine) -> None:
        machine.command("java", "echo 'openjdk version \"11.0.2\" 2019-01-15' >&2")
        old = machine.shell("want default-jre-headless -- has_java\necho ${WANTED[@]}").stdout
        machine.command("java", "echo 'openjdk version \"21.0.2\" 2024-01-15' >&2")
        new = machine.shell("want default-jre-headless -- has_java\necho ${WANTED[@]}").stdout
        assert (old, new) == ("default-jre-headless\n", "\n")


class TestAStranger:
    def test_on_another_system_is_told_at_once(self, machine: Machine) -> None:
        machine.command("uname", "echo Darwin")
        for script in ("run", "test", "check"):
            refused = machine.run(ROOT / "scripts" / script)
            assert refused.returncode == 1
            assert refused.stderr.startswith(f"{script}: HPwsn needs Linux, and this is Darwin.")

    def test_without_a_python_is_told_what_to_install(self, ordinary_user: Machine, tmp_path: Path) -> None:
        shutil.copytree(ROOT / "scripts", tmp_path / "clone" / "scripts")
        ordinary_user.command("apt-cache", "case $2 in python3.13-venv) echo 'Candidate: 3.13.5' ;; esac")
        refused = ordinary_user.run(tmp_path / "clone" / "scripts" / "run")
        assert refused.returncode == 1
        assert (
            "run: needs root once: apt-get install python3.13 python3.13-venv" in refused.stderr.splitlines()
        )

    def test_with_a_read_only_checkout_is_told_in_one_line(self, machine: Machine, tmp_path: Path) -> None:
        clone = tmp_path / "clone"
        shutil.copytree(ROOT / "scripts", clone / "scripts")
        mounted = f'mount --bind "{clone}" "{clone}" && mount -o remount,bind,ro "{clone}"'
        private = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
        if subprocess.run([*private, mounted], check=False, capture_output=True).returncode:
            pytest.skip("needs root or user namespaces, for a read-only mount")
        refused = machine.run(*private, f'{mounted} && "{clone}/scripts/run"')
        assert refused.returncode == 1
        [line] = refused.stderr.splitlines()
        assert line.startswith(f"run: the checkout {clone} is read-only, and .venv goes there")

    def test_whose_install_fails_is_not_led_on_by_a_caller_that_tests_the_result(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        steps = "require_python() { :; }\ninstall_missing() { :; }\nfill_venv() { fail broken; }\n"
        done = machine.shell(
            f'set -e\nVENV="{tmp_path}/venv"\n{steps}if (environment; echo on); then echo passed; fi'
        )
        assert (done.stdout, done.stderr) == ("", "bash: broken\n")

    def test_whose_pip_installs_for_the_user_still_fills_the_environment(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        (tmp_path / "venv" / "bin").mkdir(parents=True)
        machine.command("python", 'echo "$PIP_USER"').rename(tmp_path / "venv" / "bin" / "python")
        assert machine.shell(f'VENV="{tmp_path}/venv"\npip install', PIP_USER="1").stdout == "0\n"

    def test_with_settings_for_another_python_is_not_led_astray(self, machine: Machine) -> None:
        shown = machine.shell(
            "env | grep -E '^(PYTHONHOME|PYTHONPATH|PIP_USER|PYTHONOPTIMIZE)=' || echo none",
            PYTHONHOME="/nowhere",
            PYTHONPATH="/nowhere",
            PIP_USER="1",
            PYTHONOPTIMIZE="2",
        )
        assert shown.stdout == "none\n"

    def test_sees_what_an_installer_printed_only_when_it_failed(
        self, machine: Machine, tmp_path: Path
    ) -> None:
        log = f'SETUP_LOG="{tmp_path}/setup.log"\n'
        good = machine.shell(log + "step 'doing it' echo noise")
        bad = machine.shell(log + "step 'doing it' sh -c 'echo the reason; exit 3'")
        assert (good.stderr, good.returncode) == ("bash: doing it\n", 0)
        assert bad.returncode == 1
        assert bad.stderr.splitlines()[:2] == ["bash: doing it", "the reason"]
        assert "noise" in (tmp_path / "setup.log").read_text()
