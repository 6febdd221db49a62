"""What the page's door answers: views, files, redirects and refusals, without a socket."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from hpwsn.page.page_door import VIEWS, PageDoor, accepts, page_or
from hpwsn.page.page_files import PageFiles
from hpwsn.page.page_policy import PART_HEADERS, headers_of

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"
INDEX = b'<!doctype html><script type="importmap">{}</script>' + b"<p>words</p>" * 50
SCRIPT = b"export const answer = 42;\n" * 20
APP = Path(__file__).parents[3] / "hpwsn" / "page" / "static" / "app"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "index.html").write_bytes(INDEX)
    (tmp_path / "app" / "main.js").write_bytes(SCRIPT)
    return tmp_path


class Door:
    """The handler behind the routes, asked by method, path and headers."""

    def __init__(self, folder: Path) -> None:
        self._handle = PageDoor(PageFiles(folder)).routes()[0].handler

    async def ask(self, path: str, method: str = "GET", **headers: str) -> web.Response:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        response = await self._handle(make_mocked_request(method, path, headers=given))
        assert isinstance(response, web.Response)
        return response


@pytest.fixture
def door(folder: Path) -> Door:
    return Door(folder)


def body_of(response: web.Response) -> bytes:
    assert isinstance(response.body, bytes)
    return response.body


@pytest.mark.parametrize(
    "path", ["/ui/", *(f"/ui/{view}" for view in VIEWS), "/ui/topics?topic=A:B&tab=edit"]
)
async def test_every_view_is_the_same_document(door: Door, path: str) -> None:
    response = await door.ask(path)
    assert (response.status, body_of(response)) == (200, INDEX)
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"


def test_the_views_are_those_of_the_page_itself() -> None:
    text = (APP / "views.js").read_text("utf-8")
    assert not [view for view in VIEWS if f"\n  {view}: " not in text and f'\n  "{view}": ' not in text]


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [
        ("/ui", "GET", 302),
        ("/ui/", "GET", 200),
        ("/ui/topics", "HEAD", 200),
        ("/ui/nothing", "GET", 404),
        ("/ui/app/nothing.js", "GET", 404),
        ("/ui/", "POST", 405),
    ],
)
async def test_every_document_has_the_security_headers_and_no_cookie(
    door: Door, path: str, method: str, status: int
) -> None:
    response = await door.ask(path, method)
    assert response.status == status
    assert headers_of(INDEX).items() <= dict(response.headers).items()
    assert response.headers["Cache-Control"] == "no-cache"
    assert "Set-Cookie" not in response.headers
    assert not response.cookies


async def test_a_changed_import_map_changes_the_policy(door: Door, folder: Path) -> None:
    before = (await door.ask("/ui/")).headers["Content-Security-Policy"]
    (folder / "index.html").write_bytes(INDEX.replace(b"{}", b'{"imports": {}}'))
    assert (await door.ask("/ui/")).headers["Content-Security-Policy"] != before


async def test_scripts_and_styles_carry_only_the_headers_that_apply_to_them(door: Door) -> None:
    headers = (await door.ask("/ui/app/main.js")).headers
    assert PART_HEADERS.items() <= dict(headers).items()
    assert "Content-Security-Policy" not in headers


async def test_a_client_that_takes_gzip_gets_it_under_another_tag(door: Door) -> None:
    plain = await door.ask("/ui/app/main.js")
    packed = await door.ask("/ui/app/main.js", Accept_Encoding="br, gzip;q=0.5")
    assert body_of(plain) == SCRIPT
    assert len(body_of(packed)) < len(SCRIPT)
    assert (packed.headers["Content-Encoding"], "Content-Encoding" in plain.headers) == ("gzip", False)
    assert plain.headers["ETag"] != packed.headers["ETag"]
    assert plain.headers["Vary"] == packed.headers["Vary"] == "Accept-Encoding"


@pytest.mark.parametrize("shape", ["{}", "W/{}", '"other", {}', "*"])
async def test_what_a_client_has_is_not_sent_again(door: Door, shape: str) -> None:
    tag = (await door.ask("/ui/app/main.js")).headers["ETag"]
    response = await door.ask("/ui/app/main.js", If_None_Match=shape.format(tag))
    assert (response.status, response.body) == (304, None)
    assert response.headers["ETag"] == tag
    assert response.headers["Vary"] == "Accept-Encoding"


async def test_an_old_tag_or_one_of_the_other_coding_gets_the_file(door: Door) -> None:
    tag = (await door.ask("/ui/app/main.js", Accept_Encoding="gzip")).headers["ETag"]
    for known in ('"old"', tag, "nonsense", '"'):
        assert (await door.ask("/ui/app/main.js", If_None_Match=known)).status == 200


@pytest.mark.parametrize(
    ("asked", "to"), [("/ui", "ui/"), ("/ui?scope=all&q=%0D%0AX", "ui/?scope=all&q=%0D%0AX")]
)
async def test_the_address_without_a_slash_leads_to_the_page_under_any_prefix(
    door: Door, asked: str, to: str
) -> None:
    response = await door.ask(asked)
    assert (response.status, response.headers["Location"]) == (302, to)


@pytest.mark.parametrize(
    "path",
    [
        "/ui/nothing",
        "/ui/topics/",
        "/ui/topics/more",
        "/ui//",
        "/ui/index.html",
        "/ui/page_door.py",
        "/ui/app",
        "/ui/app/",
        "/ui/app/../index.html",
        "/ui/app/%2e%2e/index.html",
        "/ui/app/..%2findex.html",
        "/ui/../app/main.js",
        "/ui/app%2fmain.js",
    ],
)
async def test_what_is_neither_a_view_nor_a_file_is_said_in_json(door: Door, path: str) -> None:
    response = await door.ask(path)
    assert (response.status, response.content_type) == (404, "application/json")
    assert "the page" in json.loads(body_of(response))["error"]


async def test_a_browser_is_told_in_plain_text(door: Door) -> None:
    response = await door.ask("/ui/<b>", Accept=BROWSER)
    assert (response.status, response.content_type, response.headers["Vary"]) == (404, "text/plain", "Accept")
    assert "topics, subscriptions" in (response.text or "")


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
async def test_only_reading_is_allowed(door: Door, method: str) -> None:
    response = await door.ask("/ui/topics", method)
    assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
    assert method in json.loads(body_of(response))["error"]


async def test_a_page_without_its_files_says_so(tmp_path: Path) -> None:
    response = await Door(tmp_path).ask("/ui/")
    assert response.status == 500
    assert "install HPwsn again" in json.loads(body_of(response))["error"]
    assert "script-src 'self';" in response.headers["Content-Security-Policy"]


async def welcome(request: web.Request) -> web.Response:
    return web.Response(text="welcome\n")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (BROWSER, 302),
        ("TEXT/HTML; charset=utf-8", 302),
        ("application/json, text/html;q=0.1", 302),
        ("*/*", 200),
        ("text/*", 200),
        ("text/html;q=0, */*", 200),
        ("text/html; q=0.000", 200),
        ("application/json", 200),
        ("text/htmlx", 200),
        ("", 200),
        (",;,;q=,", 200),
    ],
)
async def test_the_root_leads_only_those_to_the_page_who_ask_for_html_by_name(
    accept: str, status: int
) -> None:
    response = await page_or(welcome)(make_mocked_request("GET", "/", headers={"Accept": accept}))
    assert isinstance(response, web.Response)
    assert (response.status, response.headers["Vary"]) == (status, "Accept")
    assert (response.headers.get("Location"), response.text) == (
        ("ui/", None) if status == 302 else (None, "welcome\n")
    )


async def test_a_client_that_names_no_type_gets_the_answer_for_all(door: Door) -> None:
    response = await page_or(welcome)(make_mocked_request("GET", "/"))
    assert response.status == 200


@pytest.mark.parametrize(
    ("header", "taken"),
    [("gzip", True), ("br;q=1, GZIP ; q=0.2", True), ("gzip;q=0", False), ("*", False), ("x-gzip", False)],
)
def test_a_coding_is_taken_only_if_it_is_named(header: str, taken: bool) -> None:
    assert accepts(header, "gzip") is taken
