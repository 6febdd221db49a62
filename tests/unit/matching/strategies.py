"""Random requests and events on which every engine must agree."""

from hypothesis import strategies as st

from hpwsn.matching.language.predicates import Operator, Predicate
from hpwsn.matching.language.values import Instant

ATTRIBUTES = ["a", "b", "c", "d", "speed"]
WORDS = ["fire", "smoke", "7", "true", "a b", ""]
DATES = ["2010-01-01", "2010-01-01T12:00:00Z", "2026-02-30", "2010-01-01T13:00:00+01:00"]

numbers = st.sampled_from(
    [-1.0, 0.0, -0.0, 0.5, 1.0, 2.0, 3.0, 1e300, float("inf"), float("-inf")]
) | st.floats(allow_nan=True)
texts = st.sampled_from([*WORDS, *DATES, "fire, smoke", "京B34C91", "ab", "abc"]) | st.text(max_size=4)
scalars = numbers | texts | st.booleans()
instants = st.sampled_from([Instant(1262304000.0), Instant(1262347200.0), Instant(0.0)])
operands = scalars | instants

events = st.dictionaries(
    st.sampled_from(ATTRIBUTES), scalars | st.lists(scalars, min_size=1, max_size=3).map(tuple), max_size=5
)

COMPARISONS = [Operator.LT, Operator.LE, Operator.GT, Operator.GE, Operator.EQ, Operator.NE]


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    """A predicate of any operator, negated or not."""
    attribute = draw(st.sampled_from(ATTRIBUTES))
    operator = draw(st.sampled_from(list(Operator)))
    chosen: tuple[object, ...]
    match operator:
        case Operator.EXISTS:
            chosen = ()
        case Operator.HAS:
            chosen = tuple(draw(st.lists(st.sampled_from(WORDS) | texts, min_size=1, max_size=2)))
        case Operator.LIKE:
            chosen = (draw(st.sampled_from(["%", "a%", "%b", "_b%", "fire", "%i%e%", "\\%"]) | texts),)
        case Operator.BETWEEN:
            kind = draw(st.sampled_from([numbers, texts, instants]))
            chosen = (draw(kind), draw(kind))
        case Operator.IN:
            chosen = tuple(draw(st.lists(operands, min_size=1, max_size=3)))
        case _:
            chosen = (draw(operands),)
    return Predicate(attribute, operator, chosen, draw(st.booleans()))  # type: ignore[arg-type]


conjunctions = st.lists(predicates(), max_size=4).map(tuple)
requests = st.lists(conjunctions, max_size=3).map(tuple)
