"""`ssl.principal.mapping.rules`: examples of Kafka (SslPrincipalMapperTest.java), and what is refused at the start."""

import pytest

from odradek.broker.tls.principal_mapping import PrincipalMapping
from odradek.broker.tls.tls_error import TlsError

KAFKAS = ", ".join(
    (
        "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L",
        "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L",
        "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U",
        "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U",
        "DEFAULT",
    )
)


@pytest.mark.parametrize(
    ("name", "principal"),
    [
        ("CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
        ("CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
        ("cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
        ("cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
        ("OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ],
)
def test_kafkas_own_examples(name: str, principal: str) -> None:
    assert PrincipalMapping(KAFKAS).principal_name(name) == principal


@pytest.mark.parametrize(
    ("rules", "name", "principal"),
    [
        ("DEFAULT", "CN=a", "CN=a"),
        ("", "CN=a", None),
        (" DEFAULT , ", "CN=a", "CN=a"),
        ("RULE:CN=(.*)/$1/", "CN=a", "a"),
        ("RULE:CN=(.*)/$1/", "O=a", None),
        ("RULE:CN=b/x/,DEFAULT", "CN=ab", "CN=ab"),
        ("RULE:^CN=(.*?), OU=(.*?)$/$1/", "CN=a, OU=b", "a"),
        (r"RULE:CN=(.*),O=a\/b/$1/", "CN=x,O=a/b", "x"),
        ("RULE:CN=(.*)/user-$1-$0/", "CN=a", "user-a-CN=a"),
        ("RULE:CN=(.*)/$1@$2/", "CN=a", "a@$2"),
        ("RULE:CN=(.*)/$12/", "CN=a", "a2"),
        (r"RULE:CN=(.*)/\$1\\/", "CN=a", "$1\\"),
        ("RULE:CN=(?<who>.*)/${who}/", "CN=a", "a"),
        ("RULE:(CN)=(x)?.*/$2y/", "CN=a", "y"),
        ("RULE:.*/x/", "CN=a", "xx"),  # Java finds the empty text at the end, too
        ("RULE:CN=(.)|b/$1/", "CN=a", "a"),
        ("RULE:a+?/x/", "aaa", "xxx"),
        ("RULE:a*?/-/", "aaa", "-a-a-a-"),
    ],
)
def test_rules(rules: str, name: str, principal: str | None) -> None:
    assert PrincipalMapping(rules).principal_name(name) == principal


@pytest.mark.parametrize(
    "rules",
    [
        "DEFAULTS",
        "default",
        "RULE:CN=(.*)/$1/l",
        "RULE:CN=(.*)/$1",
        "RULE:CN=(.*)/$1/,nothing",
        "RULE:CN=(.*)/$/",
        "RULE:CN=(.*)/$x/",
        "RULE:CN=(.*)/${who}/",
        "RULE:CN=.*/$1/",
        "RULE:CN=(.*)/a\\",
        "RULE:CN=([a-z&&[^x]])/$1/",
        "RULE:CN=(/$1/",
    ],
)
def test_what_no_client_could_be_named_by_is_refused(rules: str) -> None:
    """Kafka takes some of them, and fails for each client."""
    with pytest.raises(TlsError, match=r"^ssl\.principal\.mapping\.rules: "):
        PrincipalMapping(rules)


def test_a_name_that_was_made_to_look_like_two_parts_stays_one() -> None:
    r"""`CN=admin,OU=x` as one attribute is `CN=admin\,OU\=x`, and a rule that ends at a comma sees the slash."""
    mapping = PrincipalMapping("RULE:^CN=([^,\\\\]+),.*$/$1/,RULE:.*/nobody/")
    assert mapping.principal_name("CN=admin,OU=x") == "admin"
    assert mapping.principal_name("CN=admin\\,OU\\=x,O=y") == "nobodynobody"
