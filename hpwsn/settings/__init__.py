"""Every setting of a node: its name, its default, what it is for and what it may be.

One frozen `Config` of one frozen section each; the loader (hpwsn.configuration.sources) builds it, nothing
changes it. The help and the kind of each field are its metadata, from which the checks, the messages and
docs/configuration.md are made. Pure: no file, environment, clock or host name.
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
from hpwsn.settings.cluster import AdminSettings, BackboneSettings, ClusterSettings, RoutingSettings
from hpwsn.settings.config import SETTINGS, Config, sections
from hpwsn.settings.process import DataSettings, LogSettings, NodeSettings, ServerSettings
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
    "JournalSettings",
    "LogSettings",
    "MatchingSettings",
    "NodeSettings",
    "OnvifSettings",
    "PullPointsSettings",
    "RegistrationsSettings",
    "RetrySettings",
    "RoutingSettings",
    "ServerSettings",
    "Setting",
    "StreamsSettings",
    "SubscriptionsSettings",
    "TopicsSettings",
    "sections",
]
