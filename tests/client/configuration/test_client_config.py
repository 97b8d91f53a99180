"""Shows the configurations as Kafka's: names, defaults and bounds are compared with what Java's clients say.

The facts are those of `golden/java_facts.py`. Wrong values, unknown names and Kafka's property files follow.
"""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import MISSING, FrozenInstanceError, fields, replace
from functools import partial
from typing import Any

import pytest

from odradek.client.admin.config import AdminConfig
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.configuration.kafka_settings import NOT_HERE
from odradek.client.configuration.settings import INT_MAX, LONG_MAX, Kind, Row, rows
from odradek.client.errors.client_errors import ConfigError
from odradek.client.fetching.config import FetchConfig
from odradek.client.metrics.metrics import NO_METRICS
from odradek.client.producer.config import ProducerConfig
from odradek.client.producer.hooks.interceptors import Interceptor
from odradek.client.producer.hooks.serialization import serialize_json, serialize_str
from odradek.client.producer.record import ProducerRecord
from odradek.protocol.batches.compression import Codec
from odradek.runtime.environment import Environment
from tests.client.golden import java_facts

JAVA = java_facts.read()
KINDS: dict[type[ClientConfig], str] = {ProducerConfig: "producer", AdminConfig: "admin", FetchConfig: "consumer"}
SERVERS = "localhost:9092"

# What differs from Kafka's own clients, each with its reason.
DEFAULTS_OF_OUR_OWN = {
    "ssl.keystore.type": "Java's keystores are not read",
    "ssl.truststore.type": "Java's keystores are not read",
    "sasl.mechanism": "GSSAPI, Kafka's default, is not built",
    "ssl.cipher.suites": "a text, as OpenSSL takes it",
    "enable.idempotence": "unset is told from true",
    "metric.reporters": "an object",
    "interceptor.classes": "objects",
    "bootstrap.servers": "required; Java's admin client may be given controllers instead",
}
BOUNDS_OF_OUR_OWN = {
    "connections.max.idle.ms": "Kafka has no bound, and -1 for never",
    "socket.connection.setup.timeout.ms": "Kafka takes what makes no sense",
    "socket.connection.setup.timeout.max.ms": "Kafka takes what makes no sense",
    "transaction.timeout.ms": "brokers refuse what is below 1",
}
NOT_IN_JAVAS_CLIENT = {
    ("producer", "allow.auto.create.topics"): "the consumer's; a producer asks likewise",
    ("admin", "allow.auto.create.topics"): "the consumer's; an admin client asks likewise",
    ("admin", "metadata.max.idle.ms"): "the producer's",
    ("consumer", "metadata.max.idle.ms"): "the producer's",
    ("consumer", "retries"): "the producer's",
}


def make(kind: type[ClientConfig] = ProducerConfig, **settings: Any) -> Any:
    return kind(settings.pop("bootstrap_servers", SERVERS), **settings)


def compared() -> list[Any]:
    """Each setting that a client of ours has in common with Java's."""
    return [
        pytest.param(row, JAVA[name].get(row.kafka_name), id=f"{name}-{row.kafka_name}")
        for kind, name in KINDS.items()
        for row in rows(kind).values()
        if not row.is_ours and (name, row.kafka_name) not in NOT_IN_JAVAS_CLIENT
    ]


# ------------------------------------------------------------------------------------------------ names and defaults
@pytest.mark.parametrize(("row", "theirs"), compared())
def test_defaults_are_kafkas(row: Row, theirs: Mapping[str, Any] | None) -> None:
    assert theirs is not None, "no such setting in Kafka: is_ours"
    if row.kafka_name in DEFAULTS_OF_OUR_OWN:
        assert row.default != theirs["default"], "no exception any more"
    elif theirs["required"]:
        assert row.default in (None, MISSING)
    else:
        default = theirs["default"]
        assert row.default == (tuple(default) if theirs["type"] == "LIST" else default)


