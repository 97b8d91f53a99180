"""A listener's certificates take the place of older ones, or are refused: what may change, and what brokers need."""

from typing import Any

import pytest

from odradek.broker.access.principal import ANONYMOUS, Principal, user
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.tls.listener_tls import ListenerTls, load
from odradek.broker.tls.tls_error import TlsError
from odradek.broker.tls.tls_settings import TlsSettings
from tests.broker.tls.authority import CLIENT, SERVER, Authority, Issued, tls_settings

DAY_MS = 24 * 60 * 60 * 1000


class Files(dict[str, bytes]):
    """What may be read."""

    def read(self, path: str) -> bytes:
        return self[path]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority("authority")


def settings_with(own: Issued, trusted: Authority | None, **values: Any) -> TlsSettings:
    return tls_settings(**(own.as_values() | ({} if trusted is None else trusted.as_trusted()) | values))


def opened(settings: TlsSettings, *, is_inter_broker: bool = False) -> ListenerTls:
    return load(settings, Files().read, is_inter_broker=is_inter_broker)


def taken(listener: ListenerTls, settings: TlsSettings) -> bool:
    newer = listener.renewed(settings)
    if newer is not None:
        listener.take(newer)
    return newer is not None


def test_each_connection_gets_the_newest_context(authority: Authority) -> None:
    first, second = authority.issue("broker"), authority.issue("broker")
    listener = opened(settings_with(first, None))
    before = listener.context
    assert not taken(listener, settings_with(first, None))
    assert listener.context is before
    assert taken(listener, settings_with(second, None))
    assert listener.context is not before


def test_a_file_that_has_changed_is_read_again(authority: Authority) -> None:
    files = Files({"own": authority.issue("broker").pem.encode()})
    settings = tls_settings(ssl_keystore_type="PEM", ssl_keystore_location="own")
    listener = load(settings, files.read, is_inter_broker=False)
    assert not taken(listener, settings)
    files["own"] = authority.issue("broker", days=(-1, 300)).pem.encode()
    assert taken(listener, settings)
    assert listener.days_left(0) > 299
    files["own"] = files["own"][:-100]
    with pytest.raises(TlsError, match="own"):
        listener.renewed(settings)


@pytest.mark.parametrize(
    ("name", "hosts", "why"),
    [
        ("broker", ("localhost", "127.0.0.1"), None),
        ("BROKER", ("localhost", "127.0.0.1", "b1.example"), None),
        ("other", ("localhost", "127.0.0.1"), "from 'CN=broker' to 'CN=other'; ssl.allow.dn.changes=true"),
        ("broker", ("localhost",), "lacks alternative names.*ssl.allow.san.changes=true"),
        ("broker", (), "lacks alternative names"),
    ],
)
def test_names_that_change(name: str, hosts: tuple[str, ...], why: str | None, authority: Authority) -> None:
    listener = opened(settings_with(authority.issue("broker"), None))
    changed = settings_with(authority.issue(name, hosts=hosts), None)
    if why is None:
        assert taken(listener, changed)
        return
    before = listener.context
    with pytest.raises(TlsError, match=why):
        listener.renewed(changed)
    assert listener.context is before


def test_names_may_change_where_that_is_allowed_at_the_start(authority: Authority) -> None:
    old, new = authority.issue("broker"), authority.issue("other", hosts=())
    allowed = {"ssl_allow_dn_changes": True, "ssl_allow_san_changes": True}
    assert taken(opened(settings_with(old, None, **allowed)), settings_with(new, None))
    with pytest.raises(TlsError, match="name would change"):
        opened(settings_with(old, None)).renewed(settings_with(new, None, **allowed))


def test_a_truststore_does_not_come_to_a_listener_without_one(authority: Authority) -> None:
    own = authority.issue("broker")
    with pytest.raises(TlsError, match="a truststore cannot come"):
        opened(settings_with(own, None)).renewed(settings_with(own, authority))


def test_a_keystore_does_not_go(authority: Authority) -> None:
    listener = opened(settings_with(authority.issue("broker"), None))
    with pytest.raises(TlsError, match="it has no certificate"):
        listener.renewed(tls_settings())


def test_brokers_that_would_not_trust_one_another_do_not_start(authority: Authority) -> None:
    own = authority.issue("broker")
    with pytest.raises(TlsError, match=r"brokers would not trust one another.*unable to get local issuer"):
        opened(settings_with(own, Authority("other")), is_inter_broker=True)
    opened(settings_with(own, Authority("other")))  # for clients it may be as it is


