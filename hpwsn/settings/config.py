"""The configuration: one dataclass per section, and every setting by its full name."""

from collections.abc import Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any

from hpwsn.settings.broker import (
    DeadLettersSettings,
    DeliverySettings,
    JournalSettings,
    MatchingSettings,
    OnvifSettings,
    PullPointsSettings,
    RegistrationsSettings,
    RetrySettings,
    StreamsSettings,
    SubscriptionsSettings,
    TopicsSettings,
)
from hpwsn.settings.carriers import DtnSettings
from hpwsn.settings.cluster import AdminSettings, BackboneSettings, ClusterSettings, RoutingSettings
from hpwsn.settings.process import (
    DataSettings,
    LogSettings,
    MonitoringSettings,
    NodeSettings,
    ServerSettings,
    TracingSettings,
)
from hpwsn.settings.sensors import SensorsSettings
from hpwsn.settings.setting import Setting


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration of one node."""

    server: ServerSettings = field(default_factory=ServerSettings)
    node: NodeSettings = field(default_factory=NodeSettings)
    data: DataSettings = field(default_factory=DataSettings)
    topics: TopicsSettings = field(default_factory=TopicsSettings)
    journal: JournalSettings = field(default_factory=JournalSettings)
    delivery: DeliverySettings = field(default_factory=DeliverySettings)
    retry: RetrySettings = field(default_factory=RetrySettings)
    dead_letters: DeadLettersSettings = field(default_factory=DeadLettersSettings)
    subscriptions: SubscriptionsSettings = field(default_factory=SubscriptionsSettings)
    matching: MatchingSettings = field(default_factory=MatchingSettings)
    pull_points: PullPointsSettings = field(default_factory=PullPointsSettings)
    onvif: OnvifSettings = field(default_factory=OnvifSettings)
    registrations: RegistrationsSettings = field(default_factory=RegistrationsSettings)
    streams: StreamsSettings = field(default_factory=StreamsSettings)
    sensors: SensorsSettings = field(default_factory=SensorsSettings)
    dtn: DtnSettings = field(default_factory=DtnSettings)
    backbone: BackboneSettings = field(default_factory=BackboneSettings)
    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    admin: AdminSettings = field(default_factory=AdminSettings)
    routing: RoutingSettings = field(default_factory=RoutingSettings)
    monitoring: MonitoringSettings = field(default_factory=MonitoringSettings)
    log: LogSettings = field(default_factory=LogSettings)
    tracing: TracingSettings = field(default_factory=TracingSettings)


def sections() -> dict[str, type]:
    """The dataclass of each section, in the order of the reference."""
    return {part.name: part.default_factory for part in fields(Config)}  # type: ignore[misc]


def _describe(section: str, part: Field[Any]) -> Setting:
    return Setting(section, part.name, part.default, **part.metadata)


def _all_settings() -> Iterator[Setting]:
    for section, owner in sections().items():
        for part in fields(owner):
            yield _describe(section, part)


SETTINGS: dict[str, Setting] = {one.key: one for one in _all_settings()}
