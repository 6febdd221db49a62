"""The options of commands that load a configuration, and loading it from these options."""

import argparse
import os
import signal
from collections.abc import Mapping
from pathlib import Path

from hpwsn.configuration.sources import LoadedConfig, default_file, display_value, load_config, value_of
from hpwsn.errors import ConfigError, Problem, SettingError
from hpwsn.settings import SETTINGS

_METAVARS = {
    "data.dir": "DIR",
    "admin.dir": "DIR",
    "cluster.admin": "URL",
    "backbone.url": "URL",
    "topics.url": "URL",
}


def add_config_options(parser: argparse.ArgumentParser, flags: Mapping[str, str]) -> None:
    """Add `--config`, the flags of some settings, and `--set` for all others."""
    parser.set_defaults(loads_config=True)
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings file (default: ./hpwsn.toml, if any)"
    )
    for key, flag in flags.items():
        setting = SETTINGS[key]
        default = f" (default: {setting.default})" if setting.default != "" else ""
        metavar = _METAVARS.get(key, flag.strip("-").upper())
        parser.add_argument(flag, dest=key, metavar=metavar, help=setting.about.rstrip(".") + default)
    parser.add_argument(
        "--set",
        dest="assignments",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="any other setting; may be repeated (see `hpwsn check-config --reference`)",
    )


def ignore_hangup() -> None:
    """Ignore SIGHUP until the process handles it: a reload must not end a node that is starting."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def load_config_from(arguments: argparse.Namespace, flags: Mapping[str, str]) -> LoadedConfig:
    """Load the configuration from the options, the environment and the file."""
    given = {key: value for key in flags if (value := getattr(arguments, key)) is not None}
    file = arguments.config or default_file(Path())
    return load_config(file, os.environ, given, arguments.assignments)


def load_startable_config(arguments: argparse.Namespace, flags: Mapping[str, str]) -> LoadedConfig:
    """Load the configuration and check that a node can start with it on this machine, else ConfigError."""
    loaded = load_config_from(arguments, flags)
    from hpwsn.node.preflight import unusable_settings

    if found := unusable_settings(loaded.config):
        raise ConfigError([setting_problem(error, loaded) for error in found])
    return loaded


def setting_problem(error: SettingError, loaded: LoadedConfig) -> Problem:
    """The problem of a SettingError, with the source of the value."""
    setting = SETTINGS[error.key]
    return Problem(
        error.key,
        display_value(setting, value_of(loaded.config, setting)),
        loaded.source(error.key),
        error.reason,
    )
