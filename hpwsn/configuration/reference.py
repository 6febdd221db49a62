"""Writes docs/configuration.md from the settings themselves, so that the two cannot differ."""

from collections.abc import Iterator

from hpwsn.configuration.sources import FLAGS
from hpwsn.settings import SETTINGS, Setting, sections

_INTRODUCTION = """\
# Configuration

A node runs without any. Where it needs some, a setting is taken from, later over earlier:

1. its default,
2. the file `hpwsn.toml` of the working directory, or the one named with `--config`,
3. the environment, as `HPWSN_SECTION_KEY`, such as `HPWSN_SERVER_PORT`,
4. a flag of `hpwsn serve`, or `--set section.key=value` for a setting that has none.

`hpwsn check-config` takes the same flags, and tells everything that is wrong, where, and what to do; with
`--show` it prints every setting with its value and where that came from. It refuses whatever `hpwsn serve`
would refuse: `serve` makes the same checks before it starts. They include certificates and keys, files of
passwords and users, the data directory and its journal, libraries of extras that are not installed, and
addresses that the machine does not have. A port or a data directory that is in use is found by `serve` alone.

A variable `HPWSN_…` that is not a setting is an error, with the name that was probably meant. Allowed beside
the settings are the variables of clients (`HPWSN_URL`, `HPWSN_CA`, and `HPWSN_TOKEN`, which is reserved),
and those that Kubernetes sets for a Service whose name begins with `hpwsn`.

```toml
[server]
host = "0.0.0.0"
public_url = "http://broker.example.org:8080"

[journal]
durability = "fsync"
retention_age = "7 d"
```

Durations are seconds, or a text with `ms`, `s`, `min`, `h` or `d`, or ISO 8601 such as `PT10M`. Sizes are
bytes, or a text with `KB`, `MB`, `GB` (powers of 1000) or `KiB`, `MiB`, `GiB` (powers of 1024). Relative
paths start at the working directory.

This page is made by `hpwsn check-config --reference`."""


def reference() -> str:
    """The whole page."""
    return "\n".join((_INTRODUCTION, *_tables())) + "\n"


def _tables() -> Iterator[str]:
    for section, owner in sections().items():
        yield f"\n## `[{section}]`\n\n{owner.__doc__}\n"
        yield "| key | default | allowed | what it is |"
        yield "|---|---|---|---|"
        yield from (_row(one) for one in SETTINGS.values() if one.section == section)


def _row(setting: Setting) -> str:
    flag = FLAGS.get(setting.key)
    about = f"{setting.about} Flag `{flag}`." if flag else setting.about
    cells = (f"`{setting.name}`", f"`{setting.kind.format(setting.default)}`", setting.kind.describe(), about)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
