"""Every setting of a node: its name, its default, its description and its allowed values.

`Config` is a frozen dataclass with a frozen dataclass per section. hpwsn.configuration.sources builds it, and
it never changes. The metadata of each field has its description and its kind of value; the checks, the
messages and docs/configuration.md are generated from them. Pure: no file, environment, clock or host name.
"""

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
from hpwsn.settings.config import SETTINGS, Config, sections
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

__all__ = [
    "SETTINGS",
    "AdminSettings",
    "BackboneSettings",
    "ClusterSettings",
    "Config",
    "DataSettings",
    "DeadLettersSettings",
    "DeliverySettings",
    "DtnSettings",
    "JournalSettings",
    "LogSettings",
    "MatchingSettings",
    "MonitoringSettings",
    "NodeSettings",
    "OnvifSettings",
    "PullPointsSettings",
    "RegistrationsSettings",
    "RetrySettings",
    "RoutingSettings",
    "SensorsSettings",
    "ServerSettings",
    "Setting",
    "StreamsSettings",
    "SubscriptionsSettings",
    "TopicsSettings",
    "TracingSettings",
    "sections",
]