@pytest.mark.parametrize(("row", "theirs"), compared())
def test_bounds_are_kafkas(row: Row, theirs: Mapping[str, Any] | None) -> None:
    assert theirs is not None
    assert (row.kind is Kind.FLAG) is (theirs["type"] == "BOOLEAN")
    if row.kind is Kind.WHOLE:
        most = {"INT": INT_MAX, "LONG": LONG_MAX}[theirs["type"]]
        others = "".join(f" or {number}" for number in row.also)
        bounds = {f"[{row.minimum},...,{row.maximum}]{others}"}
        if row.maximum == most:
            bounds.add(f"[{row.minimum},...]")
        if row.kafka_name in BOUNDS_OF_OUR_OWN:
            assert theirs["valid"] is None
        else:
            assert theirs["valid"] in bounds
    if row.kind is Kind.CHOICE and theirs["valid"] and row.kafka_name not in DEFAULTS_OF_OUR_OWN:
        words = theirs["valid"].removeprefix("(case insensitive) ").strip("[]").split(", ")
        assert {word.lower() for word in row.choices} == {word.lower() for word in words}


def test_every_setting_of_kafka_is_known_or_refused_with_a_reason() -> None:
    """Of the producer and the admin client; there is no consumer yet."""
    for kind, name in list(KINDS.items())[:2]:
        ours = {row.kafka_name for row in rows(kind).values()}
        assert JAVA[name].keys() == ours & JAVA[name].keys() | NOT_HERE.keys() & JAVA[name].keys()
        assert not ours & NOT_HERE.keys()
    everything = JAVA["producer"].keys() | JAVA["admin"].keys() | JAVA["consumer"].keys()
    assert NOT_HERE.keys() <= everything, "Kafka has no such setting any more"
    assert all(hint.endswith(".") for hint in NOT_HERE.values())


def test_names_are_kafkas_with_underscores() -> None:
    renamed = {"partitioner": "partitioner.class", "interceptors": "interceptor.classes", "metrics": "metric.reporters"}
    for kind in KINDS:
        for name, row in rows(kind).items():
            assert row.kafka_name == renamed.get(name, name.replace("_", "."))


def test_every_field_is_a_row_with_a_sentence() -> None:
    for kind in KINDS:
        assert list(rows(kind)) == [field.name for field in fields(kind)]
        for row in rows(kind).values():
            assert row.doc.endswith((".", "…"))
            assert row.expected


def test_every_default_passes_its_own_check() -> None:
    for kind in KINDS:
        config = make(kind)
        for name, row in rows(kind).items():
            value: object = getattr(config, name)
            assert row.checked(name, value) == value


# ------------------------------------------------------------------------------------------------- types and bounds
@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"linger_ms": -1}, "linger_ms must be a whole number of ms, 0 or more, not -1"),
        ({"linger_ms": "5"}, "linger_ms must be a whole number of ms, 0 or more, not '5'"),
        ({"linger_ms": 5.0}, "linger_ms must be a whole number"),
        ({"linger_ms": True}, "not True"),
        ({"linger_ms": None}, "not None"),
        ({"linger_ms": 2**63}, "a whole number of ms, from 0 to 9223372036854775807, not 9223372036854775808"),
        ({"batch_size": 2**31}, "batch_size must be a whole number of bytes, from 0 to 2147483647, not 2147483648"),
        ({"retries": 2**31}, "retries must be a whole number, from 0 to 2147483647, not 2147483648"),
        ({"request_timeout_ms": -1}, "a whole number of ms, 0 or more, not -1"),
        ({"send_buffer_bytes": 2**31}, "from -1 to 2147483647, not"),
        ({"max_in_flight_requests_per_connection": 0}, "1 or more, not 0"),
        ({"metadata_max_idle_ms": 4_999}, "5000 or more"),
        ({"send_buffer_bytes": -2}, "-1 or more"),
        ({"compression_gzip_level": 0}, "from 1 to 9, or -1, not 0"),
        ({"compression_gzip_level": 10}, "from 1 to 9, or -1, not 10"),
        ({"compression_lz4_level": 18}, "from 1 to 17, not 18"),
        ({"compression_zstd_level": -131_073}, "from -131072 to 22"),
        ({"compression_type": "brotli"}, "one of none, gzip, snappy, lz4, zstd, not 'brotli'"),
        ({"compression_type": None}, "not None"),
        ({"security_protocol": "TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        ({"partitioner_ignore_keys": 1}, "partitioner_ignore_keys must be True or False, not 1"),
        ({"enable_idempotence": "yes"}, "True, False or None"),
        ({"client_id": b"me"}, "client_id must be text, not b'me'"),
        ({"acks": 2}, "acks must be 0, 1, -1 or 'all', not 2"),
        ({"acks": True}, "not True"),
        ({"acks": 1.0}, "not 1.0"),
        ({"acks": "most"}, "not 'most'"),
        ({"acks": [1]}, "acks must be"),
        ({"key_serializer": "StringSerializer"}, "a callable (topic, key) -> bytes or None"),
        ({"partitioner": print}, "an object with a method `partition`"),
        ({"metrics": object()}, "odradek.Metrics"),
        ({"interceptors": "org.example.Audit"}, "a list of Interceptor objects"),
        ({"interceptors": [object()]}, "a list of Interceptor objects"),
        ({"interceptors": Interceptor()}, "a list of Interceptor objects"),
        ({"on_delivery": 1}, "a callable (delivery)"),
        ({"environment": None}, "a function that returns an Environment"),
        ({"ssl_truststore_type": "JKS"}, "convert them to PEM"),
        ({"sasl_mechanism": "GSSAPI"}, "Kerberos (GSSAPI) is not built"),
        ({"ssl_enabled_protocols": "SSLv3"}, "a list of TLSv1.2 and TLSv1.3, not 'SSLv3'"),
        ({"ssl_enabled_protocols": []}, "a list of TLSv1.2 and TLSv1.3"),
    ],
)
def test_a_wrong_value_is_refused(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**settings)
    assert said in str(caught.value)
    assert caught.value.settings == tuple(settings)


