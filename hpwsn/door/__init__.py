"""The doors of a node: SOAP, and what operators look at. Doors speak protocols and decide nothing."""

from hpwsn.door.soap import spyne_compatibility

spyne_compatibility.prepare()
