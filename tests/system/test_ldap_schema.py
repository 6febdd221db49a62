"""The schema in both of its forms, as OpenLDAP's own tools take them, and the server for developers."""

import subprocess
from pathlib import Path

import pytest

from hpwsn.topics.ldap.entries.ldif import encode_ldif
from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic
from tests.harness import ROOT
from tests.patience import PATIENCE
from tests.slapd import BASE, Slapd, topic

SCHEMA = ROOT / "ldap_schema"
CONFIG = """\
dn: cn=config
objectClass: olcGlobal
cn: config

dn: cn=module,cn=config
objectClass: olcModuleList
cn: module
olcModulePath: /usr/lib/ldap
olcModuleLoad: back_mdb

dn: cn=schema,cn=config
objectClass: olcSchemaConfig
cn: schema

{core}

{ours}

dn: olcDatabase=mdb,cn=config
objectClass: olcDatabaseConfig
objectClass: olcMdbConfig
olcDatabase: mdb
olcSuffix: dc=hpwsn
olcDbDirectory: {folder}/db
"""


def tool(name: str, *arguments: str | Path) -> str:
    ended = subprocess.run(
        [f"/usr/sbin/{name}", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def fill(form: str, place: Path) -> str:
    """Load the example tree with slapadd, and what slapcat then finds."""
    for file in ("base.ldif", "example.ldif"):
        tool("slapadd", form, place, "-b", "dc=hpwsn", "-l", SCHEMA / file)
    return tool("slapcat", form, place, "-b", "dc=hpwsn")


def test_slapd_conf_includes_the_schema(tmp_path: Path) -> None:
    (tmp_path / "db").mkdir()
    conf = tmp_path / "slapd.conf"
    conf.write_text(
        "include /etc/ldap/schema/core.schema\n"
        f"include {SCHEMA / 'hpwsn.schema'}\ninclude {SCHEMA / 'hpwsn-visibility.schema'}\n"
        "modulepath /usr/lib/ldap\nmoduleload back_mdb\n"
        f"database mdb\nsuffix dc=hpwsn\ndirectory {tmp_path / 'db'}\n"
    )
    assert fill("-f", conf).count("objectClass: hpwsnTopic") == 6


def test_a_server_with_the_older_schema_takes_the_visibility(tmp_path: Path) -> None:
    """The schema of topics has no word of visibility, as before; the addition is loaded beside it."""
    assert "isibility" not in (SCHEMA / "hpwsn.ldif").read_text()
    config = configured(tmp_path)
    before = fill("-F", config)
    tool("slapadd", "-n", "0", "-F", config, "-l", SCHEMA / "hpwsn-visibility.ldif")
    assert tool("slapcat", "-F", config, "-b", "dc=hpwsn") == before
    marked = tmp_path / "marked.ldif"
    marked.write_text(encode_ldif([Declaration(Topic.parse("Plates"), visibility="internal")]))
    tool("slapadd", "-F", config, "-b", "dc=hpwsn", "-l", marked)
    assert "hpwsnVisibility: internal" in tool("slapcat", "-F", config, "-b", "dc=hpwsn")


def test_a_server_takes_sensors_beside_topics(tmp_path: Path) -> None:
    config = configured(tmp_path)
    tool("slapadd", "-n", "0", "-F", config, "-l", SCHEMA / "hpwsn-sensors.ldif")
    fill("-F", config)
    added = tmp_path / "sensor.ldif"
    added.write_text(
        "dn: hpwsnSensorId=s1,ou=sensors,dc=hpwsn\nobjectClass: hpwsnSensor\nhpwsnSensorId: s1\n"
        "hpwsnSensorKind: weather\nhpwsnSensorQuantity: t; degC\nhpwsnSensorOnDemand: TRUE\n"
    )
    tool("slapadd", "-F", config, "-b", "dc=hpwsn", "-l", added)
    assert "hpwsnSensorQuantity: t; degC" in tool("slapcat", "-F", config, "-b", "dc=hpwsn")


def test_cn_config_takes_the_ldif(tmp_path: Path) -> None:
    assert fill("-F", configured(tmp_path)).count("objectClass: hpwsnTopic") == 6


def configured(folder: Path) -> Path:
    """A configuration in the form of cn=config with the schema of topics, and an empty database."""
    for name in ("db", "config"):
        (folder / name).mkdir()
    core = Path("/etc/ldap/schema/core.ldif").read_text()
    ours = (SCHEMA / "hpwsn.ldif").read_text()
    (folder / "config.ldif").write_text(CONFIG.format(core=core, ours=ours, folder=folder))
    tool("slapadd", "-n", "0", "-F", folder / "config", "-l", folder / "config.ldif")
    return folder / "config"


@pytest.mark.parametrize("stem", ["hpwsn", "hpwsn-visibility", "hpwsn-sensors"])
def test_both_forms_define_the_same(stem: str) -> None:
    def words(text: str) -> list[str]:
        lines = (
            line for line in text.splitlines() if not line.startswith(("#", "dn:", "cn:", "objectClass:"))
        )
        text = " ".join(lines)
        for theirs, ours in (
            ("olcObjectIdentifier:", "objectidentifier"),
            ("olcAttributeTypes:", "attributetype"),
            ("olcObjectClasses:", "objectclass"),
        ):
            text = text.replace(theirs, ours)
        return text.split()

    forms = [words((SCHEMA / name).read_text()) for name in (f"{stem}.schema", f"{stem}.ldif")]
    assert forms[0] == forms[1]


@pytest.mark.parametrize(
    "attributes",
    [{"hpwsnCode": "many"}, {"unknown": "x"}, {"hpwsnNamespace": "urn:x\nhpwsnNamespace: urn:y"}],
)
def test_the_server_refuses_what_the_schema_does_not_allow(slapd: Slapd, attributes: dict[str, str]) -> None:
    with pytest.raises(AssertionError):
        slapd.add(topic("BAD", "ALL", **attributes))
    assert not [each for each in slapd.directory.load() if "BAD" in str(each.topic)]


def test_the_server_keeps_its_entries_over_a_kill_and_a_start(slapd: Slapd) -> None:
    slapd.add(topic("KEPT", "ALL"))
    slapd.kill()
    slapd.start()
    assert f"cn=KEPT,cn=ALL,{BASE}" in [each.path for each in slapd.directory.load()]
    assert len(slapd.directory.load()) == 7


def test_the_starter_explains_itself_and_refuses_what_it_does_not_know() -> None:
    script = ROOT / "scripts" / "slapd"
    ended = subprocess.run([script, "--help"], capture_output=True, text=True)
    assert ended.returncode == 0
    assert "ready ldap://HOST:PORT/ou=topics,dc=hpwsn" in ended.stdout
    for words in (["--colour"], ["--port"], ["--port", "many"]):
        ended = subprocess.run([script, *words], capture_output=True, text=True)
        assert ended.returncode == 1
        assert ended.stderr.startswith("slapd: ")
