"""Certificates for tests, made by OpenSSL."""

from __future__ import annotations

import subprocess
from pathlib import Path


def certificate(folder: Path, name: str, *, address: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    """A certificate of its own authority for an address, and its key."""
    found = folder / f"{name}.pem", folder / f"{name}-key.pem"
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    command = ["openssl", "req", "-x509", *curve, "-days", "2", "-subj", f"/CN={name}"]
    command += ["-addext", f"subjectAltName={address}", "-out", str(found[0]), "-keyout", str(found[1])]
    subprocess.run(command, check=True, capture_output=True)
    return found
