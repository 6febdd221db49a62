"""Readings for tests of the history, a log that has them, and a history over both."""

from hpwsn.sensors.history.history_query import Row
from hpwsn.sensors.history.reading_history import ReadingHistory
from hpwsn.sensors.readings.reading import Reading

DAY = 86_400_000
NOON = 20_000 * DAY + DAY // 2


class Log:
    """The log of a node: rows by offset, of which a look sees at most so many offsets."""

    def __init__(self, look=1000):
        self.rows = {}
        self.head = 0
        self.look = look
        self.looks = 0

    def add(self, items):
        """Append items, or None for what is nothing to keep; the offset of the first."""
        first = self.head + 1
        for item in items:
            self.head += 1
            if item is not None:
                self.rows[self.head] = row(self.head, item)
        return first

    async def read(self, begin):
        self.looks += 1
        end = min(self.head + 1, max(begin, 1) + self.look)
        return end, [self.rows[offset] for offset in range(begin, end) if offset in self.rows]


class Run:
    """What the history asks of a run that is not a result."""

    topic = None
    target = None

    def __init__(self, size):
        self.size = size


def row(offset, item):
    return Row(item.time, offset, item)


def reading(n=0, sensor="s1", kind="weather", time=None, place=(10.0, 50.0), **values):
    return Reading(sensor, kind, NOON + n if time is None else time, values or {"t": float(n)}, *place)


def history_of(folder, log, **settings):
    """A history that was not opened."""
    settings = {"age": 365 * 86400.0, "size": 1 << 40, "clock": lambda: NOON / 1000} | settings
    return ReadingHistory(folder, read_log=log.read, head=lambda: log.head, **settings)


def commit(history, log, items):
    """Append readings to the log, and tell the history as commits do."""
    first = log.add(items)
    history.committed(first, [Run(len(items))])
    history.record(
        first + len(items), [(first + n, item) for n, item in enumerate(items) if item is not None]
    )


async def every_row(history, query, limit=1000, latest=False):
    """All rows of a query, page by page, from the first or from the latest one."""
    found, after = [], None
    ask = history.queries.latest if latest else history.queries.page
    while True:
        page = await ask(query, limit, after)
        assert len(page.rows) <= limit
        found += page.rows
        after = page.after
        if after is None:
            return found


def plainly(rows, query):
    """What a query means, by a look at every row; `wanted` decides as in the history."""
    return sorted((each for each in rows if _means(query, each.item)), key=lambda each: each[:2])


def _means(query, item):
    west, south, east, north = query.area or (-180, -90, 180, 90)
    x, y = item.longitude, item.latitude
    if query.area and x is None:
        return False
    if query.area and not (
        south <= y <= north and (west <= x <= east or (west > east and (x >= west or x <= east)))
    ):
        return False
    return (
        (query.sensors is None or item.sensor in query.sensors)
        and (query.kind is None or item.kind == query.kind)
        and (query.start is None or item.time >= query.start)
        and (query.end is None or item.time < query.end)
        and (query.wanted is None or query.wanted(item))
    )


def parquet_files(folder, top="readings"):
    return sorted(path for path in (folder / top).rglob("*.parquet"))
