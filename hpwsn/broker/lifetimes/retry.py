"""Retry policies: when to retry a failed delivery, and when to give up, for each class of error.

Pure arithmetic: the clock, the random number and the failures are arguments. By default the pause starts at
half a second, doubles up to a minute, and retries end after a day.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from hpwsn.broker.push.request import OutcomeKind
from hpwsn.settings import DeliverySettings, RetrySettings

_MOST_DOUBLINGS = 64


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Pauses that double from `first` to `maximum`, for `give_up_after` seconds and `attempts` in all."""

    first: float = 0.5
    maximum: float = 60.0
    give_up_after: float = 86400.0
    attempts: int = 0
    """The maximum number of attempts; 0 means no limit but `give_up_after`."""

    def __post_init__(self) -> None:
        """Refuse values that would prevent retries, or retry without a pause."""
        if not 0 < self.first <= self.maximum < math.inf:
            raise ValueError(
                f"retry pauses from {self.first} s to {self.maximum} s are not valid;"
                " give 0 < first <= maximum"
            )
        if not self.give_up_after >= 0 or self.attempts < 0:
            raise ValueError(
                f"retry cannot end after {self.give_up_after} s and {self.attempts} attempts; give 0 or more"
            )

    def pause(self, attempt: int, random: float, retry_after: float | None = None) -> float:
        """Seconds to wait after failure number `attempt`, counted from 0.

        The jitter `random` from 0 to 1 gives 50 % to 100 % of the step, so that consumers that failed
        together are not retried together. A longer Retry-After of the consumer is respected, up to
        `give_up_after`.
        """
        if attempt < 0:
            raise ValueError(f"attempt {attempt} is not valid; attempts count from 0")
        step = min(self.maximum, self.first * 2.0 ** min(attempt, _MOST_DOUBLINGS))
        pause = step * (0.5 + 0.5 * random)
        if retry_after is None:
            return pause
        return max(pause, min(retry_after, self.give_up_after))

    def exhausted(self, first_failure: float, now: float, attempt: int = 0) -> bool:
        """Whether to give up a delivery that first failed at `first_failure` and `attempt` times before."""
        if self.attempts and attempt + 1 >= self.attempts:
            return True
        return now - first_failure >= self.give_up_after


@dataclass(frozen=True, slots=True)
class RetryPolicies:
    """A policy for each class of error, and a default."""

    default: RetryPolicy = RetryPolicy()
    by_kind: Mapping[OutcomeKind, RetryPolicy] = field(default_factory=dict)

    def of(self, kind: OutcomeKind) -> RetryPolicy:
        """The policy for a class of error."""
        return self.by_kind.get(kind, self.default)


def retry_policies(delivery: DeliverySettings, retry: RetrySettings) -> RetryPolicies:
    """The retry policies of the settings; unset values of `retry` are taken from `delivery`."""
    classes = {
        OutcomeKind.REFUSED: (retry.refused_first, retry.refused_max, retry.refused_attempts),
        OutcomeKind.LOST: (retry.refused_first, retry.refused_max, retry.refused_attempts),
        OutcomeKind.TIMEOUT: (retry.timeout_first, retry.timeout_max, retry.timeout_attempts),
        OutcomeKind.CLIENT_ERROR: (
            retry.client_error_first,
            retry.client_error_max,
            retry.client_error_attempts,
        ),
        OutcomeKind.SERVER_ERROR: (
            retry.server_error_first,
            retry.server_error_max,
            retry.server_error_attempts,
        ),
    }
    return RetryPolicies(
        RetryPolicy(delivery.retry_first, delivery.retry_max, delivery.retry_for),
        {
            kind: RetryPolicy(
                first or delivery.retry_first,
                max(longest or delivery.retry_max, first or delivery.retry_first),
                delivery.retry_for,
                attempts,
            )
            for kind, (first, longest, attempts) in classes.items()
        },
    )