@pytest.mark.parametrize("usages", [(SERVER,), (CLIENT,)])
def test_a_brokers_certificate_is_for_both_sides(usages: Any, authority: Authority) -> None:
    own = authority.issue("broker", usages=usages)
    with pytest.raises(TlsError, match="brokers would not trust one another"):
        opened(settings_with(own, authority, ssl_client_auth="required"), is_inter_broker=True)


def test_an_authority_that_brokers_need_is_not_removed(authority: Authority) -> None:
    """Step by step it works: first both are trusted, then certificates are of the new one, then the old one goes."""
    new = Authority("new")
    both = new.as_trusted() | {"ssl_truststore_certificates": authority.pem + new.pem}
    old_own, new_own = authority.issue("broker"), new.issue("broker")
    listener = opened(settings_with(old_own, authority, ssl_client_auth="required"), is_inter_broker=True)
    for premature in (settings_with(old_own, new), settings_with(new_own, new), settings_with(new_own, authority)):
        with pytest.raises(TlsError, match="brokers would not trust one another"):
            listener.renewed(premature)
    assert taken(listener, settings_with(old_own, None, **both))
    assert taken(listener, settings_with(new_own, None, **both))
    assert taken(listener, settings_with(new_own, new))


def test_the_principal_of_a_client(authority: Authority) -> None:
    der = authority.issue("client").der
    listener = opened(settings_with(authority.issue("broker"), authority, ssl_client_auth="requested"))
    assert listener.principal_of(der, 0) == Principal("User", "CN=client")
    ruled = settings_with(authority.issue("broker"), authority, ssl_principal_mapping_rules="RULE:^CN=(cl.*)$/$1/U")
    assert opened(ruled).principal_of(der, 0) == user("CLIENT")


def test_a_client_that_no_rule_fits_is_not_let_in(authority: Authority) -> None:
    settings = settings_with(authority.issue("broker"), None, ssl_principal_mapping_rules="RULE:^CN=(x.*)$/$1/")
    with pytest.raises(TlsError, match=r"mapping\.rules fits the client's 'CN=a\\nb'"):
        opened(settings).principal_of(authority.issue("a\nb").der, 0)


def test_a_client_whose_certificate_has_ended_since_is_not_let_in(authority: Authority) -> None:
    """A session that goes on by its ticket is not verified again."""
    listener = opened(settings_with(authority.issue("broker"), None))
    client = authority.issue("client", days=(-1, 1))
    after_ms = int(client.certificate.not_valid_after_utc.timestamp() * 1000)
    assert listener.principal_of(client.der, after_ms) == user("CN=client")
    with pytest.raises(TlsError, match="'CN=client', has ended"):
        listener.principal_of(client.der, after_ms + 1)


def test_with_sasl_a_certificate_is_nobodys_name(authority: Authority) -> None:
    own = authority.issue("broker")
    values = own.as_values() | authority.as_trusted() | {"ssl_client_auth": "required"}
    listener = opened(tls_settings(SecurityProtocol.SASL_SSL, has_own_client_auth=True, **values))
    assert listener.principal_of(authority.issue("client").der, 0) is ANONYMOUS
    assert listener.own_principal is None


def test_whom_other_brokers_take_this_one_for(authority: Authority) -> None:
    own = authority.issue("broker")
    assert opened(settings_with(own, authority, ssl_client_auth="required")).own_principal == user("CN=broker")
    assert opened(settings_with(own, authority)).own_principal is ANONYMOUS


def test_days_count_to_the_first_certificate_of_the_chain_that_ends() -> None:
    root = Authority("root")
    leaf = Authority("inner", root).issue("broker", days=(-1, 300))
    listener = opened(settings_with(leaf, None))
    now_ms = listener.expires_ms - 30 * DAY_MS
    assert listener.days_left(now_ms) == 30
    assert listener.days_left(listener.expires_ms + DAY_MS) == -1
    assert listener.expires_ms < leaf.certificate.not_valid_after_utc.timestamp() * 1000


def test_rules_that_cannot_be_used_refuse_the_start(authority: Authority) -> None:
    with pytest.raises(TlsError, match=r"ssl\.principal\.mapping\.rules"):
        opened(settings_with(authority.issue("broker"), None, ssl_principal_mapping_rules="RULE:("))