class AsyncInterceptor(Interceptor):
    async def on_send(self, record: ProducerRecord) -> ProducerRecord:  # type: ignore[override]  # pyright: ignore
        return record


def test_a_coroutine_function_is_no_interceptor() -> None:
    """It would be called and never awaited."""
    with pytest.raises(ConfigError, match="without coroutine functions, which AsyncInterceptor has"):
        make(interceptors=[AsyncInterceptor()])


async def awaited(*_: object) -> None:
    """To be awaited, which settings are not."""


class Awaited:
    async def __call__(self, *_: object) -> None: ...

    async def partition(self, *_: object) -> int:
        return 0


class AwaitedListener:
    def partition(self, *_: object) -> int:
        return 0

    async def on_new_batch(self, *_: object) -> None: ...


@pytest.mark.parametrize("value", [awaited, partial(awaited, 1), Awaited(), Awaited().__call__, partial(Awaited())])
@pytest.mark.parametrize("setting", ["on_delivery", "key_serializer", "value_serializer"])
def test_a_coroutine_function_is_no_setting_that_is_called(setting: str, value: Any) -> None:
    """Nobody would await it."""
    with pytest.raises(ConfigError, match=f"{setting} must be a callable .*, no coroutine function") as caught:
        make(**{setting: value})
    assert caught.value.settings == (setting,)


@pytest.mark.parametrize("partitioner", [Awaited(), AwaitedListener()])
def test_a_partitioner_of_coroutine_functions_is_refused(partitioner: object) -> None:
    with pytest.raises(ConfigError, match="no coroutine function"):
        make(partitioner=partitioner)


# ---------------------------------------------------------------------------------------------------- names unknown
@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("lingr_ms", "Did you mean linger_ms?"),
        ("max_inflight_requests_per_connection", "Did you mean max_in_flight_requests_per_connection?"),
        ("ssl_keystore_password", "that of an encrypted private key is ssl_key_password"),
        ("qqq", "docs/client-configuration.md"),
    ],
)
def test_an_unknown_name_is_refused_with_the_nearest(name: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerConfig.from_dict({"bootstrap.servers": SERVERS, name: 5})
    assert hint in str(caught.value)
    settings: dict[str, Any] = {name: 5}
    with pytest.raises(ConfigError) as caught:
        make(**settings)
    assert f"producer has no setting {name}" in str(caught.value)
    assert hint in str(caught.value)
    assert caught.value.settings == (name,)


@pytest.mark.parametrize("name", ["linger_ms", "close_timeout_ms"])
def test_a_setting_of_the_producer_is_none_of_the_admin_client(name: str) -> None:
    settings: dict[str, Any] = {name: 5}
    assert getattr(make(**settings), name) == 5
    with pytest.raises(ConfigError, match=f"adminclient has no setting {name}"):
        make(AdminConfig, **settings)


def test_a_setting_of_the_consumer_that_would_have_no_effect_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"fetcher has no setting client\.rack\. A consumer has it"):
        FetchConfig.from_dict({"bootstrap.servers": SERVERS, "client.rack": "a"})


