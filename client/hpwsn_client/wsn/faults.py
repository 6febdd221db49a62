"""All fault classes, for import by users; hpwsn_client.wsn.soap.faults shows their hierarchy."""

from hpwsn_client.wsn.soap.faults import *  # noqa: F403
from hpwsn_client.wsn.soap.faults import __all__ as __all__
