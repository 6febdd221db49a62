"""The argument parser of all commands, and shell completion for bash, zsh and fish generated from it.

The completion scripts follow the words before the cursor to a command and offer its sub-commands, options,
choices, files and directories. They do not look up topics, so completion never waits for a broker.
CommandParser, `print_error` and `print_warning` give all messages on standard error the same prefix, so that
scripts can find them. The module has no dependencies, which keeps the client package small.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

ERROR = "hpwsn: error: "
WARNING = "hpwsn: warning: "


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors have the same form as those of the commands; sub-parsers have this class too."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and the error, and exit with status 2."""
        self.print_usage(sys.stderr)
        self.exit(2, f"{ERROR}{message}\n")


def print_error(message: str) -> None:
    """Print the reason why a command failed."""
    print(f"{ERROR}{message}", file=sys.stderr)


def print_warning(message: str) -> None:
    """Print a problem after which the command continues."""
    print(f"{WARNING}{message}", file=sys.stderr)


_EXAMPLES = """examples:
  source <(%(prog)s bash)                                 in ~/.bashrc
  source <(%(prog)s zsh)                                  in ~/.zshrc, after compinit
  %(prog)s fish | source                                  in ~/.config/fish/config.fish
"""


@dataclass(frozen=True, slots=True)
class Option:
    """An option or a positional argument; `kind` is what it takes: "" (nothing), value, file or dir."""

    names: tuple[str, ...]
    about: str
    kind: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """One command; `path` has the names of its parent commands and its own, separated by spaces."""

    path: str
    subcommands: tuple[tuple[str, str], ...]
    options: tuple[Option, ...]
    arguments: tuple[Option, ...]

    @property
    def takes(self) -> str:
        """The kind of the positional arguments: file, dir or value."""
        kinds = [each.kind for each in self.arguments]
        return next((kind for kind in kinds if kind in ("file", "dir")), "value")

    @property
    def words(self) -> list[str]:
        """The words that may follow: sub-commands, choices and options, but not files."""
        named = [name for name, _ in self.subcommands]
        chosen = [word for each in self.arguments for word in each.choices]
        return [*named, *chosen, *(name for option in self.options for name in option.names)]


