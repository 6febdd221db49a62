"""What browsers are told about the page: its content security policy, and the other headers of /ui.

The page loads only files of its own node, and nothing turns text into markup or into code. The import map is
the one script inside the document: browsers take no other kind, and the policy names it by its hash. Pure.
"""

from __future__ import annotations

import re
from base64 import b64encode
from hashlib import sha256

_IMPORT_MAP = re.compile(rb'<script type="importmap">(.*?)</script>', re.DOTALL)
_POLICY = (
    "default-src 'none'",
    "script-src 'self'{maps}",
    "style-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
)
PART_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    # Pages of other origins cannot embed the files.
    "Cross-Origin-Resource-Policy": "same-origin",
}
"""The headers of scripts, styles and fonts: a policy does not apply to them, and a start loads dozens."""
_HEADERS = {
    **PART_HEADERS,
    "Referrer-Policy": "no-referrer",
    # Windows of other origins get no handle to the page's window.
    "Cross-Origin-Opener-Policy": "same-origin",
}


def policy_of(document: bytes) -> str:
    """The content security policy for the page whose HTML this is."""
    maps = "".join(f" 'sha256-{_hash_of(text)}'" for text in _IMPORT_MAP.findall(document))
    return "; ".join(_POLICY).format(maps=maps)


def _hash_of(script: bytes) -> str:
    """The hash as browsers compute it: of the text after its line ends have become single newlines."""
    text = script.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return b64encode(sha256(text).digest()).decode()


def headers_of(document: bytes) -> dict[str, str]:
    """The security headers of every answer under /ui but scripts, styles and fonts, a new dictionary."""
    return {"Content-Security-Policy": policy_of(document), **_HEADERS}
