"""`hpwsn topics`: lists and edits a topic directory from the command line.

It works on a topic file and on an LDAP directory, and does not need a node. A running node follows the
changes. A handler returns 0; it raises BadArguments for invalid arguments, and another HpwsnError if the
directory rejects the change. `draw_tree` formats the topics as a tree for the terminal.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TextIO

from hpwsn.errors import BadArguments
from hpwsn.topics.directory.directory import Access, Directory, TopicDirectoryError
from hpwsn.topics.ldap.entries.dn import DnError, parse_dn
from hpwsn.topics.ldap.entries.ldif import DEFAULT_BASE, encode_ldif, parse_ldif
from hpwsn.topics.opening import open_directory
from hpwsn.topics.tree.declarations import (
    INTERNAL,
    PUBLIC,
    ROUTING_POLICIES,
    VISIBILITIES,
    Declaration,
    internal_topics,
)
from hpwsn.topics.tree.topic_toml import Document, DocumentError, encode_document, parse_document
from hpwsn.topics.tree.tree import TopicTree
from hpwsn_client.wsn.soap.faults import InvalidTopicExpressionFault
from hpwsn_client.wsn.topics.topic_expressions import Topic

ENVIRONMENT = "HPWSN_TOPICS_URL"
FORMATS = ("toml", "ldif")
PROGRESS_INTERVAL = 1000
"""Changes between two progress lines of a load."""
_EXAMPLES = """\
examples:
  hpwsn topics add ALL:ALARM --routing tcp --topics topics.toml
  hpwsn topics add traffic:anpr --visibility internal --topics topics.toml
  hpwsn topics list --topics ldap://ldap.example.org/ou=topics,dc=hpwsn
