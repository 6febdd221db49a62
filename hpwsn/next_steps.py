"""What `scripts/run` tells a person once the node is ready: what to try, where to read on, how to stop."""

import shlex
import sys
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_URL = "http://127.0.0.1:8080/wsn"
_OWN = {"0.0.0.0:": "127.0.0.1:", "[::]:": "[::1]:"}
_TRUST = "Where the system does not trust the certificate, add --ca with the PEM file of its authority.\n"
_PAYLOAD = "'<reading>21.5</reading>'"


def next_steps(url: str, data: Path) -> str:
    """The text for a node at this address with its state in `data`; its commands can be pasted."""
    command = _command()
    reachable = _reachable(url)
    option = "" if reachable == DEFAULT_URL else f" --url {shlex.quote(reachable)}"
    return f"""
HPwsn listens on {url}

Try it in another terminal:
  {command} listen sensors{option}
and in a third:
  {command} publish sensors:hall:temperature {_PAYLOAD}{option}
{_TRUST if url.startswith("https:") else ""}
Read on: README.md, docs/clients.md. Another port: scripts/run --port 8090
Stop with Ctrl-C. State stays in {data.absolute()}
"""


def _reachable(url: str) -> str:
    """The address for this machine's own terminals: nobody connects to one that stands for all addresses."""
    for every, own in _OWN.items():
        if urlsplit(url).netloc.startswith(every):
            return url.replace(every, own, 1)
    return url


def _command() -> str:
    """How a terminal in the current directory starts this very `hpwsn`."""
    program = Path(sys.argv[0]).absolute()
    here = Path.cwd()
    return shlex.quote(str(program.relative_to(here) if program.is_relative_to(here) else program))
