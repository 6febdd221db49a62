"""The Dockerfiles, the .dockerignore and the compose files as tests read them, in the little that we use.

A Dockerfile is instructions with continued lines and comments, in stages; a .dockerignore is patterns with *,
**, […] and !, of which the last that matches decides; a compose file is YAML with ${NAME:-default}.
"""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.harness import ROOT

DOCKER = ROOT / "scripts" / "deploy" / "docker"
DOCKERFILES = sorted(DOCKER.glob("*.Dockerfile"))
COMPOSE_FILES = sorted(DOCKER.glob("*.yaml"))


@dataclass(frozen=True)
class Instruction:
    """One instruction: `RUN`, its flags such as `--from=build`, and the rest of it on one line."""

    name: str
    flags: tuple[str, ...]
    text: str

    @property
    def words(self) -> list[str]:
        """The words of it: those of a JSON list, or as a shell reads them."""
        return list(json.loads(self.text)) if self.text.startswith("[") else shlex.split(self.text)


def parse_dockerfile(text: str) -> list[list[Instruction]]:
    """The stages of a Dockerfile, each from its FROM on."""
    lines = (line for line in text.splitlines() if not line.lstrip().startswith("#"))
    stages: list[list[Instruction]] = []
    for line in "\n".join(lines).replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        name, *rest = line.split()
        flags = []
        while rest and rest[0].startswith("--"):
            flags.append(rest.pop(0))
        if name == "FROM":
            stages.append([])
        stages[-1].append(Instruction(name, tuple(flags), " ".join(rest)))
    return stages


class Image:
    """What a Dockerfile says of the image that it makes, in its last stage."""

    def __init__(self, path: Path) -> None:
        self.stages = parse_dockerfile(path.read_text())
        self.last = self.stages[-1]

    def all(self, name: str) -> list[Instruction]:
        """Every instruction of that name in the last stage."""
        return [one for one in self.last if one.name == name]

    def only(self, name: str) -> Instruction:
        """The one instruction of that name in the last stage."""
        (found,) = self.all(name)
        return found

    @property
    def environment(self) -> dict[str, str]:
        """The variables that it sets."""
        pairs = (word.split("=", 1) for one in self.all("ENV") for word in one.words)
        return {pair[0]: pair[1] for pair in pairs}

    @property
    def ports(self) -> set[int]:
        """The ports that it exposes."""
        return {int(word) for one in self.all("EXPOSE") for word in one.words}

    @property
    def health_check(self) -> list[str]:
        """The words of its health check's command."""
        text = self.only("HEALTHCHECK").text
        return list(json.loads(text.removeprefix("CMD")))

    @property
    def sources(self) -> list[str]:
        """Every source of a COPY from the checkout, in all stages."""
        copies = (one for stage in self.stages for one in stage if one.name == "COPY")
        from_checkout = (one for one in copies if not any(flag.startswith("--from") for flag in one.flags))
        return [source for one in from_checkout for source in one.words[:-1]]


class Ignored:
    """Which files of the checkout a .dockerignore keeps out of the build."""

    def __init__(self, path: Path) -> None:
        lines = (line.strip() for line in path.read_text().splitlines())
        self._rules = [
            (not line.startswith("!"), _pattern(line.removeprefix("!")))
            for line in lines
            if line and not line.startswith("#")
        ]

    def __contains__(self, name: str) -> bool:
        outcome = False
        for ignores, pattern in self._rules:
            if pattern.fullmatch(name):
                outcome = ignores
        return outcome


def _pattern(text: str) -> re.Pattern[str]:
    """A pattern for a path and, as Docker takes it, for all below it."""
    translated = ""
    for part in re.split(r"(\*\*/|\*\*|\*|\?|\[[^]]*\])", text.strip("/")):
        translated += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(part) or (
            part if part.startswith("[") else re.escape(part)
        )
    return re.compile(f"{translated}(?:/.*)?")


def load_compose(path: Path) -> dict[str, Any]:
    """A compose file with the defaults of its variables."""
    text = re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", path.read_text())
    assert "${" not in text, f"{path}: a variable without a default"
    found: dict[str, Any] = yaml.safe_load(text)
    return found
