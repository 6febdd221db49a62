"""The parts of a node for physical and virtual sensors: created, connected to the other parts, started.

This is the only place that joins hpwsn.sensors with the broker and the doors. A node without sensors has
no gateway and no window running, and loads no library for them.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiohttp import web

from hpwsn.background import in_slices, in_thread
from hpwsn.broker.admission.admission import Source
from hpwsn.broker.registrations.interest_follower import InterestFollower
from hpwsn.door.rest.sensors.history_door import HistoryDoor
from hpwsn.door.rest.sensors.readings_door import ReadingsDoor
from hpwsn.door.rest.sensors.sensors_door import SensorsDoor
from hpwsn.door.rest.sensors.virtual_door import VirtualDoor
from hpwsn.door.sensorthings.sensorthings_door import SensorThingsDoor
from hpwsn.journal.store.records import Recovered
from hpwsn.logs import counted
from hpwsn.node.sensor_files import SensorFiles
from hpwsn.node.sensor_gateways import open_mqtt, open_sensor_directory
from hpwsn.node.virtual_services import VirtualServices
from hpwsn.sensors.gateways.member_topics import MemberTopics
from hpwsn.sensors.gateways.wanted_sensors import WantedSensors
from hpwsn.sensors.history.committed_results import logged_rows
from hpwsn.sensors.history.history_query import HistoryBusy, HistoryDamaged, HistoryQuery, Row
from hpwsn.sensors.history.reading_history import ReadingHistory
from hpwsn.sensors.intake.committed_readings import CommittedReadings
from hpwsn.sensors.intake.intake import Intake, IntakeLimits
from hpwsn.sensors.intake.known_times_file import KnownTimesFile
from hpwsn.sensors.intake.reading_log import ReadingLog
from hpwsn.sensors.intake.rejected_readings import RejectedReadings
from hpwsn.sensors.readings.known_times import KnownTimes
from hpwsn.sensors.readings.reading import Reading
from hpwsn.sensors.registry.directory_sensors import KIND as OF_DIRECTORY
from hpwsn.sensors.registry.sensor_registry import KIND, SensorRegistry
from hpwsn.sensors.virtual.definitions import KIND as VIRTUAL
from hpwsn.sensors.virtual.definitions import Definitions
from hpwsn.sensors.virtual.last_results import LastResults
from hpwsn.sensors.virtual.past_readings import PastBusy
from hpwsn.sensors.virtual.result_publisher import ResultPublisher
from hpwsn.sensors.virtual.running_sensors import RunningSensors
from hpwsn.sensors.virtual.service_jobs import ServiceJobs
from hpwsn.sensors.virtual.virtual_sensors import VirtualSensors
from hpwsn_client.wsn.soap.names import DIALECT_FULL
from hpwsn_client.wsn.topics.topic_expressions import parse_topic_expression

if TYPE_CHECKING:
    from hpwsn.node.node_parts import Parts
    from hpwsn.sensors.gateways.mqtt_gateway import MqttGateway

log = logging.getLogger(__name__)

TIMES_AT_ONCE = 1000
"""Sensors whose last report is looked up in the log with one query after a restart."""
KEPT_BY_NONE = "readings are not kept: set sensors.history = true"
NO_PYARROW = "readings are not kept: this needs pyarrow; pip install 'hpwsn[sensors]'"
BELOW = parse_topic_expression("sensors//.|virtual//.", DIALECT_FULL, {})
"""All topics of physical and virtual sensors."""
MQTT = Source(door="sensors", configured=True)
"""Who publishes the readings of the MQTT broker."""


class SensorParts:
    """The connected parts of one node for sensors, in the order in which they are built and started."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self.settings = parts.config.sensors
        self.registry = SensorRegistry(parts.journal, limit=self.settings.limit, clock=parts.clock)
        self._head = lambda: parts.delivery.head
        self._log = ReadingLog(parts.journal, lambda: parts.tree.keys((BELOW,)) or (), self._head)
        self._build_intake()
        self.directory = open_sensor_directory(parts.config, self.registry, parts.journal)
        self.history = self._build_history()
        self._build_virtual()
        self.wanted = WantedSensors(self.settings.linger, parts.config.topics.simple_subtree)
        self.member_topics = MemberTopics(self.registry.get)
        self.mqtt: MqttGateway | None = None
        self._files = SensorFiles(self.settings, self.registry, self.virtual)
        self._connect()

    @property
    def followers(self) -> Sequence[InterestFollower[Any]]:
        """Who wants virtual sensors, and sensors on demand."""
        return (self.virtual.users, self.wanted.users)

    def _build_intake(self) -> None:
        parts, settings = self._parts, self.settings
        data = Path(parts.config.data.dir)
        times = KnownTimes()
        self._times_file = KnownTimesFile(data / "reading-times", times, self._head)
        self.intake = Intake(
            self.registry,
            parts.admission.publish_runs,
            limits=IntakeLimits(
                max_age=settings.max_age,
                max_ahead=settings.max_ahead,
                at_once=settings.readings_limit,
                auto_register=settings.auto_register,
            ),
            times=times,
            rejected=RejectedReadings(
                data / "rejected-readings.jsonl", kept=settings.rejected_kept, clock=parts.clock
            ),
            clock=parts.clock,
        )

    def _build_history(self) -> ReadingHistory | None:
        if not self.settings.history:
            return None
        if find_spec("pyarrow") is None:
            log.info(NO_PYARROW)
            return None
        return ReadingHistory(
            Path(self._parts.config.data.dir),
            age=self.settings.history_age,
            size=self.settings.history_bytes,
            clock=self._parts.clock,
            read_log=self._rows_after,
            head=self._head,
        )

    def _build_virtual(self) -> None:
        parts, settings = self._parts, self.settings
        self._definitions = Definitions(parts.journal, limit=settings.virtual_limit, clock=parts.clock)
        results = LastResults(parts.journal, parts.tree)
        agent = parts.agent
        self.jobs = ServiceJobs(None if agent is None else VirtualServices(parts.posted_services, agent))
        self.results = ResultPublisher(parts.admission)
        running = RunningSensors(
            self.registry,
            results,
            self.results,
            self.jobs,
            clock=parts.clock,
            room=settings.window_readings,
            ahead=settings.max_ahead,
        )
        self.virtual = VirtualSensors(
            self._definitions,
            running,
            results,
            self.jobs,
            linger=settings.linger,
            simple_subtree=parts.config.topics.simple_subtree,
        )

    def _connect(self) -> None:
        """Connect the listeners; the history sees a commit before virtual sensors look for the past."""
        committed, running = CommittedReadings(), self.virtual.running
        if self.history is not None:
            self._parts.journal.committed.add(self.history.committed)
            committed.taken.add(self.history.record)
            self.intake.look_up = self.history.queries.has
            running.past.ask = self._past
        committed.taken.add(self.intake.committed)
        committed.taken.add(running.take)
        self._parts.journal.committed.add(committed.committed)
        self.registry.changed.add(running.sensor_changed)
        self.registry.changed.add(self.wanted.sensor_changed)
        self.registry.changed.add(self.member_topics.sensor_changed)
        self.registry.wanted = self.wanted.wanted
        running.members_changed.add(self.wanted.use)
        running.members_changed.add(self.member_topics.use)

    def restore(self, recovered: Recovered) -> None:
        """Restore the state of the journal, before anything runs; the tree has its current messages."""
        self.registry.restore(recovered.documents.get(KIND, {}))
        if self.directory is not None:
            self.directory.restore(recovered.documents.get(OF_DIRECTORY, {}))
        self._definitions.restore(recovered.documents.get(VIRTUAL, {}))

    async def start(self, running: AsyncExitStack) -> None:
        """Start what runs in the background, once the backbone takes notifications; doors are not open.

        `running` stops it in the opposite order, before the deliveries, the backbone and the journal.
        """
        parts, settings = self._parts, self.settings
        running.push_async_callback(in_thread, self.intake.rejected.close)
        await self._note_last_reports()
        latest = round((parts.clock() + settings.max_ahead) * 1000)
        await self._times_file.open(await parts.journal.oldest(), self._log.keys, latest)
        running.push_async_callback(self._times_file.close)
        if self.history is not None:
            await self.history.open()
            running.push_async_callback(self.history.close)
        if self.directory is not None:
            await self.directory.start(parts.config.topics.start_wait)
            running.push_async_callback(self.directory.close)
        await self._files.load()
        self.wanted.begin(self.registry)
        running.push_async_callback(self.wanted.close)
        self.virtual.begin()
        running.push_async_callback(self.virtual.close)
        if settings.mqtt_url:
            take = partial(self.intake.take, source="mqtt", publisher=MQTT)
            self.mqtt = open_mqtt(settings, Path(parts.config.data.dir), parts.name, take)
            if self.mqtt.commands is not None:
                self.wanted.changed.add(self.mqtt.commands.tell)
            self.mqtt.start()
            running.push_async_callback(self.mqtt.close)

    def open_doors(self, app: web.Application) -> None:
        """Add the addresses of sensors to the node's web application."""
        server = self._parts.config.server
        largest, patience = server.body_limit, server.request_timeout
        app.add_routes(SensorsDoor(self.registry, largest, patience).routes())
        app.add_routes(ReadingsDoor(self.intake, self.settings.readings_limit, largest, patience).routes())
        app.add_routes(VirtualDoor(self.virtual, patience).routes())
        missing = KEPT_BY_NONE if not self.settings.history else NO_PYARROW
        app.add_routes(HistoryDoor(self.history, missing, self._unit_of).routes())
        app.add_routes(SensorThingsDoor(self.registry, self.history, missing).routes())

    def needed_from(self) -> int | None:
        """The first offset of the log that the history still needs; None if it needs none."""
        return None if self.history is None else self.history.needed_from

    def problems(self) -> dict[str, str | None]:
        """Why the node is not ready, by the part that is the reason; None where there is no reason."""
        return {}

    def warnings(self) -> list[str]:
        """What an operator must see to although the node is ready."""
        found = [] if self.mqtt is None else self.mqtt.warnings()
        if self.directory is not None:
            found += self.directory.warnings()
        if self.history is not None and self.history.problem is not None:
            found.append(f"readings are not kept as files, but only in the log: {self.history.problem}")
        if self.history is not None and self.history.damaged:
            found.append(
                f"{counted(self.history.damaged, 'file')} of kept readings cannot be read; the log names them"
            )
        return found

    def figures(self) -> dict[str, Any]:
        """The figures of /status, `sensors`."""
        found: dict[str, Any] = {
            "physical": len(self.registry),
            **self.virtual.figures(),
            **self.wanted.counts,
            "readings": self.intake.accepted,
            "rejected": dict(self.intake.reasons),
            "results": self.results.published,
            "results_dropped": self.results.dropped,
        }
        if self.history is not None:
            found["history"] = self.history.figures()
        if self.mqtt is not None:
            found["mqtt"] = self.mqtt.figures()
        return found

    def reload(self) -> None:
        """Read files and directory again after SIGHUP; what cannot be used is logged and changes nothing."""
        if self.directory is not None:
            self.directory.reload()
        self._files.reload()

    async def _note_last_reports(self) -> None:
        """Take the time of each sensor's current message as that of its last report."""
        tree, journal, registry = self._parts.tree, self._parts.journal, self.registry
        known = ((tree.current(sensor.topic), sensor.id) for sensor in registry)
        current = {offset: sensor_id for offset, sensor_id in known if offset is not None}
        offsets = list(current)
        for at in range(0, len(offsets), TIMES_AT_ONCE):
            for offset, time in (await journal.times(offsets[at : at + TIMES_AT_ONCE])).items():
                registry.reported_before(current[offset], time)

    async def _rows_after(self, start: int) -> tuple[int, list[Row]]:
        """The rows of the log from an offset on for the history, and the first offset not looked at."""
        runs, upto = await self._log.page(start - 1)
        rows: list[Row] = []

        def convert() -> Iterator[None]:
            for first, run in runs:
                rows.extend(logged_rows(first, run))
                yield

        await in_slices(convert())
        return upto + 1, rows

    def _unit_of(self, sensor: str, quantity: str) -> str | None:
        """The unit of a quantity of a registered sensor."""
        known = self.registry.get(sensor)
        found = None if known is None else known.quantities.get(quantity)
        return None if found is None else found.unit

    async def _past(self, sensors: Collection[str], begin: int, end: int) -> Iterable[Reading]:
        """The kept readings of sensors from one time, included, to another, excluded; none if damaged."""
        assert self.history is not None
        query = HistoryQuery(sensors=frozenset(sensors), start=begin, end=end)
        try:
            return await self.history.queries.readings(query, self.settings.window_readings)
        except HistoryBusy as error:
            raise PastBusy(str(error)) from error
        except HistoryDamaged as error:
            log.warning("a virtual sensor starts without the readings of its first windows: %s", error)
            return ()