# ------------------------------------------------------------------------------------------------------------- codecs
@pytest.mark.parametrize(
    ("settings", "codec", "level"),
    [
        ({}, Codec.NONE, None),
        ({"compression_type": "gzip"}, Codec.GZIP, None),
        ({"compression_type": "GZIP", "compression_gzip_level": 9}, Codec.GZIP, 9),
        ({"compression_type": "snappy", "compression_gzip_level": 9}, Codec.SNAPPY, None),
        ({"compression_type": "lz4"}, Codec.LZ4, None),
        ({"compression_type": "lz4", "compression_lz4_level": 9}, Codec.LZ4, None),
        ({"compression_type": "lz4", "compression_lz4_level": 12}, Codec.LZ4, 12),
        ({"compression_type": "zstd"}, Codec.ZSTD, None),
        ({"compression_type": "zstd", "compression_zstd_level": -5}, Codec.ZSTD, -5),
    ],
)
def test_codec_and_level(settings: dict[str, Any], codec: Codec, level: int | None) -> None:
    config = make(**settings)
    assert (config.codec, config.compression_level) == (codec, level)


# ------------------------------------------------------------------------------------------------------- dotted names
def test_a_property_file_of_kafka_is_read() -> None:
    config = ProducerConfig.from_dict(
        {
            "bootstrap.servers": "a:1,b:2",
            "linger.ms": " 20 ",
            "acks": "all",
            "enable.idempotence": "TRUE",
            "compression.type": "zstd",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required\n"
            " username=\"me \" password='pass;word ';",
            "ssl.enabled.protocols": "TLSv1.3",
            "ssl.endpoint.identification.algorithm": "",
            "max_block_ms": 5,
            "value.serializer": serialize_str,
        }
    )
    assert config.bootstrap_addresses == (("a", 1), ("b", 2))
    assert (config.linger_ms, config.acks, config.enable_idempotence, config.max_block_ms) == (20, -1, True, 5)
    assert (config.security_protocol, config.codec) == ("SASL_SSL", Codec.ZSTD)
    assert config.sasl_credentials == ("me ", "pass;word ")
    assert config.ssl_enabled_protocols == ("TLSv1.3",)
    assert config.ssl_endpoint_identification_algorithm == ""
    assert config.value_serializer is serialize_str
    assert config.uses_tls
    assert config.uses_sasl


def test_blanks_around_a_text_are_left_out_as_by_kafka() -> None:
    """ConfigDef.parseType trims STRING and PASSWORD alike; a password that Kafka has no name for is kept as it is."""
    settings = {"bootstrap.servers": SERVERS, "client.id": " me\t", "security.protocol": "SASL_SSL "}
    settings |= {"sasl.mechanism": "PLAIN", "sasl_username": "alice ", "sasl_password": " geheim "}
    settings |= {"ssl.truststore.location": "/ca.pem  ", "ssl.keystore.location": " /me.pem", "ssl.key.password": "p "}
    config = AdminConfig.from_dict(settings)
    assert (config.client_id, config.ssl_truststore_location, config.ssl_keystore_location) == (
        "me",
        "/ca.pem",
        "/me.pem",
    )
    assert config.ssl_key_password == "p"  # noqa: S105
    assert config.sasl_credentials == ("alice", " geheim ")


