"""Limits of a TOML text, checked before it is parsed.

The parser of Python takes quadratic time and memory for a key of many parts, such as a.a.a = 1, and a
kilobyte for each part of a short key. So this scan counts the parts, in one pass over the text. It knows
strings and comments, and stops where the parser would report an unfinished string.
"""

import re

from hpwsn_client.wsn.topics.topic import MAX_STEPS

MOST_PARTS = MAX_STEPS + 2
"""The most parts of a key or table header: namespaces, topics, and the steps of the deepest topic."""

# A part of a text that is no key, or one of the marks that are counted. Possessive, so that it is linear.
_TOKEN = re.compile(
    r'"""(?:[^"\\]++|\\.|"(?!""))*+(?:"{3,5})?'
    r"|'''(?:[^']++|'(?!''))*+(?:'{3,5})?"
    r'|"(?:[^"\\\n]++|\\.)*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
    r"|\.|[\n,]++|[=\[{]",
    re.DOTALL,
)


def toml_problem(text: str, most: int | None = None) -> str | None:
    """Return why the text has too many parts in one key, or more than `most` in all; None if it has not."""
    parts = total = 0
    for token in _TOKEN.finditer(text):
        mark = token[0][0]
        if mark in "\"'#":
            continue
        if mark == ".":
            parts += 1
            if parts >= MOST_PARTS:
                line = text.count("\n", 0, token.start()) + 1
                return f"line {line}: a key has more than {MOST_PARTS} parts; a topic has {MAX_STEPS} at most"
        else:
            parts = 0
        total += mark not in "\n,"
        if most is not None and total > most:
            return f"its keys have more than {most} parts in all; split it"
    return None
