"""The list of topics with their figures, under /topics, and each topic at /topics/{topic}.

Topics are in the order of the tree: a topic before those below it, siblings in the order of their names. So a
page can be shown as a tree. A search lists only the topics that match: the text of a topic has the names of
all above it. The list shows no payloads, so internal topics are listed too. A topic that has the name of
another address, such as `namespace`, is found with its namespace: /topics/{urn:hpwsn:topics}namespace.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from aiohttp import web

from hpwsn.broker.subscriptions.subscription import Subscriber
from hpwsn.broker.topic_overview import Figures, Overview, TopicOverviews
from hpwsn.door.rest.json_answers import answer, answers_in_json, bad, check_names, moment
from hpwsn.http_json.list_pages import bad_cursor, cursor_of, key_of, limit_of
from hpwsn.topics.tree.declarations import INTERNAL, PUBLIC
from hpwsn.topics.tree.topic_node import Node, similar_topics
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.faults import SoapFault, TopicNotSupportedFault
from hpwsn_client.wsn.topics.topic import shown
from hpwsn_client.wsn.topics.topic_expressions import Topic

BUSIEST = "-rate"
"""The value of `sort` for one page of the topics with the highest rates.

There is no next page: rates change before anybody asks for it.
"""
MOST_NAMED = 1000
"""The most topics that a request can name by `topic`."""
_ONE = "/topics/{topic:(?!(?:changes|export|import|namespace)$)[^/]+}"
"""A topic with the name of another address below /topics is found as `{urn:hpwsn:topics}import`."""
Etag = Callable[[Node[Subscriber]], str | None]


class TopicListDoor:
    """The request handlers for reading topics; `etag` gives the version of a topic's declaration, or None."""

    def __init__(
        self, tree: TopicTree[Subscriber], overviews: TopicOverviews, etag: Etag = lambda node: None
    ) -> None:
        self._tree = tree
        self._overviews = overviews
        self._etag = etag

    def routes(self) -> list[web.RouteDef]:
        """Return the routes for the node's web application; they come before those of events."""
        return [web.get("/topics", self._list), web.get(_ONE, self._show)]

    @answers_in_json
    async def _list(self, request: web.Request) -> web.StreamResponse:
        check_names(request, "under", "depth", "q", "sort", "limit", "after", "topic")
        if "topic" in request.query:
            return await self._list_named(request)
        limit, depth, last = limit_of(request), _depth_of(request), _last_of(request)
        by_rate = _sorts_by_rate(request)
        under, text = _under_of(request), request.query.get("q", "").strip()
        if under is not None:
            self._check(under)
        revision, overview = self._overviews.revision, await self._overviews.current()
        order = overview.order
        among = range(len(order)) if under is None else order.below(under)
        level = 0 if under is None else len(under.path)
        positions = await overview.select(among, None if depth is None else level + depth, text)
        if by_rate:
            positions, last = overview.busiest(positions, limit), None
        start = 0 if last is None else bisect_left(positions, order.after(last))
        page = positions[start : start + limit]
        more = start + limit < len(positions)
        return answer(
            {
                "revision": revision,
                "items": await self._items(overview, page),
                "next": cursor_of(str(order.nodes[page[-1]].topic)) if more else None,
                "total": len(positions),
            },
            200,
        )

    async def _list_named(self, request: web.Request) -> web.StreamResponse:
        named = _named_of(request)
        revision, overview = self._overviews.revision, await self._overviews.current()
        known = overview.order.positions
        items = await self._items(overview, sorted({known[topic] for topic in named if topic in known}))
        return answer({"revision": revision, "items": items, "next": None, "total": len(items)}, 200)

    @answers_in_json
    async def _show(self, request: web.Request) -> web.StreamResponse:
        check_names(request)
        topic = Topic.parse(request.match_info["topic"])
        self._check(topic)
        overview = await self._overviews.current()
        position = overview.order.positions.get(topic)
        if position is None:
            raise self._unknown(topic)
        (item,) = await self._items(overview, (position,))
        return answer(item, 200)

    async def _items(self, overview: Overview, positions: Sequence[int]) -> list[dict[str, Any]]:
        found = [overview.figures(position) for position in positions]
        current = [(each, each.node.current) for each in found]
        times = await self._overviews.times([offset for _, offset in current if offset is not None])
        return [self._describe(each, offset, times) for each, offset in current]

    def _describe(self, figures: Figures, offset: int | None, times: Mapping[int, float]) -> dict[str, Any]:
        node = figures.node
        last = None if offset is None else {"offset": offset, "time": moment(times.get(offset))}
        return {
            "topic": str(node.topic),
            "name": node.name,
            "level": figures.level,
            "namespace": node.topic.namespace,
            "description": node.description,
            "routing": node.routing,
            "visibility": INTERNAL if node.internal else PUBLIC,
            "declared": node.declared,
            "children": len(node.children),
            "subscribers": figures.subscribers,
            "subscribers_below": figures.subscribers_below,
            "rate": figures.rate,
            "rate_below": figures.rate_below,
            "last": last,
            "etag": self._etag(node),
        }

    def _check(self, topic: Topic) -> None:
        if topic not in self._tree:
            raise self._unknown(topic)

    def _unknown(self, topic: Topic) -> TopicNotSupportedFault:
        similar = _joined(similar_topics(self._tree.root, topic))
        hint = f"; did you mean {similar}?" if similar else ""
        return TopicNotSupportedFault(f"topic {topic} does not exist{hint}; GET /topics lists all topics")


def _sorts_by_rate(request: web.Request) -> bool:
    sort = request.query.get("sort")
    if sort not in (None, BUSIEST):
        raise bad(f"sort is {shown(sort)}; give {BUSIEST}, or leave it out for the order of the tree")
    return sort is not None


def _joined(topics: Iterable[Topic]) -> str:
    return ", ".join(map(str, topics))


def _under_of(request: web.Request) -> Topic | None:
    text = request.query.get("under", "").strip()
    return Topic.parse(text) if text else None


def _named_of(request: web.Request) -> list[Topic]:
    """The topics that the request names; other parameters have no meaning then."""
    others = [name for name in ("under", "depth", "q", "sort", "limit", "after") if name in request.query]
    if others:
        raise bad(f"topic goes without {others[0]}: it lists the named topics, on one page")
    texts = request.query.getall("topic")
    if len(texts) > MOST_NAMED:
        raise bad(f"{len(texts)} topics are named; the limit is {MOST_NAMED} of a request")
    return [Topic.parse(text) for text in texts]


def _depth_of(request: web.Request) -> int | None:
    """How many levels are listed; None for all."""
    text = request.query.get("depth")
    if text is None:
        return None
    if not (text.isascii() and text.isdecimal()) or len(text) > 18 or not int(text):
        raise bad(f"depth is {shown(text)}; give a number of levels, 1 or more, or leave it out")
    return int(text)


def _last_of(request: web.Request) -> Topic | None:
    """The last topic of the page before; None for the first page."""
    after = request.query.get("after")
    if after is None:
        return None
    try:
        return Topic.parse(key_of(after).decode())
    except (ValueError, SoapFault):
        raise bad_cursor(after) from None
