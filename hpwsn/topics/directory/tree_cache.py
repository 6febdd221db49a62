"""A copy of the last tree of a remote directory in the data directory, for a start without the directory.

One JSON file, replaced atomically. A damaged file, or one of another directory, is ignored, since it is only
a copy.
"""

import json
import logging
from collections.abc import Iterable
from pathlib import Path

from hpwsn.durable_files import write_atomically
from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

log = logging.getLogger(__name__)

VERSION = 1


class TreeCache:
    """The file, and the identity of its directory."""

    def __init__(self, path: Path, identity: str) -> None:
        self.path = path
        self._identity = identity

    def load(self) -> list[Declaration] | None:
        """Return the saved tree; None if there is none of this directory."""
        try:
            saved = json.loads(self.path.read_text("utf-8"))
            if (saved["version"], saved["directory"]) != (VERSION, self._identity):
                return None
            return [Declaration(Topic.parse(topic), *rest) for topic, *rest in saved["topics"]]
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, InvalidTopicExpressionFault) as error:
            log.warning("the saved topics in %s cannot be used: %s", self.path, error)
            return None

    def save(self, declarations: Iterable[Declaration]) -> None:
        """Write the tree; each topic must come after its parent."""
        topics = [
            [str(each.topic), each.description, each.routing, each.path, each.visibility, each.version]
            for each in declarations
        ]
        text = json.dumps({"version": VERSION, "directory": self._identity, "topics": topics})
        write_atomically(self.path, text)
