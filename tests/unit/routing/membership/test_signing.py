"""Requests and answers signed with the cluster secret."""

import pytest

from hpwsn.routing.membership.signing import (
    NONCE,
    SIGNATURE,
    TIME,
    InvalidSignature,
    Signer,
    TooEarly,
    Verifier,
    _mac,
    derive_key,
)

SECRET = b"the secret"
NOW = 1_800_000_000.0


def signed(nonce: str = "n1", now: float = NOW, secret: bytes = SECRET) -> dict[str, str]:
    return Signer(secret).headers("PUT", "/api/nodes/a?x=1", b"body", now=now, nonce=nonce)


@pytest.fixture
def verifier() -> Verifier:
    return Verifier(SECRET, window=300, began=NOW - 100)


def check(verifier: Verifier, headers: dict[str, str], now: float = NOW) -> str:
    return verifier.check("PUT", "/api/nodes/a?x=1", headers, b"body", now=now)


def test_a_signed_request_is_believed(verifier: Verifier) -> None:
    assert check(verifier, signed()) == "n1"


def test_the_secret_is_not_in_the_headers() -> None:
    assert SECRET.decode() not in str(signed())


@pytest.mark.parametrize(
    ("method", "target", "body"),
    [
        ("POST", "/api/nodes/a?x=1", b"body"),
        ("PUT", "/api/nodes/b?x=1", b"body"),
        ("PUT", "/api/nodes/a?x=1", b"Body"),
    ],
)
def test_any_change_to_the_request_is_noticed(
    verifier: Verifier, method: str, target: str, body: bytes
) -> None:
    with pytest.raises(InvalidSignature, match=r"the signature is wrong.*cluster\.secret"):
        verifier.check(method, target, signed(), body, now=NOW)


@pytest.mark.parametrize("header", [TIME, NONCE])
def test_a_change_to_its_time_or_nonce_is_noticed(verifier: Verifier, header: str) -> None:
    with pytest.raises(InvalidSignature, match="signature is wrong"):
        check(verifier, {**signed(), header: "1800000001.000"})


@pytest.mark.parametrize("header", [TIME, NONCE, SIGNATURE])
def test_a_request_without_one_of_the_headers_is_told_which_there_are(
    verifier: Verifier, header: str
) -> None:
    headers = signed()
    del headers[header]
    with pytest.raises(InvalidSignature, match="not signed"):
        check(verifier, headers)


def test_another_secret_is_refused_in_words_that_say_so(verifier: Verifier) -> None:
    with pytest.raises(InvalidSignature, match=r"another cluster\.secret"):
        check(verifier, signed(secret=b"another"))


@pytest.mark.parametrize(("when", "words"), [(NOW - 301, "301 s before"), (NOW + 301, "301 s after")])
def test_a_request_of_another_time_is_refused_at_the_edge_of_the_window(when: float, words: str) -> None:
    verifier = Verifier(SECRET, window=300)
    with pytest.raises(InvalidSignature, match=rf"{words} now.*clock_window"):
        check(verifier, signed(now=when))
    edge = NOW + (when - NOW) / 301 * 300
    assert check(verifier, signed("at the edge", now=edge)) == "at the edge"


def test_the_same_request_is_believed_once_however_late_within_the_window(verifier: Verifier) -> None:
    check(verifier, signed())
    for later in (0, 200, 300):
        with pytest.raises(InvalidSignature, match="received before"):
            check(verifier, signed(), now=NOW + later)


def test_a_request_recorded_before_the_verifier_began_is_refused(verifier: Verifier) -> None:
    with pytest.raises(InvalidSignature, match="before this process began"):
        check(verifier, signed(now=NOW - 101))


def test_who_signs_by_a_clock_that_is_behind_is_told_so_by_the_nonce_of_its_own_request(
    verifier: Verifier,
) -> None:
    with pytest.raises(TooEarly, match=r"signed 1\.0 s before") as refused:
        check(verifier, signed("mine", now=NOW - 101))
    assert refused.value.nonce == "mine"


def test_an_answer_belongs_to_its_request_alone(verifier: Verifier) -> None:
    signature = verifier.sign_answer("n1", 200, b"{}")
    signer = Signer(SECRET)
    signer.check_answer("n1", 200, b"{}", signature)
    for nonce, status, body in (("n2", 200, b"{}"), ("n1", 404, b"{}"), ("n1", 200, b"[]")):
        with pytest.raises(InvalidSignature):
            signer.check_answer(nonce, status, body, signature)


def test_lines_of_a_stream_cannot_be_changed_swapped_or_moved_to_another(verifier: Verifier) -> None:
    lines = [verifier.sign_line("n1", number, b'{"beat":%d}' % number) for number in range(2)]
    signer = Signer(SECRET)
    assert [signer.verify_line("n1", number, line) for number, line in enumerate(lines)] == [
        b'{"beat":0}',
        b'{"beat":1}',
    ]
    for nonce, number, line in (("n1", 0, lines[1]), ("n2", 0, lines[0]), ("n1", 0, b"garbage\n")):
        with pytest.raises(InvalidSignature):
            signer.verify_line(nonce, number, line)


@pytest.mark.parametrize("time", ["nan", "-inf", "inf", "1e999", "now"])
def test_a_signed_time_that_is_no_time_is_refused(time: str) -> None:
    target, body = "/api/nodes/a?x=1", b"body"
    signature = _mac(derive_key(SECRET), "PUT", target, time, "n1", body)
    with pytest.raises(InvalidSignature, match=f"{TIME} is '{time}'"):
        check(Verifier(SECRET, window=300), {TIME: time, NONCE: "n1", SIGNATURE: signature})
