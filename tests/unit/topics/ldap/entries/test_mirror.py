"""The mirror of a directory: whatever happens to entries, its changes lead to what a fresh look finds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from hpwsn.topics.ldap.entries.dn import encode_rdn, parse_dn
from hpwsn.topics.ldap.entries.mirror import Mirror
from hpwsn.topics.ldap.entries.topic_entry import parse_entry
from hpwsn.topics.tree.declarations import Declaration
from hpwsn_client.wsn.topics.topic_expressions import Topic

BASE = "ou=topics,dc=hpwsn"
T = Topic.parse


def put(mirror: Mirror, id_: str, dn: str, **attributes: str) -> None:
    values = {name: [value.encode()] for name, value in attributes.items()}
    mirror.put(parse_entry(id_, f"{dn},{BASE}", values))


def topics(mirror: Mirror) -> list[str]:
    return [str(each.topic) for each in mirror.declarations()]


def test_entries_come_in_any_order_and_a_child_waits_for_its_parent() -> None:
    mirror = Mirror(BASE)
    put(mirror, "2", "cn=B,cn=A")
    assert not mirror.changes()
    assert mirror.skipped() == (f"cn=B,{BASE}: the entry above it is not a topic",)
    put(mirror, "1", "cn=A", description="root")
    assert [str(each.topic) for each in mirror.changes().declared] == ["A", "A:B"]
    assert not mirror.skipped()


def test_a_rename_moves_all_below_it() -> None:
    mirror = Mirror(BASE)
    for id_, dn in (("1", "cn=A"), ("2", "cn=B,cn=A"), ("3", "cn=C,cn=B,cn=A"), ("4", "cn=X")):
        put(mirror, id_, dn)
    mirror.changes()
    put(mirror, "2", "cn=N,cn=X")
    change = mirror.changes()
    assert {str(each.topic) for each in change.declared} == {"X:N", "X:N:C"}
    assert set(change.removed) == {T("A:B"), T("A:B:C")}
    assert mirror.declarations()[-1].path == f"cn=C,cn=N,cn=X,{BASE}"


def test_an_entry_that_is_no_topic_is_reported_with_all_below_it_and_mended_later() -> None:
    mirror = Mirror(BASE)
    put(mirror, "1", "cn=no topic")
    put(mirror, "2", "cn=B,cn=no topic")
    put(mirror, "3", "cn=C", hpwsnNamespace="with blanks {}")
    put(mirror, "4", "cn=D", hpwsnRouting="pigeon")
    put(mirror, "5", "cn=E", hpwsnRouting="TCP")
    put(mirror, "6", "ou=F")
    put(mirror, "7", "cn=G", hpwsnCode="many")
    mirror.changes()
    assert topics(mirror) == ["E"]
    assert mirror.declarations()[0].routing == "tcp"
    assert len(mirror.skipped()) == 6
    assert any("hpwsnRouting is 'pigeon'" in reason for reason in mirror.skipped())
    put(mirror, "1", "cn=A")
    put(mirror, "4", "cn=D", hpwsnRouting="udp")
    mirror.changes()
    assert topics(mirror) == ["A", "D", "E", "A:B"]


def test_of_two_entries_for_one_topic_one_counts_until_it_goes() -> None:
    mirror = Mirror(BASE)
    put(mirror, "1", "cn=A", description="first")
    put(mirror, "2", "cn=A+hpwsnNamespace=urn:hpwsn:topics", hpwsnNamespace="urn:hpwsn:topics")
    put(mirror, "3", "cn=B,cn=A+hpwsnNamespace=urn:hpwsn:topics")
    mirror.changes()
    assert topics(mirror) == ["A"]
    assert any("topic A already is cn=A," in reason for reason in mirror.skipped())
    mirror.discard(["1"])
    change = mirror.changes()
    assert [str(each.topic) for each in change.declared] == ["A", "A:B"]
    assert not change.removed


def test_siblings_come_by_code_and_then_by_name() -> None:
    mirror = Mirror(BASE)
    for number, (name, code) in enumerate([("Z", "2"), ("Y", "1"), ("B", ""), ("A", "")]):
        put(mirror, str(number), f"cn={name}", **({"hpwsnCode": code} if code else {}))
    mirror.changes()
    assert topics(mirror) == ["Y", "Z", "A", "B"]


NAMES = st.sampled_from(["A", "B", "b", "bad name"])
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "rename", "delete"]),
        st.integers(0, 5),
        st.integers(-1, 5),
        NAMES,
        st.sampled_from(["", "", "urn:x"]),
        st.sampled_from(["", "text"]),
    ),
    max_size=25,
)


class Server:
    """Entries as a server has them: a rename takes what is below along, a name is taken once."""

    def __init__(self) -> None:
        self.entries: dict[int, tuple[int, str, str, str]] = {}

    def dn(self, id_: int) -> str:
        parts = []
        while id_ >= 0:
            above, name, _, _ = self.entries[id_]
            parts.append(encode_rdn((("cn", name),)))
            id_ = above
        return ",".join([*parts, BASE])

    def line(self, id_: int) -> set[int]:
        found = set()
        while id_ >= 0:
            found.add(id_)
            id_ = self.entries[id_][0]
        return found

    def taken(self, id_: int, above: int, name: str) -> bool:
        others = ((key, each) for key, each in self.entries.items() if key != id_)
        return any(each[0] == above and each[1].lower() == name.lower() for _, each in others)

    def send(self, mirror: Mirror, id_: int) -> None:
        _, name, namespace, description = self.entries[id_]
        values = {"cn": name, "hpwsnNamespace": namespace, "description": description}
        mirror.put(parse_entry(str(id_), self.dn(id_), {n: [v.encode()] for n, v in values.items() if v}))

    def fresh(self) -> Mirror:
        mirror = Mirror(BASE)
        for id_ in sorted(self.entries, key=lambda id_: len(parse_dn(self.dn(id_)))):
            self.send(mirror, id_)
        mirror.changes()
        return mirror


def step(
    server: Server, mirror: Mirror, what: str, id_: int, above: int, name: str, ns: str, text: str
) -> None:
    if what == "delete":
        if id_ in server.entries and not any(each[0] == id_ for each in server.entries.values()):
            del server.entries[id_]
            mirror.discard([str(id_)])
        return
    if (above >= 0 and above not in server.entries) or server.taken(id_, above, name):
        return
    if id_ not in server.entries:
        server.entries[id_] = above, name, ns, text
    elif what == "put":
        server.entries[id_] = (*server.entries[id_][:2], ns, text)
    elif above < 0 or id_ not in server.line(above):
        server.entries[id_] = (above, name, *server.entries[id_][2:])
    server.send(mirror, id_)


@settings(max_examples=300)
@given(STEPS, st.integers(1, 4))
def test_changes_lead_to_what_a_fresh_look_finds(
    steps: list[tuple[str, int, int, str, str, str]], batch: int
) -> None:
    server, mirror = Server(), Mirror(BASE)
    known: dict[Topic, Declaration] = {}
    for number, each in enumerate(steps, 1):
        step(server, mirror, *each)
        if number % batch and number < len(steps):
            continue
        change = mirror.changes()
        assert not {item.topic for item in change.declared} & set(change.removed)
        for topic in change.removed:
            del known[topic]
        known.update((item.topic, item) for item in change.declared)
        fresh = server.fresh()
        assert set(known.values()) == set(fresh.declarations()) == set(mirror.declarations())
        assert set(mirror.skipped()) == set(fresh.skipped())
