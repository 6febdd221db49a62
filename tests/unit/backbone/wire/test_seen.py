"""Stored frames as ranges: equal to a plain set of them, over restarts too."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpwsn.backbone.wire.frames import FrameId, Seen
from hpwsn.journal.store.records import FrameRange

ids = st.builds(FrameId, st.sampled_from("ab"), st.integers(1, 12))


@given(st.lists(st.tuples(ids, st.booleans()), max_size=40))
def test_it_knows_exactly_what_was_added_and_what_is_stored_is_all_it_needs(
    steps: list[tuple[FrameId, bool]],
) -> None:
    seen, plain = Seen(), set[FrameId]()
    stored: dict[tuple[str, int], FrameRange] = {}
    for id_, restart in steps:
        assert (id_ in seen) == (id_ in plain)
        if id_ not in seen:
            grown = seen.add(id_)
            stored[grown.source, grown.first] = grown
            plain.add(id_)
        if restart:
            seen = Seen(stored.values())
    assert all((FrameId(s, n) in seen) == (FrameId(s, n) in plain) for s in "ab" for n in range(14))


def test_frames_in_their_order_are_one_range() -> None:
    seen = Seen()
    ranges = {(grown.source, grown.first) for n in range(1, 1000) if (grown := seen.add(FrameId("a", n)))}
    assert ranges == {("a", 1)}
