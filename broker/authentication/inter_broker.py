"""This broker as the client of others: by what it says who it is, on the listener that brokers use among themselves.

    SASL_PLAINTEXT, SASL_SSL    `sasl.mechanism.inter.broker.protocol`, with `username` and `password` of the listener's
                                `sasl.jaas.config` for it; OAUTHBEARER with a token (`…token.endpoint.url`)
    SSL                         the certificate of the listener
    PLAINTEXT                   nothing: it is ANONYMOUS

The options are read for each connection, so that a password that is changed at run time counts for the next one.
"""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import unquote, urlencode, urlsplit

from odradek.broker.access.principal import ANONYMOUS, Principal
from odradek.broker.authentication.https_fetch import fetch
from odradek.broker.authentication.start_checks import MODULES, jaas_name
from odradek.broker.authentication.unsecured_token import LOGIN_NAME, unsecured_token
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.option import ConfigError
from odradek.broker.config.sasl_options import MECHANISMS, OAUTHBEARER
from odradek.broker.config.security_protocol import SecurityProtocol
from odradek.broker.disk.disk import Disk
from odradek.runtime.environment import Environment
from odradek.runtime.jaas import MalformedJaas, parse_jaas

USER: Final = "User"
FILE_SCHEME: Final = "file:"


def sasl_settings(
    config: BrokerConfig, listener: str, protocol: SecurityProtocol, environment: Environment, disk: Disk
) -> dict[str, Any]:
    """The settings of a client (`ClientConfig`) that say by SASL who this broker is; none for a listener without.
    Raises ConfigError."""
    if not protocol.needs_authentication:
        return {}
    mechanism, options = _login(config, listener)
    settings: dict[str, Any] = {"security_protocol": protocol.name, "sasl_mechanism": mechanism}
    if mechanism == OAUTHBEARER:
        url = config.listener(listener).mechanism(mechanism).sasl_oauthbearer_token_endpoint_url
        settings["sasl_oauthbearer_token_provider"] = _token_provider(url, options, environment, disk)
        return settings
    return settings | {"sasl_username": options["username"], "sasl_password": options["password"]}


def check_login(config: BrokerConfig, listener: str, protocol: SecurityProtocol) -> None:
    """That nothing is missing for `sasl_settings`. Raises ConfigError."""
    if protocol.needs_authentication:
        mechanism, options = _login(config, listener)
        if mechanism == OAUTHBEARER:
            _check_tokens(config.listener(listener).mechanism(mechanism).sasl_oauthbearer_token_endpoint_url, options)


def inter_broker_principal(config: BrokerConfig, listener: str, protocol: SecurityProtocol) -> Principal | None:
    """Whom other brokers take this one for, on that listener; None where only a certificate or a token says. Raises
    ConfigError."""
    if not protocol.needs_authentication:
        return None if protocol.is_encrypted else ANONYMOUS
    mechanism, options = _login(config, listener)
    if mechanism == OAUTHBEARER:
        has_endpoint = config.listener(listener).mechanism(mechanism).sasl_oauthbearer_token_endpoint_url is not None
        user = None if has_endpoint else options.get(LOGIN_NAME)
    else:
        user = options["username"]
    return None if user is None else Principal(USER, user)


def _login(config: BrokerConfig, listener: str) -> tuple[str, Mapping[str, str]]:
    """Mechanism, and the options of its login module. Raises ConfigError for what is missing."""
    mechanism = config.sasl_mechanism_inter_broker_protocol
    if mechanism not in MECHANISMS:
        raise ConfigError(
            f"brokers talk to one another by SASL on listener {listener}, and sasl.mechanism.inter.broker.protocol is "
            f"{mechanism}, Kafka's default, which is not served: set it to one of {', '.join(MECHANISMS)}"
        )
    if mechanism not in config.listener(listener).sasl_enabled_mechanisms:
        raise ConfigError(
            f"sasl.mechanism.inter.broker.protocol is {mechanism}, which sasl.enabled.mechanisms of listener "
            f"{listener} does not name: add it there"
        )
    line, name = config.listener(listener).mechanism(mechanism).sasl_jaas_config, jaas_name(listener, mechanism)
    if line is None:
        if mechanism == OAUTHBEARER:
            return mechanism, {}
        raise ConfigError(f"{name} is missing, by which this broker logs in at others: {_example(mechanism)}")
    try:
        _, options = parse_jaas(line)
    except MalformedJaas as error:
        raise ConfigError(f"{name} cannot be used: {error}") from None
    if mechanism != OAUTHBEARER and not (options.get("username") and options.get("password")):
        raise ConfigError(f"{name} has no username and password, by which this broker logs in: {_example(mechanism)}")
    return mechanism, options


def _example(mechanism: str) -> str:
    return f'{MODULES[mechanism]} required username="NAME" password="PASSWORD";'


# --------------------------------------------------------------------------------------------------------------- tokens
def _token_provider(
    url: str | None, options: Mapping[str, str], environment: Environment, disk: Disk
) -> Callable[[], Awaitable[str]]:
    """Raises ConfigError."""
    _check_tokens(url, options)
    if url is None:
        return partial(_unsecured, options, environment)
    if url.startswith(FILE_SCHEME):
        return partial(_from_file, unquote(urlsplit(url).path), environment, disk)
    return partial(_from_endpoint, url, options, environment)


def _check_tokens(url: str | None, options: Mapping[str, str]) -> None:
    """Raises ConfigError."""
    if url is None and LOGIN_NAME not in options:
        raise ConfigError(
            "sasl.oauthbearer.token.endpoint.url is missing, by which this broker gets the token to log in with at "
            "others"
        )
    asks = url is not None and not url.startswith(FILE_SCHEME)
    if asks and not (options.get("clientId") and options.get("clientSecret")):
        raise ConfigError("sasl.jaas.config of OAUTHBEARER has no clientId and clientSecret to ask for a token with")


async def _unsecured(options: Mapping[str, str], environment: Environment) -> str:
    return unsecured_token(options, environment.now_ms())


async def _from_file(path: str, environment: Environment, disk: Disk) -> str:
    """Raises OSError."""
    return (await environment.run_blocking(disk.read_whole, path)).decode("ascii", "replace").strip()


async def _from_endpoint(url: str, options: Mapping[str, str], environment: Environment) -> str:
    """By a client's own credentials (RFC 6749, 4.4; HttpAccessTokenRetriever.java). Raises OSError, ValueError."""
    import json
    from base64 import b64encode

    form = {"grant_type": "client_credentials"}
    if scope := options.get("scope"):
        form["scope"] = scope
    basic = f"{options['clientId']}:{options['clientSecret']}"
    headers = {
        "Authorization": f"Basic {b64encode(basic.encode()).decode()}",
        "Content-Type": "application/x-www-form-urlencoded",
        "Accept": "application/json",
    }
    body = urlencode(form).encode()
    data = await environment.run_blocking(fetch, url, environment.precise_s, body=body, headers=headers)
    match json.loads(data):
        case {"access_token": str(token)}:
            return token
        case _:
            raise ValueError("the answer of the token endpoint has no access_token")
