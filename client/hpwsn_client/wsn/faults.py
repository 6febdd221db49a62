"""All faults under their public name; hpwsn_client.wsn.soap.faults defines them and draws their hierarchy."""

from hpwsn_client.wsn.soap.faults import *  # noqa: F403
from hpwsn_client.wsn.soap.faults import __all__ as __all__