"""
_Action = Callable[[argparse.Namespace, Directory], None]
_Children = Mapping[Topic | None, list[Declaration]]
_Subparsers = argparse._SubParsersAction  # the return type of add_subparsers has no public name


def add_topics_parser(subparsers: _Subparsers[argparse.ArgumentParser]) -> None:
    """Add the command `topics` with its actions."""
    parser = subparsers.add_parser(
        "topics",
        help="list and edit a topic directory",
        description="Lists and edits a topic directory; no node needs to run.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(title="actions", required=True, metavar="ACTION")
    _add_list(commands)
    _add_add(commands)
    _add_remove(commands)
    _add_move(commands)
    _add_load(commands)
    _add_dump(commands)


def _add_list(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(commands, "list", _list, "print the topics as a tree", "list --topics topics.toml")
    parser.add_argument(
        "--json", action="store_true", help="print a JSON array, breadth-first, with codes and LDAP paths"
    )


def _add_add(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "add",
        _add,
        "add a topic and its missing parents, or change an existing topic",
        'add ALL:ALARM --description "Needs somebody at once" --routing tcp --topics topics.toml',
    )
    parser.add_argument("topic", metavar="TOPIC", help="such as ALL:ALARM, or {namespace}ALL:ALARM")
    parser.add_argument("--description", default="", metavar="TEXT", help="what the topic is for")
    parser.add_argument("--routing", choices=ROUTING_POLICIES, help="how to forward the topic to other nodes")
    parser.add_argument(
        "--visibility",
        choices=VISIBILITIES,
        help="who reads the topic and all below it: only jobs (internal), or everybody",
    )


def _add_remove(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands, "remove", _remove, "remove a topic", "remove ALL:ALARM --recursive --topics topics.toml"
    )
    parser.add_argument("topic", metavar="TOPIC", help="such as ALL:ALARM")
    parser.add_argument("--recursive", action="store_true", help="also remove every topic below it")


def _add_move(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "move",
        _move,
        "rename or move a topic with all topics below it",
        "move ALL:ALARM ALL:EVENT:ALARM --topics topics.toml",
    )
    parser.add_argument("topic", metavar="TOPIC", help="the current topic")
    parser.add_argument("new", metavar="NEW", help="the full new topic; missing parents are added")


def _add_load(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "load",
        _load,
        "replace all topics by those in a TOML or LDIF file",
        "load saved.ldif --merge --topics topics.toml",
    )
    parser.add_argument("file", metavar="FILE", help="a file, or - for standard input")
    parser.add_argument(
        "--format", choices=FORMATS, help="format of the file (default: by its name, else toml)"
    )
    parser.add_argument("--merge", action="store_true", help="keep the existing topics too")


def _add_dump(commands: _Subparsers[argparse.ArgumentParser]) -> None:
    parser = _command(
        commands,
        "dump",
        _dump,
        "write all topics as TOML or LDIF",
        "dump --format ldif --output saved.ldif --topics topics.toml",
    )
    parser.add_argument(
        "--format", choices=FORMATS, help="format of the output (default: by the file's name, else toml)"
    )
    parser.add_argument(
        "--base",
        default=DEFAULT_BASE,
        metavar="DN",
        help=f"base DN of LDIF entries (default: {DEFAULT_BASE})",
    )
    parser.add_argument("--output", metavar="FILE", help="write to this file instead of standard output")


def _command(
    commands: _Subparsers[argparse.ArgumentParser], name: str, action: _Action, summary: str, example: str
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=f"examples:\n  hpwsn topics {example}\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--topics",
        metavar="URL",
        help=f"a .toml file or its file: URL, or an ldap: or ldaps: URL (default: ${ENVIRONMENT})",
    )
    _add_access(parser)
    parser.set_defaults(handler=lambda args: _run(action, args))
    return parser


def _add_access(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("an LDAP server (defaults: $HPWSN_TOPICS_BIND_DN and so on)")
    group.add_argument("--bind-dn", metavar="DN", help="bind as this entry (default: anonymous)")
    group.add_argument("--password-file", metavar="FILE", help="file with its password")
    group.add_argument("--start-tls", action="store_true", default=None, help="secure ldap:// with StartTLS")
    group.add_argument("--ca-file", metavar="FILE", help="CA certificates for the server")


def _run(action: _Action, args: argparse.Namespace) -> int:
    try:
        action(args, _directory(args))
    except InvalidTopicExpressionFault as error:
        raise BadArguments(str(error)) from None
    return 0


def _directory(args: argparse.Namespace) -> Directory:
    url = args.topics or os.environ.get(ENVIRONMENT)
    if not url:
        raise BadArguments(
            f"the topic directory is missing; give --topics URL, such as topics.toml, or set {ENVIRONMENT}"
        )
    start_tls = os.environ.get("HPWSN_TOPICS_START_TLS", "").lower() in ("1", "true", "yes", "on")
    return open_directory(
        url,
        Access(
            bind_dn=_option(args.bind_dn, "BIND_DN"),
            password_file=_option(args.password_file, "PASSWORD_FILE"),
            start_tls=args.start_tls or start_tls,
            ca_file=_option(args.ca_file, "CA_FILE"),
        ),
    )


def _option(given: str | None, name: str) -> str:
    return os.environ.get(f"HPWSN_TOPICS_{name}", "") if given is None else given


def _list(args: argparse.Namespace, directory: Directory) -> None:
    declarations = directory.load()
    if args.json:
        by_topic = {item.topic: item for item in declarations}
        tree: TopicTree[str] = TopicTree(declarations, fixed=True)
        listed = [_as_json(by_topic[node.topic], node.code, node.internal) for node in tree.root.below()]
        _print([json.dumps(listed, ensure_ascii=False, indent=2)])
    else:
        _print(draw_tree(declarations, ascii_only=not _can_draw(sys.stdout)))


def _as_json(declaration: Declaration, code: str, internal: bool) -> dict[str, str | None]:
    return {
        "topic": str(declaration.topic),
        "code": code,
        "description": declaration.description,
        "routing": declaration.routing,
        "path": declaration.path,
        "visibility": INTERNAL if internal else PUBLIC,
    }


def _add(args: argparse.Namespace, directory: Directory) -> None:
    topic = Topic.parse(args.topic)
    directory.add(Declaration(topic, args.description, args.routing, visibility=args.visibility))


def _remove(args: argparse.Namespace, directory: Directory) -> None:
    directory.remove(Topic.parse(args.topic), args.recursive)


def _move(args: argparse.Namespace, directory: Directory) -> None:
    directory.move(Topic.parse(args.topic), Topic.parse(args.new))


def _load(args: argparse.Namespace, directory: Directory) -> None:
    directory.replace(_read(args.file, args.format), args.merge, _report_progress)


def _read(file: str, given: str | None) -> Iterable[Declaration]:
    name = "standard input" if file == "-" else file
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
        found = parse_ldif(text) if _format(file, given) == "ldif" else parse_document(text).declarations
    except OSError as error:
        raise TopicDirectoryError(f"{name}: cannot be read: {error.strerror}") from None
    except (DocumentError, UnicodeError) as error:
        raise TopicDirectoryError(f"{name}: {error}") from None
    if not found:
        # For example the empty output of a failed dump in a pipe, or LDIF of other entries.
        raise TopicDirectoryError(f"{name}: has no topics, so nothing was changed; check the file")
    return found


def _format(file: str | None, given: str | None) -> str:
    return given or ("ldif" if file is not None and file.lower().endswith(".ldif") else "toml")


def _report_progress(done: int, total: int) -> None:
    if total >= PROGRESS_INTERVAL and (done % PROGRESS_INTERVAL == 0 or done == total):
        sys.stderr.write(f"hpwsn topics: {done} of {total} changes\n")


def _encode(declarations: Iterable[Declaration], args: argparse.Namespace) -> str:
    if _format(args.output, args.format) == "toml":
        return encode_document(Document(tuple(declarations)))
    try:
        if not parse_dn(args.base):
            raise DnError("it is empty")
    except DnError as error:
        raise BadArguments(f"--base: {error}") from None
    return encode_ldif(declarations, args.base)


def _dump(args: argparse.Namespace, directory: Directory) -> None:
    text = _encode(directory.load(), args)
    if args.output is None:
        sys.stdout.write(text)
        return
    try:
        Path(args.output).write_text(text, encoding="utf-8")
    except OSError as error:
        raise TopicDirectoryError(f"{args.output}: cannot be written: {error.strerror}") from None


def _print(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


def _can_draw(stream: TextIO) -> bool:
    try:
        "├└│─".encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def draw_tree(declarations: Iterable[Declaration], ascii_only: bool = False) -> Iterator[str]:
    """A line for each topic, with `internal` and its routing policy in brackets, and its description."""
    children: dict[Topic | None, list[Declaration]] = {}
    known = list(declarations)
    internal = internal_topics(known)
    for declaration in known:
        if declaration.topic in internal:
            declaration = replace(declaration, visibility=INTERNAL)
        children.setdefault(declaration.topic.parent, []).append(declaration)
    branches = ("|-- ", "`-- ", "|   ") if ascii_only else ("├── ", "└── ", "│   ")
    for tree in children.get(None, []):
        yield _line(str(tree.topic), tree)
        yield from _branches(tree.topic, children, "", branches)


def _branches(
    topic: Topic, children: _Children, indent: str, branches: tuple[str, str, str]
) -> Iterator[str]:
    fork, last, trunk = branches
    below = children.get(topic, [])
    for position, child in enumerate(below, start=1):
        is_last = position == len(below)
        yield indent + (last if is_last else fork) + _line(child.topic.path[-1], child)
        yield from _branches(child.topic, children, indent + ("    " if is_last else trunk), branches)


def _line(name: str, declaration: Declaration) -> str:
    marks = (INTERNAL if declaration.visibility == INTERNAL else None, declaration.routing)
    shown = "".join(f"  [{mark}]" for mark in marks if mark)
    description = f"  {' '.join(declaration.description.split())}" if declaration.description else ""
    return f"{name}{shown}{description}"
