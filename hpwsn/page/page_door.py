"""/ui/ on a node and on the admin node: the page's HTML for every view, and the files that it loads.

The views are one segment below /ui/, and all addresses in the page are relative, so that it works under any
prefix of a reverse proxy. Nothing here depends on who asks: the page gets its data from the other addresses,
as any client does. No answer sets a cookie.
"""

from __future__ import annotations

import re

from aiohttp import web

from hpwsn.http_json.responses import Handling, answer
from hpwsn.page.page_files import FOLDERS, INDEX, PageFile, PageFiles
from hpwsn.page.page_policy import PART_HEADERS, headers_of
from hpwsn_client.wsn.topics.topic import shown

PAGE = "/ui/"
VIEWS = ("topics", "subscriptions", "dead-letters", "topology", "health", "streams", "sensors")
"""The views beside the overview, which is at /ui/ itself; `app` in the page's own files knows them too."""
METHODS = ("GET", "HEAD")
PART_TYPES = frozenset({"text/javascript", "text/css", "font/woff2"})
"""The types of files that are only parts of a page: opened by themselves, they are shown as text."""

_REFUSED = re.compile(r"q=0(\.0*)?")
_MISSING = "the files of the page are not installed; install HPwsn again"


def accepts(header: str, name: str) -> bool:
    """Whether an Accept or Accept-Encoding header names this type or coding itself; `*/*` does not."""
    for part in header.lower().split(","):
        value, *parameters = (word.strip() for word in part.split(";"))
        if value == name:
            return not any(_REFUSED.fullmatch(parameter) for parameter in parameters)
    return False


def is_browser(request: web.Request) -> bool:
    """Whether the client asks for HTML by name, as browsers do when somebody enters an address."""
    return accepts(",".join(request.headers.getall("Accept", ())), "text/html")


def page_or(welcome: Handling) -> Handling:
    """The handler of `/`: it leads browsers to the page, and gives all others the answer of `welcome`."""

    async def handle(request: web.Request) -> web.StreamResponse:
        response = _redirect() if is_browser(request) else await welcome(request)
        response.headers["Vary"] = "Accept"
        return response

    return handle


class PageDoor:
    """The request handler for everything under /ui; `files` are those of the package by default."""

    def __init__(self, files: PageFiles | None = None) -> None:
        self._files = files or PageFiles()
        self._headers: tuple[str, dict[str, str]] = ("", {})

    def routes(self) -> list[web.RouteDef]:
        """The routes to add to the web application."""
        # All methods, so that a refused one is answered under the page's policy too.
        return [web.route("*", address, self._handle) for address in ("/ui", PAGE, PAGE + "{rest:.*}")]

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        index = await self._files.find(INDEX)
        response = await self._answer(request, index)
        is_part = response.status == 200 and response.content_type in PART_TYPES
        response.headers.update(PART_HEADERS if is_part else self._security(index))
        response.headers.setdefault("Cache-Control", "no-cache")
        return response

    async def _answer(self, request: web.Request, index: PageFile | None) -> web.Response:
        # Not decoded: no name here needs an escape, so an escape leads nowhere.
        path = request.rel_url.raw_path
        if request.method not in METHODS:
            words = f"{shown(path)} has no {shown(request.method)}; it has {', '.join(METHODS)}"
            return _refuse(request, 405, words, Allow=", ".join(METHODS))
        if path == "/ui":
            return _redirect(request.rel_url.raw_query_string)
        name = path.removeprefix(PAGE)
        if not name or name in VIEWS:
            return _file_answer(request, index) if index else _refuse(request, 500, _MISSING)
        if name.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            file = await self._files.find(name)
            return _file_answer(request, file) if file else _refuse(request, 404, _no_file(path))
        return _refuse(request, 404, _no_view(path))

    def _security(self, index: PageFile | None) -> dict[str, str]:
        """The security headers for the current HTML, made once for each version of it."""
        digest, content = (index.digest, index.content) if index else ("missing", b"")
        if self._headers[0] != digest:
            self._headers = (digest, headers_of(content))
        return self._headers[1]


def _redirect(query: str = "") -> web.Response:
    """To the page by a relative address, which is right under every prefix."""
    return web.Response(status=302, headers={"Location": f"ui/?{query}" if query else "ui/"})


def _file_answer(request: web.Request, file: PageFile) -> web.Response:
    headers = {"Content-Type": file.type}
    body, tag = file.content, file.digest
    if file.compressed is not None:
        headers["Vary"] = "Accept-Encoding"
        if accepts(",".join(request.headers.getall("Accept-Encoding", ())), "gzip"):
            body, tag = file.compressed, f"{tag}-gzip"
            headers["Content-Encoding"] = "gzip"
    headers["ETag"] = f'"{tag}"'
    if any(known.value in (tag, "*") for known in request.if_none_match or ()):
        del headers["Content-Type"]
        headers.pop("Content-Encoding", None)
        return web.Response(status=304, headers=headers)
    return web.Response(body=body, headers=headers)


def _refuse(request: web.Request, status: int, words: str, **headers: str) -> web.Response:
    """A short text for browsers, and for all others JSON as at every other address."""
    response = (
        web.Response(text=f"{words}\n", status=status)
        if is_browser(request)
        else answer({"error": words}, status)
    )
    response.headers.update({"Vary": "Accept", **headers})
    return response


def _no_file(path: str) -> str:
    return f"{shown(path)} is not a file of the page; reload the page, a newer version may be installed"


def _no_view(path: str) -> str:
    return f"{shown(path)} is not a view of the page; there are {PAGE} and, below it, {', '.join(VIEWS)}"
