"""Distinguished names: the same answers as OpenLDAP's own library gives."""

import ldap.dn
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpwsn.topics.ldap.entries.dn import DnError, Rdn, dn_key, encode_rdn, parse_dn, split_dn

VALUES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(
    lambda text: "\0" not in text
)
RDNS = st.lists(st.tuples(st.sampled_from(["cn", "ou", "hpwsnName"]), VALUES), min_size=1, max_size=2)


@given(st.lists(RDNS.map(tuple), min_size=1, max_size=4))
def test_a_name_is_read_back_as_it_was_and_openldap_reads_the_same(
    dn: list[Rdn],
) -> None:
    text = ",".join(map(encode_rdn, dn))
    assert parse_dn(text) == tuple(dn)
    theirs = [tuple((name, value) for name, value, _ in rdn) for rdn in ldap.dn.str2dn(text)]
    assert theirs == dn


@given(st.lists(RDNS.map(tuple), min_size=1, max_size=4))
def test_the_text_that_openldap_writes_is_read_the_same(dn: list[Rdn]) -> None:
    text = ldap.dn.dn2str([[(name, value, 1) for name, value in rdn] for rdn in dn])
    assert parse_dn(text) == tuple(dn)


@given(st.lists(RDNS.map(tuple), min_size=2, max_size=4))
def test_the_first_part_is_split_off_whatever_it_holds(dn: list[Rdn]) -> None:
    first, rest = split_dn(",".join(map(encode_rdn, dn)))
    assert parse_dn(first) == (dn[0],)
    assert parse_dn(rest) == tuple(dn[1:])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("cn=ALL,ou=Topics", "CN=all, ou=topics"),
        ("cn=a+hpwsnNamespace=urn:x,ou=t", "hpwsnNamespace=urn:x+cn=A,ou=t"),
        (r"cn=Stra\C3\9Fe,ou=t", "cn=Straße,ou=t"),
        (r"cn=a\2Cb,ou=my  topics", r"cn=a\,b,ou=my topics"),
    ],
)
def test_spellings_of_one_name_have_one_key(one: str, other: str) -> None:
    assert dn_key(one) == dn_key(other)


@pytest.mark.parametrize(
    ("one", "other"), [("cn=a,ou=t", "cn=b,ou=t"), ("hpwsnName=a,ou=t", "hpwsnName=A,ou=t")]
)
def test_different_names_have_different_keys(one: str, other: str) -> None:
    assert dn_key(one) != dn_key(other)


@pytest.mark.parametrize("text", ["topics", "cn", "=x", "cn=a,,ou=b", 'cn="a"', "cn=a\\"])
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(DnError, match="is not a distinguished name"):
        parse_dn(text)
