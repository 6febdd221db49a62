"""How many files, and so connections, a process of ours may have open."""

import resource


def raise_file_limit() -> None:
    """Every connection is a file: allow as many as the system lets this process have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
