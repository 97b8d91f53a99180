"""The files that `odradek secure init` writes, as texts. Pure.

    secure.properties                   for `odradek serve --config`
    clients/NAME/client.properties      for Kafka's clients and tools, kcat, and our commands: all in one file
    clients/NAME/client.py              the same for kafka-python, aiokafka, confluent-kafka and our client

A client's files name no other file, so they can be copied anywhere.
"""

import re
from collections.abc import Iterable
from typing import Final

from odradek.secure.plan import ADMIN, BROKER, MECHANISM, Plan, address

__all__ = ["broker_properties", "client_properties", "client_python", "line"]

LISTENER: Final = "SASL_SSL"
"""Its name, which is that of the protocol that it speaks, too."""
STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_ESCAPED: Final = re.compile(r"[\\\n\r\t\f]|^ ", re.MULTILINE)
_ESCAPES: Final = {"\\": "\\\\", "\r": "\\r", "\t": "\\t", "\f": "\\f", " ": "\\ ", "\n": "\\n\\\n"}
"""A line end goes on in the next line of the file, as a certificate does."""


def line(name: str, value: str) -> str:
    """An option as java.util.Properties reads it, in ASCII, since Java takes the bytes of a file for ISO 8859-1."""
    text = _ESCAPED.sub(lambda found: _ESCAPES[found[0]], value)
    return f"{name}={''.join(each if each.isascii() else _unicode(each) for each in text)}\n"


def _unicode(character: str) -> str:
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def _lines(options: Iterable[tuple[str, str]]) -> str:
    return "".join(line(name, value) for name, value in options)


def _login(user: str, password: str) -> str:
    assert '"' not in password, "it is made of letters, digits, - and _"
    return f'{SCRAM_MODULE} required username="{user}" password="{password}";'


def broker_properties(plan: Plan, broker_password: str) -> str:
    """One listener, for clients and brokers alike."""
    options = [
        ("node.id", "0"),
        ("listeners", f"{LISTENER}://{address(plan.listen_host, plan.port)}"),
        ("advertised.listeners", f"{LISTENER}://{address(plan.hosts[0], plan.port)}"),
        ("inter.broker.listener.name", LISTENER),
        ("log.dirs", plan.data_dir),
        ("ssl.keystore.type", "PEM"),
        ("ssl.keystore.location", f"{plan.directory}/broker.pem"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.location", f"{plan.directory}/ca.pem"),
        ("sasl.enabled.mechanisms", MECHANISM),
        ("sasl.mechanism.inter.broker.protocol", MECHANISM),
        (
            f"listener.name.{LISTENER.lower()}.{MECHANISM.lower()}.sasl.jaas.config",
            _login(BROKER, broker_password),
        ),
        ("authorizer.class.name", STANDARD_AUTHORIZER),
        ("super.users", f"User:{ADMIN};User:{BROKER}"),
        ("secure", "true"),
        *plan.store_options,
    ]
    return (
        f"# Of the broker {plan.hosts[0]}, made by `odradek secure init`. Keep it secret: it holds a password.\n"
        f"# Another broker of the cluster has a node.id and a first advertised host of its own.\n{_lines(options)}"
    )


def client_properties(plan: Plan, user: str, password: str, authority_pem: str) -> str:
    options = [
        ("bootstrap.servers", plan.bootstrap),
        ("security.protocol", "SASL_SSL"),
        ("ssl.truststore.type", "PEM"),
        ("ssl.truststore.certificates", authority_pem.rstrip("\n")),
        ("sasl.mechanism", MECHANISM),
        ("sasl.jaas.config", _login(user, password)),
    ]
    return f"# Of the user {user}, by `odradek secure init`. Keep it secret: it holds a password.\n{_lines(options)}"


def client_python(plan: Plan, user: str, password: str, authority_pem: str) -> str:
    """A module that imports nothing but the standard library."""
    return f'''"""The settings of the user {user}, made by `odradek secure init`. Keep it secret: it holds a password.

    from client import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, ODRADEK

    kafka.KafkaProducer(**KAFKA_PYTHON)
    aiokafka.AIOKafkaProducer(**AIOKAFKA)
    confluent_kafka.Producer(CONFLUENT)
    odradek.Producer(**ODRADEK)
"""

import ssl

BOOTSTRAP = {_literal(plan.bootstrap)}
USER = {_literal(user)}
PASSWORD = {_literal(password)}
AUTHORITY = """\\
{authority_pem}"""

KAFKA_PYTHON = {{
    "bootstrap_servers": BOOTSTRAP.split(","),
    "security_protocol": "SASL_SSL",
    "ssl_context": ssl.create_default_context(cadata=AUTHORITY),
    "sasl_mechanism": "{MECHANISM}",
    "sasl_plain_username": USER,
    "sasl_plain_password": PASSWORD,
}}
AIOKAFKA = dict(KAFKA_PYTHON)
CONFLUENT = {{
    "bootstrap.servers": BOOTSTRAP,
    "security.protocol": "SASL_SSL",
    "ssl.ca.pem": AUTHORITY,
    "sasl.mechanism": "{MECHANISM}",
    "sasl.username": USER,
    "sasl.password": PASSWORD,
}}
ODRADEK = {{
    "bootstrap_servers": BOOTSTRAP,
    "security_protocol": "SASL_SSL",
    "ssl_truststore_certificates": AUTHORITY,
    "sasl_mechanism": "{MECHANISM}",
    "sasl_username": USER,
    "sasl_password": PASSWORD,
}}
'''


def _literal(text: str) -> str:
    """A text as Python reads it, in double quotes: names, addresses and passwords have none themselves."""
    assert text.isprintable() and not {'"', "\\"} & set(text)
    return f'"{text}"'
