"""Plug-ins for the outcome of deliveries: functions in the entry point group `hpwsn.delivery_outcome`.

The plug-ins run in one thread of their own, in the order of the outcomes, so a slow plug-in delays no
delivery. The queue before the thread is bounded: beyond its limit the newest outcomes are not reported, and
counted. A plug-in that raises is logged and gets the next outcome all the same.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Mapping
from importlib.metadata import entry_points

from hpwsn.broker.outcomes.outcome import DeliveryOutcome
from hpwsn.errors import HpwsnError

log = logging.getLogger(__name__)

GROUP = "hpwsn.delivery_outcome"
"""The group of entry points; each names a function of one DeliveryOutcome."""
STOP_WAIT = 5.0
"""Seconds that a closing node waits for plug-ins to take the outcomes that are still queued."""

Plugin = Callable[[DeliveryOutcome], object]


def installed_plugins() -> dict[str, Plugin]:
    """Load the plug-ins of all installed distributions, by name; HpwsnError if one cannot be loaded."""
    found: dict[str, Plugin] = {}
    for point in entry_points(group=GROUP):
        try:
            plugin = point.load()
        except Exception as error:
            raise HpwsnError(
                f"the plug-in {point.name} = {point.value} of {GROUP} cannot be loaded: {error!r};"
                " repair or uninstall its package"
            ) from error
        if not callable(plugin):
            raise HpwsnError(
                f"the plug-in {point.name} = {point.value} of {GROUP} is not a function; name one that takes"
                " a DeliveryOutcome"
            )
        found[point.name] = plugin
    return found


class OutcomePlugins:
    """Hands outcomes to plug-ins in a thread, from `start` to `close`."""

    def __init__(self, plugins: Mapping[str, Plugin], limit: int) -> None:
        self._plugins = plugins
        self._queue: queue.Queue[DeliveryOutcome | None] = queue.Queue(limit)
        self._thread = threading.Thread(target=self._run, name="delivery outcomes", daemon=True)
        self.reported = 0
        """Outcomes that all plug-ins have taken, or failed to take."""
        self.skipped = 0
        """Outcomes that were not reported, because the queue was full."""
        self.failures = 0
        """Calls of a plug-in that raised."""

    def start(self) -> None:
        """Start the thread."""
        log.info("delivery outcomes go to %s", ", ".join(self._plugins))
        self._thread.start()

    def note(self, outcome: DeliveryOutcome) -> None:
        """Queue an outcome; called by the event loop, never waits."""
        try:
            self._queue.put_nowait(outcome)
        except queue.Full:
            if not self.skipped:
                log.warning("the plug-ins for delivery outcomes are too slow; outcomes are skipped")
            self.skipped += 1

    def _run(self) -> None:
        while (outcome := self._queue.get()) is not None:
            for name, plugin in self._plugins.items():
                try:
                    plugin(outcome)
                except Exception:
                    self.failures += 1
                    log.exception("the plug-in %s for delivery outcomes failed", name)
            self.reported += 1

    def close(self) -> None:
        """Wait for the queued outcomes, up to STOP_WAIT seconds; blocks."""
        try:
            self._queue.put(None, timeout=STOP_WAIT)
        except queue.Full:
            log.warning("the plug-ins for delivery outcomes do not end; %d are lost", self._queue.qsize())
            return
        self._thread.join(STOP_WAIT)

    def figures(self) -> dict[str, int]:
        """The counters in /status."""
        return {
            "plugins": len(self._plugins),
            "reported": self.reported,
            "skipped": self.skipped,
            "failures": self.failures,
            "queued": self._queue.qsize(),
        }
