"""When to try a failed delivery again, and when to give up, by what went wrong.

It owns the arithmetic only: the clock, the random number and the failures are arguments. The defaults are
those of the documentation: half a second, doubling to a minute, for a day.
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
    """How many failures there may be; 0 leaves it to the time."""

    def __post_init__(self) -> None:
        """Refuse values with which a retry would never come, or come without a pause."""
        if not 0 < self.first <= self.maximum < math.inf:
            raise ValueError(
                f"retry pauses of {self.first} s growing to {self.maximum} s make no sense;"
                " give 0 < first <= maximum"
            )
        if not self.give_up_after >= 0 or self.attempts < 0:
            raise ValueError(
                f"retry cannot end after {self.give_up_after} s and {self.attempts} attempts; give 0 or more"
            )

    def pause(self, attempt: int, random: float, retry_after: float | None = None) -> float:
        """Seconds to wait after a failure that `attempt` failures came before.

        The pause is 50 % to 100 % of the step as `random` goes from 0 to 1, so that consumers which failed
        together do not come back together. A consumer that asked for a longer one with Retry-After gets
        it, up to `give_up_after`.
        """
        if attempt < 0:
            raise ValueError(f"attempt {attempt} cannot have failed; the first one is 0")
        step = min(self.maximum, self.first * 2.0 ** min(attempt, _MOST_DOUBLINGS))
        pause = step * (0.5 + 0.5 * random)
        if retry_after is None:
            return pause
        return max(pause, min(retry_after, self.give_up_after))

    def exhausted(self, first_failure: float, now: float, attempt: int = 0) -> bool:
        """Whether a delivery that fails since `first_failure`, `attempt` times before, is a dead letter."""
        if self.attempts and attempt + 1 >= self.attempts:
            return True
        return now - first_failure >= self.give_up_after


@dataclass(frozen=True, slots=True)
class RetryPolicies:
    """A policy for each class of error, and one for all others."""

    default: RetryPolicy = RetryPolicy()
    by_kind: Mapping[OutcomeKind, RetryPolicy] = field(default_factory=dict)

    def of(self, kind: OutcomeKind) -> RetryPolicy:
        """The policy for what went wrong."""
        return self.by_kind.get(kind, self.default)


def retry_policies(delivery: DeliverySettings, retry: RetrySettings) -> RetryPolicies:
    """How each kind of trouble is tried again, by the settings; what they leave open is delivery's."""
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
