"""A subscription with a lifetime that a thread renews, so that a killed command leaves nothing for ever.

A broker that refuses the lifetime and names its maximum is asked for less. One that refuses lifetimes at all
gets a subscription without one. A subscription that has ended at the broker is made again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from hpwsn_client.commands.broker_command import one_line
from hpwsn_client.commands.completion import print_warning

if TYPE_CHECKING:
    from hpwsn_client.facades.sync import SyncSubscription
    from hpwsn_client.wsn.soap.faults import UnacceptableInitialTerminationTimeFault

SHARE = 3
"""A lease is renewed when one part in this many has passed."""
_PATIENCE = 2.0
"""Seconds that the end waits for a renewal under way."""
_RETRY = 5.0
"""Seconds until the next attempt after a failed renewal, if the lease is not shorter."""


class SubscriptionLease:
    """Holds one subscription from `open` to `close`.

    `subscribe` makes the subscription with a lifetime in seconds, or with None for one without an end.
    """

    def __init__(self, subscribe: Callable[[float | None], SyncSubscription], seconds: float) -> None:
        self._subscribe = subscribe
        self._seconds: float | None = seconds
        self._subscription: SyncSubscription | None = None
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._renew_in_time, name="renewal", daemon=True)
        self._failing = False

    def open(self) -> None:
        """Subscribe, and renew from now on."""
        self._subscription = self._make()
        self._thread.start()

    def _make(self) -> SyncSubscription:
        from hpwsn_client.wsn.soap.faults import UnacceptableInitialTerminationTimeFault

        try:
            return self._subscribe(self._seconds)
        except UnacceptableInitialTerminationTimeFault as fault:
            self._seconds = _less(fault, self._seconds)
            if self._seconds is None:
                print_warning(
                    one_line(f"{fault}; the subscription has no end, and stays if this command is killed")
                )
            return self._subscribe(self._seconds)

    def close(self) -> None:
        """Stop renewing, and unsubscribe."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(_PATIENCE)
        if self._subscription is not None:
            self._subscription.unsubscribe()

    def _renew_in_time(self) -> None:
        while not self._closing.wait(self._pause()):
            self._renew()

    def _pause(self) -> float | None:
        """Seconds until the next renewal; None if the subscription has no end."""
        terminates = None if self._subscription is None else self._subscription.terminates
        if terminates is None or self._seconds is None:
            return None
        # A broker may grant less than requested. Clocks may differ: then the requested lifetime counts.
        left = (terminates - datetime.now(UTC)).total_seconds()
        lifetime = left if 0 < left < self._seconds else self._seconds
        return min(lifetime / SHARE, _RETRY) if self._failing else lifetime / SHARE

    def _renew(self) -> None:
        from hpwsn_client.errors import HpwsnClientError
        from hpwsn_client.wsn.soap.faults import ResourceUnknownFault, SoapFault

        assert self._subscription is not None
        try:
            try:
                self._subscription.renew(self._seconds)
            except ResourceUnknownFault:
                self._subscription = self._make()
                print_warning("the subscription had ended at the broker, and was made again")
        except (HpwsnClientError, SoapFault) as error:
            if not self._failing:
                print_warning(one_line(f"the subscription was not renewed: {error}; retrying"))
            self._failing = True
        else:
            self._failing = False


def _less(fault: UnacceptableInitialTerminationTimeFault, seconds: float | None) -> float | None:
    """The lifetime that the broker would grant; None if it does not say."""
    if fault.maximum_time is None or seconds is None:
        return None
    # Time passes until the next request arrives, which must not be too late again.
    left = 0.9 * (fault.maximum_time - datetime.now(UTC)).total_seconds()
    return left if 0 < left < seconds else None
