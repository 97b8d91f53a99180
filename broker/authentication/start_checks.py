"""What SASL needs of a configuration before a broker starts: each mistake with a sentence that says what to write.
Pure, but for the question whether a library is installed.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from odradek.broker.authentication.plain import USER_PREFIX
from odradek.broker.authentication.unsecured_token import unsecured_rules
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.sasl_options import GSSAPI, MECHANISMS, OAUTHBEARER, PLAIN
from odradek.runtime.jaas import MalformedJaas, parse_jaas

MODULES: Final = {
    PLAIN: "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
    OAUTHBEARER: "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule",
}


def problems(names: Iterable[str], config: BrokerConfig) -> list[str]:
    """What is wrong with the listeners of these names, all of which speak SASL; nothing for a good configuration."""
    return [problem for name in names for problem in _of_listener(name, config)]


def jaas_name(listener: str, mechanism: str) -> str:
    """The option with the login module of a mechanism, as it is written."""
    return f"listener.name.{listener.lower()}.{mechanism.lower()}.sasl.jaas.config"


def _of_listener(name: str, config: BrokerConfig) -> Iterator[str]:
    enabled = config.listener(name).sasl_enabled_mechanisms
    if not enabled or GSSAPI in enabled:
        kerberos = f"{GSSAPI} (Kerberos), Kafka's default, is not served" if enabled else "it names none"
        yield (
            f"the listener {name} speaks SASL, and sasl.enabled.mechanisms has no mechanism for it: {kerberos}; set it "
            f"to some of {', '.join(MECHANISMS)}"
        )
    for mechanism in enabled:
        if mechanism in MODULES:
            yield from _of_mechanism(name, mechanism, config)


def _of_mechanism(name: str, mechanism: str, config: BrokerConfig) -> Iterator[str]:
    options = config.listener(name).mechanism(mechanism)
    users = 0
    if options.sasl_jaas_config is not None:
        try:
            module, values = parse_jaas(options.sasl_jaas_config)
        except MalformedJaas as error:
            yield f"{jaas_name(name, mechanism)} cannot be used: {error}"
            return
        if module != MODULES[mechanism]:
            yield f"{jaas_name(name, mechanism)} names another login module than {MODULES[mechanism]}"
            return
        users = sum(option.startswith(USER_PREFIX) for option in values)
        if mechanism == OAUTHBEARER:
            try:
                unsecured_rules(values)
            except ValueError as error:
                yield f"{jaas_name(name, mechanism)} cannot be used: {error}"
    if mechanism == PLAIN and not users and options.sasl_plain_password_file is None:
        yield (
            f"the listener {name} offers PLAIN, and nobody has a password: give users in {jaas_name(name, mechanism)} "
            f'({MODULES[PLAIN]} required user_NAME="PASSWORD";) or in sasl.plain.password.file'
        )
    if mechanism == OAUTHBEARER:
        yield from _of_tokens(
            name,
            has_keys=options.sasl_oauthbearer_jwks_endpoint_url is not None,
            is_unsecured=options.sasl_oauthbearer_allow_unsecured_tokens,
        )


def _of_tokens(name: str, *, has_keys: bool, is_unsecured: bool) -> Iterator[str]:
    if has_keys:
        from odradek.broker.authentication.token_signatures import require_library

        try:
            require_library()
        except ImportError as error:
            yield f"the listener {name}: {error}"
    elif not is_unsecured:
        yield (
            f"the listener {name} offers OAUTHBEARER, and tokens cannot be checked: set "
            "sasl.oauthbearer.jwks.endpoint.url to the keys of their issuer (for trials, "
            "sasl.oauthbearer.allow.unsecured.tokens=true takes tokens that nobody has signed)"
        )
