"""The authorizer's options: one class, principals that are some, and nothing set by default."""

import pytest

from odradek.broker.config.access_options import STANDARD_AUTHORIZER, AccessOptions
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError


def test_by_default_there_is_none() -> None:
    config = BrokerConfig()
    assert (config.authorizer_class_name, config.super_users, config.allow_everyone_if_no_acl_found) == ("", "", False)


def test_the_one_that_there_is() -> None:
    config = BrokerConfig({"authorizer.class.name": STANDARD_AUTHORIZER, "super.users": "User:a;User:CN=b, O=c"})
    assert config.authorizer_class_name == STANDARD_AUTHORIZER
    assert config.super_users == "User:a;User:CN=b, O=c"
    assert BrokerConfig({"authorizer.class.name": ""}).authorizer_class_name == ""


@pytest.mark.parametrize("name", ["kafka.security.authorizer.AclAuthorizer", "StandardAuthorizer", "x"])
def test_another_is_refused_and_why(name: str) -> None:
    said = f"Invalid value {name} .*classes of Java are not loaded.*{STANDARD_AUTHORIZER}"
    with pytest.raises(ConfigError, match=said):
        AccessOptions.authorizer_class_name.parse(name)


@pytest.mark.parametrize("text", ["admin", "User:a;admin", "User:a,b;c"])
def test_what_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="principals separated by semicolons"):
        AccessOptions.super_users.parse(text)
