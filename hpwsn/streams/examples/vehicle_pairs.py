"""The function of companionVehicles.toml, an operator as users write their own."""

from datetime import datetime, timedelta
from typing import Any


def pair(event: dict[str, Any], seconds: float) -> dict[str, Any] | None:
    """A pair of vehicles if a camera read both within some seconds; None for other events.

    The event joins two records of a camera. A join gives a pair in both orders, and a record with itself;
    only the order in which `vid` is the smaller plate is kept. The time is that of the later record.
    """
    first, second = event["vid"], event["anpr_vid"]
    times: list[datetime] = [event["time"], event["anpr_time"]]
    if first is None or second is None or first >= second:
        return None
    if max(times) - min(times) > timedelta(seconds=seconds):
        return None
    return {"vid": first, "companion": second, "cid": event["cid"], "time": max(times)}
