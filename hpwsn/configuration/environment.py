"""Environment variables: finds the settings among them and rejects unknown `HPWSN_…` variables.

An `HPWSN_…` variable is a setting of a node, a variable of clients, or one that Kubernetes sets in containers
because of a Service whose name begins with `hpwsn`. Any other is an error: with a misspelled variable, a
setting would silently keep its default.
"""

import difflib
import re
from collections.abc import Iterator, Mapping

from hpwsn.errors import ConfigError, Problem
from hpwsn.settings import SETTINGS
from hpwsn_client.environment import VARIABLES

PREFIX = "HPWSN_"
KEYS = {setting.variable: key for key, setting in SETTINGS.items()}
"""The key of the setting for each variable."""

_SERVICE_VARIABLE = re.compile(
    r"HPWSN(_\w+)?_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
_SERVICE_PORT = re.compile(r"HPWSN(_\w+)?_PORT=(tcp|udp|sctp)://.*", re.DOTALL)


def given_settings(environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each variable that is a setting, with the key of the setting.

    HPWSN_ADMIN_PORT=tcp://… is not a setting: Kubernetes sets it for a Service named hpwsn-admin.
    """
    for variable, key in KEYS.items():
        if variable in environ and not _is_service_port(variable, environ[variable]):
            yield variable, key


def unknown_variables(environ: Mapping[str, str]) -> Iterator[Problem]:
    """A problem for each unknown variable with the prefix `HPWSN_`, with the most similar known name."""
    for variable, value in sorted(environ.items()):
        if variable.startswith(PREFIX) and not _is_known(variable, value):
            yield Problem("", "", f"environment {variable}", _remedy(variable))


def check_environment(environ: Mapping[str, str]) -> None:
    """Raise ConfigError for unknown variables; for commands that do not load a configuration."""
    if problems := list(unknown_variables(environ)):
        raise ConfigError(problems)


def _is_known(variable: str, value: str) -> bool:
    if variable in KEYS or variable in VARIABLES or _SERVICE_VARIABLE.fullmatch(variable):
        return True
    return _is_service_port(variable, value)


def _is_service_port(variable: str, value: str) -> bool:
    return _SERVICE_PORT.fullmatch(f"{variable}={value}") is not None


def _remedy(variable: str) -> str:
    name = variable.removeprefix(PREFIX).lower()
    named_so = [setting.variable for setting in SETTINGS.values() if setting.name == name]
    known = {each.removeprefix(PREFIX).lower(): each for each in (*KEYS, *VARIABLES)}
    close = named_so or [known[each] for each in difflib.get_close_matches(name, known, n=1)]
    if close:
        return f"is not a variable of HPwsn; did you mean {close[0]}?"
    return "is not a variable of HPwsn; unset it, or see `hpwsn check-config --reference` for the settings"
