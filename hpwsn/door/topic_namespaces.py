"""TopicNamespace documents over HTTP: the topics of one namespace, as WS-Topics 1.3 section 5 has them."""

from __future__ import annotations

from aiohttp import web

from hpwsn.broker.subscription import Subscriber
from hpwsn.door.documents import in_thread
from hpwsn.topics.topic_set import topic_namespace
from hpwsn.topics.tree import TopicTree
from hpwsn_client.wsn.names import HPWSN_TOPICS
from hpwsn_client.wsn.topic import shown


class TopicNamespacesDoor:
    """The address /topics/namespace."""

    def __init__(self, tree: TopicTree[Subscriber]) -> None:
        self._tree = tree

    def routes(self) -> list[web.RouteDef]:
        """What to add to the node's web application."""
        return [web.get("/topics/namespace", self._describe)]

    async def _describe(self, request: web.Request) -> web.Response:
        uri = request.query.get("uri") or HPWSN_TOPICS
        document = await in_thread(topic_namespace, self._tree.root, uri)
        if document is None:
            return web.Response(status=404, text=f"there are no topics in the namespace {shown(uri)}\n")
        return web.Response(body=document, content_type="text/xml", charset="utf-8")
