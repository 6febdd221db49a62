"""The doors of a node: its HTTP interfaces for SOAP, JSON, ONVIF, operators and clients of the original.

A door implements a protocol; the broker makes the decisions.
"""

from hpwsn.door.soap import spyne_compatibility

spyne_compatibility.prepare()
