"""The token of jobs: who shows it may read internal topics.

The node writes it to a file of its data directory at start, for its owner only, and keeps an existing one, so
that running jobs go on after a restart. This is the node's only credential until it has users: a model of
identities replaces this module, and callers ask only `JobToken.accepts`.
"""

from __future__ import annotations

import hmac
import logging
import os
import re
import secrets
from pathlib import Path

from hpwsn.errors import HpwsnError

log = logging.getLogger(__name__)

FILE_NAME = "job.token"
_BYTES = 32
_is_token = re.compile(rb"[A-Za-z0-9._~+/-]{32,512}=*\n?").fullmatch
"""Characters of a bearer token (RFC 6750, section 2.1), and few enough for an HTTP header."""


class JobToken:
    """The token, which is never shown: not by str or repr, and not in an error."""

    __slots__ = ("_token",)

    def __init__(self, token: bytes) -> None:
        self._token = token

    def accepts(self, given: str) -> bool:
        """Whether a client gave this token; the time does not depend on where they differ."""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self._token)


def load_job_token(folder: Path) -> JobToken:
    """Read the token of a data directory; create it if there is none, or if the file is not usable."""
    path = folder / FILE_NAME
    try:
        token = _read(path)
        if token is None:
            token = secrets.token_urlsafe(_BYTES).encode()
            _write(path, token)
    except OSError as error:
        raise HpwsnError(
            f"the token of jobs {path} cannot be written: {error.strerror}; check the data directory"
        ) from error
    return JobToken(token)


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode & 0o777, file.read(1024)
    except FileNotFoundError:
        return None
    except OSError as error:
        log.warning("%s cannot be read and is replaced: %s; jobs need the new token", path, error.strerror)
        return None
    if mode & 0o077:
        log.warning("%s was open to other users and is replaced; jobs need the new token", path)
        return None
    if not _is_token(content):
        log.warning("%s has no valid token and is replaced; jobs need the new one", path)
        return None
    return content.rstrip(b"\n")


def _write(path: Path, token: bytes) -> None:
    """Replace the file at once: it never exists with another mode or half a token."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(token + b"\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
