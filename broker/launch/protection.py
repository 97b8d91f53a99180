"""What protects a broker from others, as its options say: what is told of it at a start, and what `--secure` refuses.

A listener on loopback is for who is on the machine. On any other it matters whether who connects has to say who they
are, and whether what is sent can be read on the way. The page of metrics asks nobody who they are, and is plain text.
Who writes to the metadata store may do everything, so an etcd that does not ask who writes is an open door as well.

Nothing here is decided by a connection: these are sentences about settings. Pure, but for `tell`.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.listener_options import listeners_in, row_of, scoped_option
from odradek.broker.config.listeners import Listener
from odradek.broker.config.option import ConfigMistakes
from odradek.broker.config.security_protocol import SecurityProtocol, parse_protocol_map, protocol_of
from odradek.broker.config.store_address import parse_store_address
from odradek.broker.launch.listen_options import ListenerError

logger = logging.getLogger(__name__)

REQUIRED: Final = "required"
BEARER: Final = "OAUTHBEARER"


@dataclass(frozen=True, slots=True)
class ListenerProtection:
    """What protects one listener."""

    listener: Listener
    protocol: SecurityProtocol
    client_auth: str = "none"
    """`ssl.client.auth`, as it counts here."""
    mechanisms: tuple[str, ...] = ()
    """Of SASL."""
    takes_unsigned_tokens: bool = False

    @property
    def is_open(self) -> bool:
        """Whether others can reach it."""
        return not self.listener.is_loopback

    @property
    def knows_clients(self) -> bool:
        """Whether who connects has to prove who they are."""
        if self.protocol.needs_authentication:
            return not self.takes_unsigned_tokens
        return self.protocol is SecurityProtocol.SSL and self.client_auth == REQUIRED

    def __str__(self) -> str:
        if self.protocol.needs_authentication:
            how = f" ({', '.join(self.mechanisms)})" if self.mechanisms else ""
        elif self.protocol is SecurityProtocol.SSL:
            how = f" (client certificates: {self.client_auth})"
        else:
            how = ", without authentication or encryption"
        return f"listener {self.listener} speaks {self.protocol.name}{how}"


@dataclass(frozen=True, slots=True)
class Protection:
    """What protects a broker, or brokers with the same options. `etcd_lacks`: what an etcd that has the metadata does
    without, in words; none where all is well, or where it is no etcd."""

    listeners: Sequence[ListenerProtection]
    metrics: Listener | None = None
    has_authorizer: bool = False
    allows_without_acl: bool = False
    etcd_lacks: tuple[str, ...] = ()

    @property
    def open_listeners(self) -> list[ListenerProtection]:
        return [each for each in self.listeners if each.is_open]


def protection_of(listeners: Iterable[Listener], config: BrokerConfig, metrics: Listener | None) -> Protection:
    """Of a broker that has these listeners and options."""
    protocols = parse_protocol_map(config.listener_security_protocol_map)
    return Protection(
        [_of_listener(each, protocol_of(each.name, protocols), config) for each in listeners],
        metrics,
        has_authorizer=bool(config.authorizer_class_name),
        allows_without_acl=config.allow_everyone_if_no_acl_found,
        etcd_lacks=tuple(_lacks_of_etcd(config)),
    )


def _of_listener(listener: Listener, protocol: SecurityProtocol, config: BrokerConfig) -> ListenerProtection:
    view = config.listener(listener.name)
    is_mutual = protocol is SecurityProtocol.SSL
    mechanisms = view.sasl_enabled_mechanisms if protocol.needs_authentication else ()
    return ListenerProtection(
        listener,
        protocol,
        client_auth=view.ssl_client_auth if is_mutual else "none",
        mechanisms=mechanisms,
        takes_unsigned_tokens=BEARER in mechanisms and view.mechanism(BEARER).sasl_oauthbearer_allow_unsecured_tokens,
    )


def _lacks_of_etcd(config: BrokerConfig) -> Iterator[str]:
    if parse_store_address(config.metadata_store).kind != "etcd":
        return
    if not config.metadata_etcd_ca_location:
        yield "TLS (metadata.etcd.ca.location)"
    has_user = config.metadata_etcd_username and config.metadata_etcd_password
    if not has_user and not config.metadata_etcd_certificate_location:
        yield (
            "credentials (metadata.etcd.username and metadata.etcd.password, or metadata.etcd.certificate.location and "
            "metadata.etcd.key.location)"
        )


# ------------------------------------------------------------------------------------------------ what is told of it
def warnings(protection: Protection) -> list[str]:
    """What it means for others than who is on the machine: a sentence for each listener that lacks something."""
    found = [_warning(each, protection) for each in protection.open_listeners]
    if protection.metrics is not None and not protection.metrics.is_loopback:
        found.append(
            f"the page of metrics on {protection.metrics.address} can be read from other machines, without "
            "authentication or encryption: whoever reaches it learns the names of topics, groups and clients"
        )
    return [sentence for sentence in found if sentence]


def _warning(one: ListenerProtection, protection: Protection) -> str:
    begin = f"listener {one.listener} accepts connections from other machines"
    may = "do what ACLs allow to everybody" if protection.has_authorizer else "read, write and delete everything"
    if one.protocol is SecurityProtocol.PLAINTEXT:
        return f"{begin}, without authentication or encryption: whoever reaches it can {may}"
    if one.protocol is SecurityProtocol.SSL and not one.knows_clients:
        return (
            f"{begin}, encrypted, but without authentication (ssl.client.auth={one.client_auth}): whoever reaches it "
            f"can {may}"
        )
    if not one.knows_clients:
        return (
            f"{begin} and takes tokens that nobody has signed (sasl.oauthbearer.allow.unsecured.tokens): whoever "
            "reaches it is who they say they are"
        )
    if not one.protocol.is_encrypted:
        return f"{begin}, without encryption: who is on the way reads passwords and records, and can change them"
    return ""


def tell(listeners: Sequence[Listener], config: BrokerConfig, metrics: Listener | None) -> None:
    """Logs what protects each listener, and what it means where that is little."""
    protection = protection_of(listeners, config, metrics)
    for one in protection.listeners:
        logger.info("%s", one)
    for sentence in warnings(protection):
        logger.warning("%s", sentence)
    for name, row in _without_mechanism(config):
        logger.warning(
            "%s counts for nothing, for it names no mechanism: write listener.name.NAME.MECHANISM.%s", name, row
        )


def _without_mechanism(config: BrokerConfig) -> Iterator[tuple[str, str]]:
    """What was set, and counts only where a mechanism stands in its name; and the option itself."""
    for name in config.static_names:
        row, scoped = row_of(name, BROKER_OPTIONS), scoped_option(name, BROKER_OPTIONS)
        if row is not None and row.mechanism_alone and (scoped is None or not scoped.mechanism):
            yield name, row.name


# --------------------------------------------------------------------------------------------------- what is refused
def refusals(protection: Protection) -> list[str]:
    """Why a broker with `secure=true` does not start; none: it may."""
    found = [why for each in protection.open_listeners if (why := _refusal(each)) is not None]
    if protection.metrics is not None and not protection.metrics.is_loopback:
        found.append(
            f"the page of metrics on {protection.metrics.address} is open to other machines, and asks nobody who they "
            "are: serve it on loopback"
        )
    if protection.open_listeners and not protection.has_authorizer:
        found.append(
            "there is no authorizer, so everybody who is known may do everything: set authorizer.class.name to "
            "org.apache.kafka.metadata.authorizer.StandardAuthorizer, and super.users"
        )
    if protection.open_listeners and protection.allows_without_acl:
        found.append("allow.everyone.if.no.acl.found allows everything that no ACL is about: set it to false")
    if protection.etcd_lacks:
        found.append(
            f"the metadata is in an etcd without {' and without '.join(protection.etcd_lacks)}: whoever reaches it may "
            "do everything"
        )
    return [f"--secure: {sentence}" for sentence in found]


def _refusal(one: ListenerProtection) -> str | None:
    begin = f"listener {one.listener} accepts connections from other machines and speaks {one.protocol.name}"
    if not one.protocol.is_encrypted:
        return f"{begin}, which is not encrypted: use {_encrypted(one.protocol)}, or listen on loopback"
    if one.protocol is SecurityProtocol.SSL and not one.knows_clients:
        return (
            f"{begin} with ssl.client.auth={one.client_auth}, so it does not know its clients: set "
            f"listener.name.{one.listener.name.lower()}.ssl.client.auth=required, or use SASL_SSL"
        )
    if not one.knows_clients:
        return f"{begin}, and takes tokens that nobody has signed: set sasl.oauthbearer.allow.unsecured.tokens=false"
    return None


def _encrypted(protocol: SecurityProtocol) -> str:
    return "SASL_SSL" if protocol.needs_authentication else "SASL_SSL, or SSL with ssl.client.auth=required"


def check(listeners: Sequence[Listener], config: BrokerConfig, metrics: Listener | None) -> None:
    """That the options of listeners are of those that are there, and that a broker that is to be secure is.

    Kafka takes options of listeners that it does not have, and a misspelled name leaves the right one unprotected.
    Raises ListenerError, ConfigError.
    """
    names = {listener.name.lower(): listener.name for listener in listeners}
    for name, option in listeners_in(config.static_names, BROKER_OPTIONS).items():
        if name not in names:
            there_are = ", ".join(names.values())
            raise ListenerError(f"{option}: there is no listener named {name.upper()}; there are {there_are}")
    if config.secure and (found := refusals(protection_of(listeners, config, metrics))):
        raise ConfigMistakes(found)
