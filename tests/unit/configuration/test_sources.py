"""Loading the configuration: which source wins, and what a person is told when something is wrong."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from hpwsn.configuration.sources import default_file, load_config
from hpwsn.errors import ConfigError, Problem
from hpwsn.settings import SETTINGS, Config, ServerSettings


def write(folder: Path, text: str) -> Path:
    file = folder / "hpwsn.toml"
    file.write_text(text, "utf-8")
    return file


def problems(*arguments: object, **named: object) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        load_config(*arguments, **named)  # type: ignore[arg-type]
    return caught.value.problems


def test_without_any_source_everything_is_its_default() -> None:
    loaded = load_config()
    assert loaded.config == Config()
    assert loaded.source("server.port") == "default"


def test_the_defaults_are_values_that_their_own_checks_accept() -> None:
    for setting in SETTINGS.values():
        assert setting.kind.parse(setting.default) == setting.default, setting.key
        assert type(setting.kind.parse(setting.default)) is type(setting.default), setting.key


def test_every_setting_has_help_and_an_environment_variable_of_its_own() -> None:
    assert all(setting.about.endswith(".") for setting in SETTINGS.values())
    assert len({setting.variable for setting in SETTINGS.values()}) == len(SETTINGS)


def test_a_later_source_wins_over_an_earlier_one(tmp_path: Path) -> None:
    file = write(tmp_path, "[server]\nport = 1\nhost = 'a'\nconnections = 7\nbody_limit = '1 MiB'\n")
    environ = {"HPWSN_SERVER_PORT": "2", "HPWSN_SERVER_HOST": "b", "HPWSN_SERVER_BODY_LIMIT": "2 MiB"}
    flags = {"server.port": "3", "server.host": "c"}
    loaded = load_config(file, environ, flags, ["server.port=4"])
    server = loaded.config.server
    assert (server.port, server.host, server.body_limit, server.connections) == (4, "c", 2 * 1024**2, 7)
    assert [loaded.source(f"server.{name}") for name in ("port", "host", "body_limit", "connections")] == [
        "flag --set",
        "flag --host",
        "environment HPWSN_SERVER_BODY_LIMIT",
        f"{file}:4",
    ]


def test_sections_with_an_underscore_are_reached_from_the_environment() -> None:
    config = load_config(environ={"HPWSN_PULL_POINTS_MAX_MESSAGES": "5"}).config
    assert config.pull_points.max_messages == 5


def test_the_clusters_secret_comes_from_the_variable_of_the_architecture() -> None:
    config = load_config(environ={"HPWSN_CLUSTER_SECRET": "hush"}).config
    assert config.cluster.secret == "hush"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HPWSN_URL", "http://h/wsn"),
        ("HPWSN_CA", "ca.pem"),
        ("HPWSN_TOKEN", "secret"),
        ("HPWSN_SERVICE_HOST", "10.0.0.1"),
        ("HPWSN_ADMIN_PORT", "tcp://10.0.0.1:8070"),
        ("HPWSN_SERVER_PORT", "tcp://10.0.0.1:8080"),
        ("HPWSN_SERVICE_PORT_HTTP", "8080"),
        ("HPWSN_PORT", "tcp://10.0.0.1:8080"),
        ("HPWSN_PORT_8080_TCP", "tcp://10.0.0.1:8080"),
        ("HPWSN_NODE_1_PORT_8080_TCP_ADDR", "10.0.0.1"),
        ("PORT", "9000"),
        ("HPWSNX", "1"),
    ],
)
def test_variables_of_clients_and_of_kubernetes_are_left_alone(variable: str, value: str) -> None:
    assert load_config(environ={variable: value}).config == Config()


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("HPWSN_SERVER_PRT", "did you mean HPWSN_SERVER_PORT?"),
        ("HPWSN_PORT", "did you mean HPWSN_SERVER_PORT?"),
        ("HPWSN_DURABILITY", "did you mean HPWSN_JOURNAL_DURABILITY?"),
        ("HPWSN_LOGLEVEL", "did you mean HPWSN_LOG_LEVEL?"),
        ("HPWSN_ULR", "did you mean HPWSN_URL?"),
        ("HPWSN_TOKN", "did you mean HPWSN_TOKEN?"),
        ("HPWSN_CLUSTER_SECRETS", "did you mean HPWSN_CLUSTER_SECRET?"),
        ("HPWSN_XYZZY", "unset it, or see `hpwsn check-config --reference` for the settings"),
        ("HPWSN_", "unset it, or see `hpwsn check-config --reference` for the settings"),
    ],
)
def test_any_other_variable_of_our_prefix_is_a_problem_with_the_one_that_is_meant(
    variable: str, meant: str
) -> None:
    (problem,) = problems(environ={variable: "9000"})
    assert str(problem) == f"environment {variable} is not a variable of HPwsn; {meant}"


def test_unknown_variables_are_told_beside_all_other_problems() -> None:
    found = problems(environ={"HPWSN_ULR": "x", "HPWSN_SERVER_PORT": "web"}, assignments=["log.level=loud"])
    assert [one.source for one in found] == [
        "environment HPWSN_ULR",
        "environment HPWSN_SERVER_PORT",
        "flag --set",
    ]


def test_all_problems_of_all_sources_are_told_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, "[server]\nport = 99999\nhst = 'x'\n[log]\n\nlevel = 'loud'\n")
    found = problems(
        file, {"HPWSN_DELIVERY_BATCH": "many"}, {"server.port": "web"}, ["journal.durability=maybe"]
    )
    assert [(one.key, one.value, one.source) for one in found] == [
        ("server.port", "99999", f"{file}:2"),
        ("server.hst", "", f"{file}:3"),
        ("log.level", "'loud'", f"{file}:6"),
        ("delivery.batch", "'many'", "environment HPWSN_DELIVERY_BATCH"),
        ("server.port", "'web'", "flag --port"),
        ("journal.durability", "'maybe'", "flag --set"),
    ]


@pytest.mark.parametrize(
    ("assignment", "remedy"),
    [
        ("server.port=-1", "must be a whole number from 0 to 65535"),
        ("log.level=loud", "must be debug, info, warning or error"),
        ("topics.simple_subtree=perhaps", "must be true or false"),
        ("backbone.url=http://h", "must be a stomp:// URL, or empty for embedded"),
        ("data.dir=", "must be a directory"),
        ("server.prot=1", "is not a setting; did you mean server.port?"),
        ("servr.port=1", "is not a setting; did you mean server.port?"),
        ("durability=none", "is not a setting; did you mean journal.durability?"),
        ("node.zzzzzzzz=1", "is not a setting; [node] has name, cluster"),
        ("server.port", "must be section.key=value, such as log.level=debug"),
    ],
)
def test_each_problem_tells_the_remedy(assignment: str, remedy: str) -> None:
    (problem,) = problems(assignments=[assignment])
    assert problem.remedy == remedy


def test_an_unknown_section_without_a_likeness_is_answered_with_the_sections() -> None:
    (problem,) = problems(assignments=["zzz.qqq=1"])
    assert "the sections are server, node, data" in problem.remedy


def test_a_key_outside_a_section_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems(write(tmp_path, "port = 1\n"))
    assert (problem.key, problem.remedy) == ("port", "is not a setting; did you mean server.port?")


def test_a_file_that_is_not_toml_is_told_with_its_line(tmp_path: Path) -> None:
    file = write(tmp_path, "[server]\nport = \n")
    (problem,) = problems(file)
    assert problem.source == f"{file}:2"
    assert "is not TOML" in str(problem)


def test_a_file_that_is_missing_or_not_text_is_told_by_its_name(tmp_path: Path) -> None:
    missing, binary = tmp_path / "none.toml", tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    assert str(problems(missing)[0]).startswith(f"{missing} cannot be read: No such file")
    assert str(problems(binary)[0]).startswith(f"{binary} cannot be read: is not UTF-8")


@pytest.mark.parametrize(
    ("assignments", "key"),
    [
        (["delivery.retry_first=10", "delivery.retry_max=5"], "delivery.retry_max"),
        (
            ["cluster.admin=http://a:1", "cluster.secret=x", "routing.reassembly_bytes=20MiB"],
            "routing.reassembly_bytes",
        ),
        (["routing.originals=10.0.0.7"], "routing.originals"),
        (["routing.originals=a:5000, b:0"], "routing.originals"),
        (["routing.originals=a:65536"], "routing.originals"),
        (["cluster.secret=a", "cluster.secret_file=b"], "cluster.secret_file"),
        (["cluster.admin=http://a:8070"], "cluster.admin"),
        (["backbone.url=stomp://a:x"], "backbone.url"),
        (["backbone.url=stomp://a,,b"], "backbone.url"),
        (["backbone.url=stomp://a", "backbone.password=p"], "backbone.url"),
        (["backbone.url=stomp://u:p@a", "backbone.password_file=f"], "backbone.url"),
        (
            ["backbone.url=stomp://u@a", "backbone.password=p", "backbone.password_file=f"],
            "backbone.password_file",
        ),
        (["backbone.peers=A"], "backbone.peers"),
        (["backbone.url=stomp://a", "backbone.peers=A,B C"], "backbone.peers"),
    ],
)
def test_settings_that_contradict_each_other_are_a_problem(assignments: list[str], key: str) -> None:
    (problem,) = problems(assignments=assignments)
    assert (problem.key, problem.source) == (key, "flag --set")


def test_passwords_and_secrets_are_never_told() -> None:
    found = problems(
        environ={"HPWSN_CLUSTER_SECRET": "hush\n", "HPWSN_BACKBONE_URL": "http://user:hush@host"},
    )
    assert len(found) == 2
    assert "hush" not in "".join(map(str, found))


def test_the_file_of_a_directory_is_found_only_where_it_is(tmp_path: Path) -> None:
    assert default_file(tmp_path) is None
    file = write(tmp_path, "")
    assert default_file(tmp_path) == file


def test_a_default_file_that_cannot_be_looked_at_is_told_in_one_line(tmp_path: Path) -> None:
    file = tmp_path / "hpwsn.toml"
    file.symlink_to(file)
    with pytest.raises(ConfigError, match="cannot be read: Too many levels of symbolic links"):
        load_config(default_file(tmp_path), {})


def test_a_configuration_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Config().server.port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("server", "url"),
    [
        (ServerSettings(), "http://127.0.0.1:81"),
        (ServerSettings(host="::1"), "http://[::1]:81"),
        (ServerSettings(host="0.0.0.0"), "http://box:81"),
        (ServerSettings(host="::", public_url="https://broker.example.org/"), "https://broker.example.org"),
    ],
)
def test_addresses_handed_out_are_ones_that_others_can_reach(server: ServerSettings, url: str) -> None:
    assert server.base_url(81, "box") == url
