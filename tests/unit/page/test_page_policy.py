"""The policy lets the page run exactly its own files and its import map, and the page needs nothing else."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from hpwsn.page.page_files import JOINED
from hpwsn.page.page_policy import headers_of, policy_of

STATIC = Path(__file__).parents[3] / "hpwsn" / "page" / "static"
INDEX = (STATIC / "index.html").read_bytes()


class Elements(HTMLParser):
    """What the policy is about in a document: scripts, attributes and addresses."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.inline: list[tuple[str | None, str]] = []
        self.attributes: set[str] = set()
        self.tags: set[str] = set()
        self.addresses: list[str] = []
        self._script: str | None = None
        self._inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.add(tag)
        self.attributes |= set(given)
        self.addresses += [value for name, value in attrs if name in ("src", "href") and value]
        self._inside, self._script = tag == "script" and "src" not in given, given.get("type")

    def handle_endtag(self, tag: str) -> None:
        self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.inline.append((self._script, data))


PAGE = Elements(INDEX.decode())


def test_the_policy_is_the_documented_one_with_the_hash_of_the_import_map() -> None:
    ((_, script),) = PAGE.inline
    digest = b64encode(sha256(script.encode()).digest()).decode()
    assert policy_of(INDEX) == (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; img-src 'self' data:;"
        " font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none';"
        " require-trusted-types-for 'script'; trusted-types 'none'"
    )


def test_the_import_map_is_the_only_script_inside_the_document() -> None:
    assert [kind for kind, _ in PAGE.inline] == ["importmap"]


def test_the_document_has_nothing_that_its_policy_forbids() -> None:
    assert not {name for name in PAGE.attributes if name == "style" or name.startswith("on")}
    assert not PAGE.tags & {"style", "base", "form", "iframe", "object"}


def test_every_address_in_the_document_is_relative_and_leads_to_a_file() -> None:
    files = [address for address in PAGE.addresses if not address.startswith("data:")]
    assert files
    assert not [address for address in files if address.startswith(("/", ".")) or ":" in address]
    parts = [part for address in files for part in JOINED.get(address, (address,))]
    assert not [part for part in parts if not (STATIC / part).is_file()]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_the_hash_is_that_of_the_text_after_a_browser_has_read_it(end: bytes) -> None:
    document = b'<script type="importmap">{' + end + b"}</script>"
    digest = b64encode(sha256(b"{\n}").digest()).decode()
    assert f"script-src 'self' 'sha256-{digest}';" in policy_of(document)


def test_without_an_import_map_no_script_inside_a_document_runs() -> None:
    assert "script-src 'self'; style-src" in policy_of(b"<script>alert(1)</script>")


def test_the_other_headers_keep_types_addresses_and_windows_apart() -> None:
    headers = headers_of(b"")
    assert headers.pop("Content-Security-Policy")
    assert headers == {
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
    }
