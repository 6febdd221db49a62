"""Generates docs/configuration.md from the settings, so that the page cannot become outdated."""

import re
from collections.abc import Iterator

from hpwsn.configuration.sources import FLAGS
from hpwsn.settings import SETTINGS, Setting, sections
from hpwsn.settings.quantities import Boolean, Duration, Size, format_duration, format_size

_INTRODUCTION = """\
# Configuration

Every setting has a default. Sources, each overriding the ones before it:

1. the default,
2. `hpwsn.toml` in the working directory, or the file given with `--config`,
3. the environment variable `HPWSN_SECTION_KEY`, such as `HPWSN_SERVER_PORT`,
4. a flag of `hpwsn serve`, or `--set SECTION.KEY=VALUE`.

An unknown variable `HPWSN_…` is an error, except those of clients (`HPWSN_URL`, `HPWSN_CA`,
`HPWSN_TOKEN`) and those that Kubernetes sets for Services named `hpwsn…`.
[`hpwsn check-config`](command-line.md#check-config) checks the settings; `--show` prints their values and
sources, `--reference` this page.

```toml
[server]
host = "0.0.0.0"
public_url = "http://broker.example.org:8080"

[journal]
durability = "fsync"
retention_age = "7 d"
```

| value | syntax |
|---|---|
| duration | seconds; text with `ms`, `s`, `min`, `h` or `d`; ISO 8601, such as `"PT10M"`; ≤ 3650 d |
| size | bytes; text with `KB`, `MB`, `GB`, `TB` (1000^n), `KiB`, `MiB`, `GiB`, `TiB` (1024^n); ≤ 1024 TiB |
| path | absolute, or relative to the working directory |"""

_RANGE = re.compile(r"a (?:whole number|size|duration) from (.*) to (.*)")
_LARGEST = {format_duration(Duration(0).maximum), format_size(Size(0).maximum)}
"""Upper bounds that the introduction names."""


def reference() -> str:
    """The text of the page."""
    return "\n".join((_INTRODUCTION, *_tables())) + "\n"


def _tables() -> Iterator[str]:
    for section, owner in sections().items():
        yield f"\n## `[{section}]`\n\n{owner.__doc__}\n"
        yield "| key | default (allowed) | meaning |"
        yield "|---|---|---|"
        yield from (_row(one) for one in SETTINGS.values() if one.section == section)


def _row(setting: Setting) -> str:
    flag = FLAGS.get(setting.key)
    about = f"{setting.about} Flag `{flag}`." if flag else setting.about
    allowed = "" if isinstance(setting.kind, Boolean) else _RANGE.sub(_short_range, setting.kind.describe())
    default = f"`{setting.kind.format(setting.default)}`" + (f" ({allowed})" if allowed else "")
    cells = (f"`{setting.name}`", default, about)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _short_range(found: re.Match[str]) -> str:
    """The bounds that the introduction does not name; the default shows the kind of value."""
    if found[2] not in _LARGEST:
        return f"{found[1]}–{found[2]}"
    return f"≥ {found[1]}" if found[1].split()[0] != "0" else ""
