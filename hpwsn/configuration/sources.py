"""Loads the configuration of a node: defaults < file < environment < flags.

This module reads the settings file and takes the environment as an argument; no other module of the node
reads them. All problems are reported together. Each problem names the setting, its value, the source of the
value and the remedy.
"""

import difflib
import re
import stat
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from hpwsn.backbone.backbone_settings import check_backbone
from hpwsn.configuration.environment import given_settings, unknown_variables
from hpwsn.errors import ConfigError, Problem
from hpwsn.settings import SETTINGS, Config, Setting, sections
from hpwsn.settings.topic_table import EntryErrors

DEFAULT_FILE = Path("hpwsn.toml")
FLAGS = MappingProxyType(
    {
        "server.host": "--host",
        "server.port": "--port",
        "data.dir": "--data",
        "node.name": "--name",
        "node.cluster": "--cluster",
        "cluster.admin": "--admin",
        "backbone.url": "--backbone",
        "topics.url": "--topics",
    }
)
ADMIN_FLAGS = MappingProxyType(
    {"admin.host": "--host", "admin.port": "--port", "admin.dir": "--data", "topics.url": "--topics"}
)
_SECTION_LINE = re.compile(r"\s*\[\s*([\w.-]+)\s*\]")
_KEY_LINE = re.compile(r"""\s*(?:([\w.-]+)|"([^"]+)"|'([^']+)')\s*=""")
_SYNTAX_LINE = re.compile(r"\(at line (\d+)")
_PASSWORD = re.compile(r"(://[^:/@\s]*):[^/\s]*@")


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value from the file, the environment or a flag, with its source; `key` may be unknown.

    `entries` are the sources of the entries of a table, by their keys, where they have a line of their own.
    """

    key: str
    value: object
    source: str
    entries: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LoadedConfig:
    """The configuration, the source of every setting that is not a default, and the file read."""

    config: Config
    sources: Mapping[str, str]
    file: Path | None

    def source(self, key: str) -> str:
        """The source of the value of a setting."""
        return self.sources.get(key, "default")


def load_config(
    file: Path | None = None,
    environ: Mapping[str, str] = MappingProxyType({}),
    flags: Mapping[str, str] = MappingProxyType({}),
    assignments: Sequence[str] = (),
) -> LoadedConfig:
    """The configuration from all sources; `flags` are texts by key, `assignments` are `section.key=value`."""
    problems: list[Problem] = list(unknown_variables(environ))
    given = [
        *_from_file(file, problems),
        *(
            GivenValue(key, environ[variable], f"environment {variable}")
            for variable, key in given_settings(environ)
        ),
        *(GivenValue(key, value, f"flag {_flag(key)}") for key, value in flags.items()),
        *_from_assignments(assignments, problems),
    ]
    values = _check_values(given, problems)
    sources = {one.key: one.source for one in given if one.key in values}
    config = build_config(values)
    problems.extend(_check_combinations(config, sources))
    if problems:
        raise ConfigError(problems)
    return LoadedConfig(config, MappingProxyType(sources), file)


def _flag(key: str) -> str:
    return FLAGS.get(key) or ADMIN_FLAGS.get(key) or "--set"


def default_file(directory: Path) -> Path | None:
    """The hpwsn.toml of a directory; None only if it certainly does not exist."""
    file = directory / DEFAULT_FILE
    try:
        return file if stat.S_ISREG(file.stat().st_mode) else None
    except FileNotFoundError:
        return None
    except OSError:
        return file  # reading it then fails with the reason


def build_config(values: Mapping[str, object]) -> Config:
    """A configuration with these checked values, and defaults for the rest."""
    parts: dict[str, dict[str, object]] = {section: {} for section in sections()}
    for key, value in values.items():
        parts[SETTINGS[key].section][SETTINGS[key].name] = value
    return Config(**{name: owner(**parts[name]) for name, owner in sections().items()})


def value_of(config: Config, setting: Setting) -> object:
    """The value of one setting in a configuration."""
    return getattr(getattr(config, setting.section), setting.name)


def mask_secrets(setting: Setting, value: object) -> object:
    """The value for printing, with secrets and passwords in URLs replaced by `***`."""
    if not isinstance(value, str) or not value:
        return value
    return "***" if setting.secret else _PASSWORD.sub(r"\1:***@", value)


def display_value(setting: Setting, value: object) -> str:
    """A checked value in TOML, with secrets masked."""
    return setting.kind.format(mask_secrets(setting, value))


def _from_file(file: Path | None, problems: list[Problem]) -> Iterator[GivenValue]:
    if file is None:
        return
    try:
        text = file.read_text("utf-8")
        document = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "is not UTF-8"
        problems.append(
            Problem("", "", str(file), f"cannot be read: {reason}; choose another file with --config")
        )
    except tomllib.TOMLDecodeError as error:
        line = _SYNTAX_LINE.search(str(error))
        source = f"{file}:{line[1]}" if line else str(file)
        problems.append(Problem("", "", source, f"is not TOML: {error}"))
    else:
        sources = {key: f"{file}:{line}" for key, line in _find_lines(text).items()}
        for key, value in _flatten(document):
            names = value if isinstance(value, dict) else ()
            entries = {name: sources[f"{key}.{name}"] for name in names if f"{key}.{name}" in sources}
            yield GivenValue(key, value, sources.get(key, str(file)), entries)


def _flatten(document: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for section, content in document.items():
        if isinstance(content, dict):
            yield from ((f"{section}.{name}", value) for name, value in content.items())
        else:
            yield section, content


def _find_lines(text: str) -> dict[str, int]:
    """The line of each table and of each key of the form `key = value`; other forms are not found."""
    lines: dict[str, int] = {}
    prefix = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := _SECTION_LINE.match(line):
            prefix = header[1] + "."
            lines.setdefault(header[1], number)
        elif key := _KEY_LINE.match(line):
            lines.setdefault(prefix + "".join(filter(None, key.groups())), number)
    return lines


def _from_assignments(assignments: Iterable[str], problems: list[Problem]) -> Iterator[GivenValue]:
    for text in assignments:
        key, equals, value = text.partition("=")
        if equals:
            yield GivenValue(key.strip(), value.strip(), "flag --set")
        else:
            problems.append(
                Problem("", text, "flag --set", "must be section.key=value, such as log.level=debug")
            )


def _check_values(given: Iterable[GivenValue], problems: list[Problem]) -> dict[str, object]:
    """The checked values by key; later ones override earlier ones, but all are checked."""
    values: dict[str, object] = {}
    for one in given:
        setting = SETTINGS.get(one.key)
        if setting is None:
            problems.append(Problem(one.key, "", one.source, _unknown(one.key)))
            continue
        try:
            values[one.key] = setting.kind.parse(one.value)
        except EntryErrors as error:
            for name, value, remedy in error.entries:
                source = one.entries.get(name, one.source)
                problems.append(Problem(f"{one.key}.{name}", repr(value), source, remedy))
        except ValueError as error:
            problems.append(
                Problem(one.key, repr(mask_secrets(setting, one.value)), one.source, f"must be {error}")
            )
    return values


def _unknown(key: str) -> str:
    section, _, name = key.partition(".")
    same_name = [known for known in SETTINGS if known.endswith(f".{name or section}")]
    close = same_name[:1] or difflib.get_close_matches(key, SETTINGS, n=1)
    if close:
        return f"is not a setting; did you mean {close[0]}?"
    if section in sections():
        names = ", ".join(setting.name for setting in SETTINGS.values() if setting.section == section)
        return f"is not a setting; [{section}] has {names}"
    return f"is not a setting; the sections are {', '.join(sections())}"


def _check_combinations(config: Config, sources: Mapping[str, str]) -> Iterator[Problem]:
    """The problems of settings that are valid alone but contradict each other."""

    def problem(key: str, remedy: str) -> Problem:
        setting = SETTINGS[key]
        return Problem(
            key, display_value(setting, value_of(config, setting)), sources.get(key, "default"), remedy
        )

    delivery, cluster = config.delivery, config.cluster
    if delivery.retry_max < delivery.retry_first:
        yield problem(
            "delivery.retry_max", "is below delivery.retry_first; raise it, or lower delivery.retry_first"
        )
    if cluster.admin and not (cluster.secret or cluster.secret_file):
        yield problem(
            "cluster.admin",
            "requires the cluster's secret, the same on all nodes and the admin node; set"
            " cluster.secret_file to its file, or set HPWSN_CLUSTER_SECRET",
        )
    if cluster.admin and config.routing.reassembly_bytes < 2 * config.server.body_limit:
        yield problem(
            "routing.reassembly_bytes",
            "is less than twice server.body_limit, so that another node could not reassemble the largest"
            " notification; raise it, or lower server.body_limit",
        )
    try:
        config.routing.original_addresses()
    except ValueError:
        yield problem("routing.originals", "must be a list of host:port, such as 10.0.0.7:5000")
    for key in ("server.tls_key", "server.tls_client_ca"):
        if value_of(config, SETTINGS[key]) and not config.server.tls_certificate:
            yield problem(key, "requires server.tls_certificate; set both, or neither")
    for key, remedy in check_backbone(config.backbone):
        yield problem(key, remedy)
    if cluster.secret and cluster.secret_file:
        yield problem("cluster.secret_file", "is set together with cluster.secret; keep one of them")