def add_completion_parser(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], whole: argparse.ArgumentParser
) -> None:
    """Add the command `completion`; `whole` is the parser of the program."""
    parser = commands.add_parser(
        "completion",
        help="print a script that completes commands in a shell",
        description="Print a script with which a shell completes commands, options, choices and files.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("shell", choices=tuple(_SCRIPTS), help="the shell that reads the script")
    # A shell runs this command at every start, so it must not warn about an invalid environment variable.
    parser.set_defaults(
        run=lambda arguments: _print(completion_script(whole, arguments.shell)), uses_environment=False
    )


def _print(text: str) -> int:
    print(text, end="")
    return 0


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """The completion script of the parser's program for bash, zsh or fish."""
    return "\n".join((*_SCRIPTS[shell](parser.prog, list(_commands(parser, ()))), ""))


def _commands(parser: argparse.ArgumentParser, path: tuple[str, ...]) -> Iterator[Command]:
    """The parser's command and its sub-commands, recursively."""
    nested: dict[str, argparse.ArgumentParser] = {}
    purposes: dict[str, str] = {}
    options: list[Option] = []
    arguments: list[Option] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            nested.update(action.choices)
            purposes.update((each.dest, each.help or "") for each in action._choices_actions)
        elif action.help != argparse.SUPPRESS:
            (options if action.option_strings else arguments).append(_option(parser, action))
    subcommands = tuple((name, _one_line(purposes.get(name, ""))) for name in nested)
    yield Command(" ".join(path), subcommands, tuple(options), tuple(arguments))
    for name, child in nested.items():
        yield from _commands(child, (*path, name))


def _option(parser: argparse.ArgumentParser, action: argparse.Action) -> Option:
    about = _one_line(parser._get_formatter()._expand_help(action)) if action.help else ""
    choices = tuple(map(str, action.choices)) if action.choices is not None else ()
    return Option(tuple(action.option_strings), about, _kind(action), choices)


def _kind(action: argparse.Action) -> str:
    if action.nargs == 0:
        return ""
    named = action.metavar if isinstance(action.metavar, str) else action.dest
    if named.upper() == "DIR":
        return "dir"
    return "file" if named.upper() == "FILE" or action.type is Path else "value"


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _function(program: str) -> str:
    return "_" + program.replace("-", "_")


def _options_with_value(commands: list[Command]) -> Iterator[tuple[str, Option]]:
    """The options with a value, by the key `command|option` that the scripts use."""
    for command in commands:
        for option in command.options:
            for name in option.names if option.kind else ():
                yield f"{command.path}|{name}", option


def _case_lines(commands: list[Command]) -> Iterator[str]:
    """Cases for bash and zsh that enter a sub-command, and skip the value of an option."""
    for command in commands:
        for name, _ in command.subcommands:
            below = f"{command.path} {name}".strip()
            yield f"      {shlex.quote(f'{command.path}|{name}')}) at={shlex.quote(below)};;"
    keys = "|".join(shlex.quote(key) for key, _ in _options_with_value(commands))
    if keys:
        yield f"      {keys}) skip=1;;"


def _find_command(commands: list[Command], words: str, first: int, current: str) -> Iterator[str]:
    yield "  local at='' skip='' word i"
    yield f"  for ((i = {first}; i < {current}; i++)); do"
    yield f'    word="${{{words}[i]}}"'
    # bash splits `--option=value` at `=`, and the value at `:` and `=`, into separate words.
    yield '    if [[ -n $skip && $word == "=" ]]; then continue; fi'
    yield "    if [[ -n $skip ]]; then skip=''; continue; fi"
    yield '    case "$at|$word" in'
    yield from _case_lines(commands)
    yield "    esac"
    yield "  done"


def _bash(program: str, commands: list[Command]) -> Iterator[str]:
    name = _function(program)
    yield f"# Completion of {program} for bash, generated by `{program} completion bash`."
    yield f"{name}() {{"
    yield from _find_command(commands, "COMP_WORDS", 1, "COMP_CWORD")
    yield "  local cur=\"${COMP_WORDS[COMP_CWORD]}\" before=$((COMP_CWORD - 1)) takes=value words=''"
    yield "  if [[ $cur == '=' ]]; then cur=''"
    yield "  elif [[ ${COMP_WORDS[before]} == '=' ]]; then ((before--)); fi"
    yield '  case "$at|${COMP_WORDS[before]}" in'
    for key, option in _options_with_value(commands):
        yield f"    {shlex.quote(key)}) {_bash_assignments(option.kind, option.choices)};;"
    yield '    *) case "$at" in'
    for command in commands:
        yield f"      {shlex.quote(command.path)}) {_bash_assignments(command.takes, command.words)};;"
    yield "    esac;;"
    yield "  esac"
    yield '  COMPREPLY=($(compgen -W "$words" -- "$cur"))'
    yield "  if [[ $takes != value && $cur != -* ]]; then"
    yield "    compopt -o filenames 2>/dev/null"
    yield '    local found; while IFS= read -r found; do COMPREPLY+=("$found"); done < <('
    yield '      if [[ $takes == dir ]]; then compgen -d -- "$cur"; else compgen -f -- "$cur"; fi)'
    yield "  fi"
    yield "}"
    yield f"complete -F {name} {program}"


def _bash_assignments(kind: str, words: list[str] | tuple[str, ...]) -> str:
    return f"takes={kind}; words={shlex.quote(' '.join(words))}"


def _zsh(program: str, commands: list[Command]) -> Iterator[str]:
    name = _function(program)
    yield f"#compdef {program}"
    yield f"# Completion of {program} for zsh, generated by `{program} completion zsh`."
    yield f"{name}() {{"
    yield from _find_command(commands, "words", 2, "CURRENT")
    yield "  local takes=value; local -a found; found=()"
    yield '  local before="${words[CURRENT-1]}"'
    yield "  if compset -P 1 '--*='; then before=\"${IPREFIX%=}\"; fi"
    yield '  case "$at|$before" in'
    for key, option in _options_with_value(commands):
        yield f"    {shlex.quote(key)}) takes={option.kind}; found=({shlex.join(option.choices)});;"
    yield '    *) case "$at" in'
    for command in commands:
        yield f"      {shlex.quote(command.path)}) takes={command.takes}; found=({_zsh_words(command)});;"
    yield "    esac;;"
    yield "  esac"
    yield f"  (( $#found )) && _describe {shlex.quote(program)} found"
    yield "  if [[ $takes == dir ]]; then _files -/; elif [[ $takes == file ]]; then _files; fi"
    yield "}"
    yield f'if [[ "${{funcstack[1]}}" == {name} ]]; then {name} "$@"; else compdef {name} {program}; fi'


def _zsh_words(command: Command) -> str:
    described = [*command.subcommands]
    described += [(word, "") for each in command.arguments for word in each.choices]
    described += [(name, option.about) for option in command.options for name in option.names]
    return " ".join(shlex.quote(f"{word}:{about}" if about else word) for word, about in described)


def _fish(program: str, commands: list[Command]) -> Iterator[str]:
    name = "_" + _function(program)
    yield f"# Completion of {program} for fish, generated by `{program} completion fish`."
    yield f"function {name}_at"
    yield "  set -l at ''; set -l skip ''"
    yield "  for word in (commandline -opc)[2..]"
    yield "    if test -n \"$skip\"; set skip ''; continue; end"
    yield '    switch "$at|$word"'
    for command in commands:
        for below, _ in command.subcommands:
            at = f"{command.path} {below}".strip()
            yield f"      case {_fish_quote(f'{command.path}|{below}')}; set at {_fish_quote(at)}"
    for key, _ in _options_with_value(commands):
        yield f"      case {_fish_quote(key)}; set skip 1"
    yield "    end"
    yield "  end"
    yield '  test "$at" = "$argv[1]"'
    yield "end"
    yield f"complete -c {program} -e"
    for command in commands:
        here = f"complete -c {program} -n {_fish_quote(f'{name}_at {_fish_quote(command.path)}')}"
        yield from _fish_command(here, command)


def _fish_command(here: str, command: Command) -> Iterator[str]:
    yield here + (" -f" if command.takes == "value" else " -F")
    for word, about in command.subcommands:
        yield f"{here} -a {_fish_quote(word)} -d {_fish_quote(about)}"
    for each in command.arguments:
        if each.choices:
            yield f"{here} -a {_fish_quote(' '.join(each.choices))}"
    for option in command.options:
        yield f"{here}{_fish_option(option)} -d {_fish_quote(option.about)}"


def _fish_option(option: Option) -> str:
    names = "".join(
        f" -l {_fish_quote(name[2:])}" if name.startswith("--") else f" -s {_fish_quote(name[1:])}"
        for name in option.names
    )
    if option.choices:
        return f"{names} -x -a {_fish_quote(' '.join(option.choices))}"
    return (
        names
        + {"": "", "value": " -x", "file": " -r -F", "dir": " -x -a '(__fish_complete_directories)'"}[
            option.kind
        ]
    )


def _fish_quote(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


_SCRIPTS: dict[str, Callable[[str, list[Command]], Iterator[str]]] = {
    "bash": _bash,
    "zsh": _zsh,
    "fish": _fish,
}
