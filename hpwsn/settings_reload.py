"""The settings after SIGHUP: those that a running process can change are applied, the others are named.

Only the log can change. All other settings shape parts that are built at the start; a changed one is logged,
so that an operator sees that it needs a restart. Settings that are not valid change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from hpwsn.errors import HpwsnError
from hpwsn.logs import set_up_logging
from hpwsn.settings import SETTINGS, Config

log = logging.getLogger(__name__)

RELOADED = ("log.level", "log.format")
"""The settings that take effect without a restart."""

Reread = Callable[[], Config]
"""Loads the settings again, from the sources of the start; HpwsnError if they are not valid."""


class SettingsReload:
    """Compares the settings of a running process with what their sources say now."""

    def __init__(self, config: Config, reread: Reread) -> None:
        self._in_force = config
        self._log = config.log
        self._reread = reread

    def reload(self) -> None:
        """Read the settings again, apply what can be applied, and name what cannot."""
        try:
            found = self._reread()
        except HpwsnError as error:
            log.error("the settings were not reloaded: %s", error)
            return
        if found.log != self._log:
            self._log = found.log
            set_up_logging(found.log)
            log.info("the log has level %s and format %s now", found.log.level, found.log.format)
        if needs_restart := self._changed(found):
            log.warning("these settings have changed, and need a restart: %s", ", ".join(needs_restart))

    def _changed(self, found: Config) -> list[str]:
        keys = (key for key in SETTINGS if key not in RELOADED)
        return [key for key in keys if _value(found, key) != _value(self._in_force, key)]


def _value(config: Config, key: str) -> object:
    section, _, name = key.partition(".")
    return getattr(getattr(config, section), name)
