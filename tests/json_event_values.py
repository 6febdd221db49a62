"""Events for property tests: names and values that some form has to escape or to mark."""

from hypothesis import strategies as st

NAMES = ["cid", "n", "on", "wind speed", "京", "a%b", "note", "n.x"]
TEXTS = st.sampled_from(
    [
        "",
        "c1",
        "7",
        " 7 ",
        "-0",
        "1e5",
        "1e999",
        "true",
        " false",
        "007",
        'a"b',
        "a\\b",
        "<&>",
        "a\nb\r\tc",
        "%b",
    ]
) | st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), max_size=9)
SCALARS = TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=2)
)
EVENTS = st.dictionaries(st.sampled_from(NAMES), SCALARS, max_size=6) | st.dictionaries(
    st.sampled_from(NAMES), VALUES, max_size=4
)
