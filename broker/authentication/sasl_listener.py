"""What one listener offers of SASL: its mechanisms, and what each of them goes by.

The options are read when an exchange begins, so that one that is changed at run time counts from the next on. A JAAS
line that cannot be used then is said so, and the one before counts on. Files and keys are those of the start
(authentication.py).
"""

import logging
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from odradek.broker.authentication.failures import AuthenticationCounts
from odradek.broker.authentication.jwks import Jwks
from odradek.broker.authentication.mechanism import Authenticated, Exchange
from odradek.broker.authentication.oauthbearer import OAuthBearerExchange
from odradek.broker.authentication.password_checks import PasswordChecks
from odradek.broker.authentication.password_file import PasswordFile
from odradek.broker.authentication.plain import PlainExchange, WrittenUsers
from odradek.broker.authentication.scram import ScramExchange
from odradek.broker.authentication.token_claims import MS_PER_S, TokenRefused, TokenRules, check_claims, read_claims
from odradek.broker.authentication.token_signatures import UnknownKey, verified_payload
from odradek.broker.authentication.unsecured_token import unsecured_payload, unsecured_rules
from odradek.broker.cluster.scram_credentials import ScramCredentials
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listener_config import MechanismConfig
from odradek.broker.config.sasl_options import MECHANISMS, OAUTHBEARER, PLAIN
from odradek.runtime.environment import Environment
from odradek.runtime.jaas import MalformedJaas, parse_jaas

logger = logging.getLogger(__name__)

KEY_BYTES: Final = 32
NONCE_BYTES: Final = 18
NO_OPTIONS: Final[Mapping[str, str]] = {}


@dataclass(frozen=True, slots=True)
class SaslParts:
    """What the listeners of a broker share."""

    environment: Environment
    credentials: Callable[[], ScramCredentials]
    """Of the cluster, as the broker knows them now."""
    checks: PasswordChecks
    counts: AuthenticationCounts
    files: Mapping[str, PasswordFile]
    """By their paths."""
    keys: Mapping[str, Jwks]
    """By their URLs."""


class SaslListener:
    """One listener."""

    def __init__(self, name: str, config: BrokerConfig, parts: SaslParts) -> None:
        self.name = name
        self._config = config
        self._parts = parts
        self.environment = parts.environment
        self.counts = parts.counts
        self._key = parts.environment.random_bytes(KEY_BYTES)
        self._lines: dict[str, str | None] = {}
        """By mechanism, the JAAS line that was read last."""
        self._options: dict[str, Mapping[str, str]] = {}
        """What stands in the last one that could be used."""
        self._users = WrittenUsers(NO_OPTIONS, self._key)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Those that clients may use."""
        enabled = self._config.listener(self.name).sasl_enabled_mechanisms
        return tuple(mechanism for mechanism in MECHANISMS if mechanism in enabled)

    def max_reauth_ms(self, mechanism: str) -> int:
        """0 and less: no limit."""
        return self._config.listener(self.name).mechanism(mechanism).connections_max_reauth_ms

    @property
    def receive_bytes_max(self) -> int:
        """The longest request before authentication."""
        return self._config.listener(self.name).sasl_server_max_receive_size

    @property
    def failure_delay_ms(self) -> int:
        return self._config.connection_failed_authentication_delay_ms

    def begin(self, mechanism: str) -> Exchange:
        """An exchange of one of its mechanisms."""
        options = self._config.listener(self.name).mechanism(mechanism)
        jaas = self._jaas(mechanism, options.sasl_jaas_config)
        if mechanism == PLAIN:
            file = self._parts.files.get(options.sasl_plain_password_file or "")
            return PlainExchange(self._users, None if file is None else file.users, self._parts.checks)
        if mechanism == OAUTHBEARER:
            return OAuthBearerExchange(partial(self._validate, options, jaas))
        nonce = b64encode(self.environment.random_bytes(NONCE_BYTES)).decode()
        return ScramExchange(mechanism, self._parts.credentials(), nonce)

    def _jaas(self, mechanism: str, line: str | None) -> Mapping[str, str]:
        """The options of the mechanism's login module."""
        if mechanism not in self._lines or self._lines[mechanism] != line:
            self._lines[mechanism] = line
            try:
                self._options[mechanism] = NO_OPTIONS if line is None else parse_jaas(line).options
            except MalformedJaas as error:
                logger.error(
                    "sasl.jaas.config of listener %s for %s cannot be used, and the one before counts on: %s",
                    self.name, mechanism, error,
                )  # fmt: skip
            if mechanism == PLAIN:
                self._users = WrittenUsers(self._options.get(mechanism, NO_OPTIONS), self._key)
        return self._options.get(mechanism, NO_OPTIONS)

    def _validate(self, options: MechanismConfig, jaas: Mapping[str, str], token: str) -> Authenticated:
        """Who bears this token. Raises TokenRefused."""
        now_ms = self.environment.now_ms()
        keys = self._parts.keys.get(options.sasl_oauthbearer_jwks_endpoint_url or "")
        if keys is None:
            if not options.sasl_oauthbearer_allow_unsecured_tokens:
                raise TokenRefused("sasl.oauthbearer.jwks.endpoint.url names no keys since the broker has started")
            return check_claims(read_claims(unsecured_payload(token)), unsecured_rules(jaas), now_ms)
        try:
            payload = verified_payload(token, keys.keys)
        except UnknownKey:
            keys.want()
            raise
        return check_claims(read_claims(payload), rules_of(options), now_ms)


def rules_of(options: MechanismConfig) -> TokenRules:
    """What these options ask of signed tokens."""
    return TokenRules(
        issuer=options.sasl_oauthbearer_expected_issuer,
        audiences=options.sasl_oauthbearer_expected_audience,
        scope_claim=options.sasl_oauthbearer_scope_claim_name,
        user_claim=options.sasl_oauthbearer_sub_claim_name,
        required_scope=options.sasl_oauthbearer_required_scope,
        clock_skew_ms=options.sasl_oauthbearer_clock_skew_seconds * MS_PER_S,
    )
