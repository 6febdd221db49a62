"""What a termination time that somebody asks for comes to, or the standard's fault for it.

None is for ever, or as long as the node grants; a past, zero or negative time, one beyond what is granted and
one outside of the calendar are the Unacceptable fault of the operation. WS-BaseNotification 1.3, sections 4.2
and 6.1.
"""

from __future__ import annotations

from datetime import UTC, datetime

from hpwsn_client.wsn import faults
from hpwsn_client.wsn.times import Duration, Termination

TimeFault = type[faults.UnacceptableInitialTerminationTimeFault | faults.UnacceptableTerminationTimeFault]


def end_of(
    termination: Termination, now: float, fault: TimeFault, longest: float, setting: str
) -> float | None:
    """The end in seconds since the epoch, None for never; `setting` names the one for the longest."""
    maximum = datetime.fromtimestamp(now + longest, UTC) if longest else None
    if termination is None:
        return None if maximum is None else now + longest
    moment = _moment(termination, now, fault)
    if moment <= datetime.fromtimestamp(now, UTC):
        raise fault(f"the time asked for, {moment.isoformat()}, is not in the future", maximum_time=maximum)
    if maximum is not None and moment > maximum:
        raise fault(
            f"the time asked for, {moment.isoformat()}, is later than this node grants"
            f" ({setting} is {longest:g} s)",
            maximum_time=maximum,
        )
    return moment.timestamp()


def _moment(termination: datetime | Duration, now: float, fault: TimeFault) -> datetime:
    if isinstance(termination, datetime):
        return termination
    try:
        return termination.after(datetime.fromtimestamp(now, UTC))
    except ValueError as error:
        raise fault(f"the duration asked for leads outside of the calendar: {error}") from error
