"""Problems of a definition: the file and line, the operator, the attribute, and what to do."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from difflib import get_close_matches

from hpwsn.errors import HpwsnError


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a definition file, or of a Python file that calls the builder; line 0 means unknown."""

    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"{self.file or 'definition'}:{self.line}" if self.line else self.file or "definition"


NOWHERE = Place()


@dataclass(frozen=True, slots=True)
class Problem:
    """One problem; `part` is the operator or input concerned, `attribute` the attribute or setting."""

    place: Place
    message: str
    part: str = ""
    attribute: str = ""

    def __str__(self) -> str:
        subject = "".join(f"{one}: " for one in (self.part, self.attribute) if one)
        return f"{self.place}: {subject}{self.message}"

    def fields(self) -> dict[str, object]:
        """The fields by name, for JSON output."""
        return asdict(self)


class DefinitionError(HpwsnError):
    """A definition is not valid; `problems` has every problem that was found."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        lines = "".join(f"\n  {problem}" for problem in problems)
        several = f"the definition has {len(problems)} problems:{lines}"
        super().__init__(str(problems[0]) if len(problems) == 1 else several)
        self.problems = tuple(problems)


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean …` if the word is close to a known one, else the list of known words."""
    choices = list(known)
    close = get_close_matches(word, choices, 1, 0.7)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(choices)}" if choices else "there is none"
