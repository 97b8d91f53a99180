"""Two contexts that come to terms, and some that do not; the words are OpenSSL's. More of them in test_contexts.py."""

from odradek.broker.tls.trial import handshake_problem
from tests.broker.tls.authority import Authority, server_context


def test_what_is_wrong_is_said_by_who_notices() -> None:
    authority, stranger = Authority("authority"), Authority("stranger")
    served = server_context(authority.issue("broker"))
    trusting, other = authority.client_context(), stranger.client_context()
    trusting.check_hostname = other.check_hostname = False
    assert handshake_problem(served, trusting) is None
    assert handshake_problem(served, other) == "unable to get local issuer certificate"


def test_a_certificate_that_has_ended() -> None:
    authority = Authority("authority")
    trusting = authority.client_context()
    trusting.check_hostname = False
    ended = server_context(authority.issue("broker", days=(-2, -1)))
    assert handshake_problem(ended, trusting) == "certificate has expired"