@pytest.mark.parametrize(
    ("settings", "said", "named"),
    [
        ({"lingr.ms": "5"}, "Did you mean linger.ms?", ("lingr.ms",)),
        ({"linger.ms": "soon"}, "not 'soon'", ("linger_ms",)),
        ({"linger.ms": "5.5"}, "not '5.5'", ("linger_ms",)),
        ({"linger.ms": "\u0661"}, "not '\u0661'", ("linger_ms",)),
        ({"enable.idempotence": "1"}, "not '1'", ("enable_idempotence",)),
        ({"linger.ms": "5", "linger_ms": 5}, "given twice", ("linger_ms",)),
        (
            {"transaction.two.phase.commit.enable": "true"},
            "does not go without a transactional_id",
            ("transaction_two_phase_commit_enable", "transactional_id"),
        ),
        ({"ssl.truststore.password": "p"}, "A PEM file has no password", ("ssl.truststore.password",)),
        ({"sasl.login.class": "x"}, "sasl_oauthbearer_token_provider", ("sasl.login.class",)),
        (
            {"key.serializer": "org.apache.kafka.common.serialization.StringSerializer"},
            "Java classes cannot be used from Python",
            ("key_serializer",),
        ),
        ({"interceptor.classes": "org.example.Audit"}, "Java classes cannot be used", ("interceptors",)),
        ({"partitioner.class": "org.example.Mine"}, "Java classes cannot be used", ("partitioner",)),
        ({"metric.reporters": ""}, "Java classes cannot be used", ("metrics",)),
        ({"bootstrap.servers": ""}, "bootstrap_servers must be", ("bootstrap_servers",)),
    ],
)
def test_a_property_that_is_not_understood_is_refused(
    settings: dict[str, object], said: str, named: tuple[str, ...]
) -> None:
    with pytest.raises(ConfigError) as caught:
        ProducerConfig.from_dict({"bootstrap.servers": SERVERS} | settings)
    assert said in str(caught.value)
    assert caught.value.settings == named


def test_properties_without_a_broker_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"bootstrap\.servers is missing"):
        AdminConfig.from_dict({})


# ---------------------------------------------------------------------------------------------------- one config, many
def test_clients_without_a_name_are_numbered() -> None:
    first, second, admin = make(), make(), make(AdminConfig)
    assert first.client_id.startswith("producer-")
    assert int(second.client_id.removeprefix("producer-")) == int(first.client_id.removeprefix("producer-")) + 1
    assert admin.client_id.startswith("adminclient-")
    assert make(client_id="mine").client_id == "mine"
    assert replace(first, linger_ms=7).client_id == first.client_id


def test_a_config_cannot_change_but_be_copied() -> None:
    config = make(acks=1, partitioner_ignore_keys=True, interceptors=[])
    with pytest.raises(FrozenInstanceError):
        config.linger_ms = 7
    assert not hasattr(config, "__dict__")
    assert pickle.loads(pickle.dumps(config)) == config  # noqa: S301  (our own bytes)
    assert copy.copy(config) == copy.deepcopy(config) == config
    assert hash(config) == hash(copy.copy(config))
    assert replace(config, acks="all").acks == -1
    with pytest.raises(ConfigError):
        replace(config, linger_ms=-1)


@pytest.mark.parametrize("name", ["lone surrogate \ud800", "x" * 32_768, "ü" * 16_384])
def test_a_client_id_that_no_request_can_carry_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="client_id") as caught:
        make(client_id=name)
    assert caught.value.settings == ("client_id",)
    assert len(str(caught.value)) < 500
    assert make(client_id="x" * 32_767).client_id


def test_its_repr_shows_what_was_set_and_no_secret() -> None:
    config = make(
        client_id="me",
        linger_ms=5,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="alice",
        sasl_password="geheim",  # noqa: S106
    )
    text = repr(config)
    assert "geheim" not in text
    assert "sasl_password=[hidden]" in text
    assert "sasl_username='alice'" in text
    assert "linger_ms" not in text
    assert "geheim" not in repr(config.sasl_credentials)


def test_objects_are_kept_as_they_are() -> None:
    interceptor = Interceptor()
    config = make(interceptors=[interceptor], metrics=NO_METRICS, key_serializer=serialize_json, on_delivery=print)
    assert config.interceptors == (interceptor,)
    assert config.metrics is NO_METRICS
    assert config.environment is Environment
    assert config.key_serializer is serialize_json
