"""Files that survive a power failure: written beside the old one, synced to disk, and renamed.

Readers see the old or the new content, never a part. All state outside the journal that a node writes as a
whole uses this: topology, services, topics, the agent's folders.
"""

from __future__ import annotations

import os
from pathlib import Path


def write_atomically(
    path: Path, content: str | bytes, *, hidden: bool = False, mode: int | None = None
) -> None:
    """Replace a file; `hidden` puts a dot before the temporary name, `mode` sets its permissions.

    A text is written in UTF-8. The rename itself survives a power failure only after `sync_folder`.
    """
    temporary = path.with_name(f".{path.name}.new" if hidden else f"{path.name}.new")
    with temporary.open("wb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    if mode is not None:
        temporary.chmod(mode)
    temporary.replace(path)


def sync_folder(folder: Path) -> None:
    """Write the names in a folder to disk: files that were created, renamed or removed there."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
