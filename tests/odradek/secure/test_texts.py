"""The files of broker and clients, as those read them for whom they are: by Java's rules, our client, and Python."""

import string
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.client.admin.config import AdminConfig
from odradek.client.commands.options import Target
from odradek.runtime.properties import parse_properties
from odradek.secure import texts
from odradek.secure.certificates import make_authority
from odradek.secure.plan import Plan
from odradek.secure.texts import broker_properties, client_properties, client_python, line

PLAN = Plan(["b1.example", "::1"], ["billing"], "/etc/my dir\\x", "/data", "10.0.0.1", 9093)
SECRET = "pencil_5f0c-"  # noqa: S105
NOW_MS = 1_800_000_000_000
NAMES = st.text(string.ascii_lowercase + ".", min_size=1)


@pytest.fixture(scope="module")
def authority_pem() -> str:
    return make_authority("of the tests", NOW_MS, 2).certificate_pem


@given(NAMES, st.text())
def test_whatever_an_option_holds_is_read_back(name: str, value: str) -> None:
    written = line(name, value)
    assert written.isascii()
    assert parse_properties(written) == {name: value}
    assert list(parse_properties(f"A=1\n{written}Z=2\n").values()) == ["1", value, "2"]


def test_a_broker_is_told_of_one_listener_that_protects_itself() -> None:
    options = parse_properties(broker_properties(PLAN, SECRET))
    assert options["listeners"] == "SASL_SSL://10.0.0.1:9093"
    assert options["advertised.listeners"] == "SASL_SSL://b1.example:9093"
    assert options["inter.broker.listener.name"] == "SASL_SSL"
    assert options["ssl.keystore.location"] == "/etc/my dir\\x/broker.pem"
    assert options["super.users"] == "User:admin;User:broker"
    assert options["secure"] == "true"
    assert options["listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"] == (
        f'org.apache.kafka.common.security.scram.ScramLoginModule required username="broker" password="{SECRET}";'
    )


def test_a_broker_on_etcd_is_told_of_it() -> None:
    plan = Plan(["b"], [], "/d", "/d/data", "10.0.0.1", 9093, store_options=(("metadata.store", "etcd://e:2379/k"),))
    assert parse_properties(broker_properties(plan, SECRET))["metadata.store"] == "etcd://e:2379/k"


def test_our_commands_take_a_clients_file(tmp_path: Path, authority_pem: str) -> None:
    path = tmp_path / "client.properties"
    path.write_text(client_properties(PLAN, "billing", SECRET, authority_pem))
    config = Target(config_file=str(path)).config(AdminConfig)
    config.check_security()
    assert config.security_protocol == "SASL_SSL"
    assert config.ssl_truststore_certificates == authority_pem.rstrip("\n")
    assert config.sasl_credentials == ("billing", SECRET)
    assert [str(server) for server in config.bootstrap_servers] == ["b1.example:9093", "[::1]:9093"]


def module_of(text: str) -> ModuleType:
    module = ModuleType("client")
    exec(compile(text, "client.py", "exec"), vars(module))  # noqa: S102
    return module


def test_python_clients_get_the_same(authority_pem: str) -> None:
    text = client_python(PLAN, "billing", SECRET, authority_pem)
    made = module_of(text)
    assert vars(made)["AUTHORITY"] == authority_pem
    assert made.KAFKA_PYTHON["bootstrap_servers"] == ["b1.example:9093", "[::1]:9093"]
    assert made.KAFKA_PYTHON["ssl_context"].check_hostname
    assert made.KAFKA_PYTHON["sasl_plain_password"] == made.AIOKAFKA["sasl_plain_password"] == SECRET
    assert made.CONFLUENT["sasl.password"] == SECRET
    config = AdminConfig(**made.ODRADEK)
    config.check_security()
    assert config.sasl_credentials == ("billing", SECRET)


def test_other_clients_know_the_settings(authority_pem: str) -> None:
    """They are made here without a connection: a name that they do not know they refuse."""
    import confluent_kafka
    from kafka import KafkaProducer

    made = module_of(client_python(PLAN, "billing", SECRET, authority_pem))
    assert made.KAFKA_PYTHON.keys() <= vars(KafkaProducer)["DEFAULT_CONFIG"].keys()
    confluent_kafka.Producer(made.CONFLUENT | {"bootstrap.servers": "127.0.0.1:1", "log_level": 0})


def test_nothing_but_what_is_expected_becomes_python() -> None:
    with pytest.raises(AssertionError):
        client_python(PLAN, "billing", 'a"b', "")
    assert texts.LISTENER == "SASL_SSL"
