"""`scripts/deploy-test`: builds the images, starts every compose file, and installs under a real systemd."""

from __future__ import annotations

import argparse
import sys
import time

from tests.deployment.composed import CHECKS, FILES, make_secrets, validate
from tests.deployment.engine import Engine, Failed
from tests.deployment.services import check_systemd

PARTS = {**CHECKS, "systemd": check_systemd}

DESCRIPTION = """\
Tries what docs/admin.md describes, with Docker, or with Podman and docker-compose: builds the images, starts
each compose file and uses it, then follows the commands for systemd in a container that boots. It needs root,
the network, git, and the ports of the compose files on 127.0.0.1. The container gets committed files only.
"""


def main() -> int:
    """Run the parts that are asked for, all by default; 0 if each holds."""
    parser = argparse.ArgumentParser(
        "deploy-test", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="PART", help=f"some of {', '.join(PARTS)}; all by default"
    )
    wanted = parser.parse_args().parts or list(PARTS)
    if unknown := [part for part in wanted if part not in PARTS]:
        parser.error(f"there is no part {unknown[0]}; take some of {', '.join(PARTS)}")
    try:
        engine = Engine()
        make_secrets()
        for file in FILES:
            validate(engine, file)
        for part in wanted:
            began = time.monotonic()
            PARTS[part](engine)
            print(f"{part}: holds ({time.monotonic() - began:.0f} s)", flush=True)
    except Failed as error:
        print(f"deploy-test: {error}", file=sys.stderr)
        return 1
    return 0


sys.exit(main())
