"""What is set for a broker about its secrets, and about its safety as a whole, a row each (broker_options.py, where the
rules of these rows stand)."""

from odradek.broker.config.option import BOOLEAN, LIST, OURS, STRING, Option
from odradek.broker.config.security_protocol import BY_NAME

PROVIDERS = "config.providers"
PARAMETERS = f"{PROVIDERS}."
"""Of one provider: they say how others are looked up, and are no options of a broker."""


# Rows are read by their names, down the page: one argument a line would make a dozen pages of them.
# fmt: off
class SecureOptions:
    """In order of the names."""

    config_providers = Option[tuple[str, ...]](
        PROVIDERS, LIST, (), "The names of providers of values by reference, `${NAME:PATH:KEY}`. Each has a "
        "`config.providers.NAME.class`, one of Kafka's `EnvVarConfigProvider`, `FileConfigProvider` and "
        "`DirectoryConfigProvider`, and may have `config.providers.NAME.param.allowlist.pattern` or "
        "`config.providers.NAME.param.allowed.paths`.",
        deviation="References count in `--config` and `--set` alone; through the API, by which they would read any "
        "file, they are refused, and providers cannot be changed at run time. Where Kafka leaves the text of a "
        "reference that leads to nothing in place of the value, the start is refused.",
    )
    secure = Option(
        "secure", BOOLEAN, False, "Whether a start is refused that would leave anything open to others (`--secure`): "
        "beyond loopback a listener without authentication or encryption, a page of metrics, no authorizer, or one "
        "that allows what no ACL is about; anywhere an etcd without TLS and credentials.", deviation=OURS,
    )
    security_inter_broker_protocol = Option(
        "security.inter.broker.protocol", STRING, "PLAINTEXT",
        "The listener that brokers use among themselves is the one that is named like this protocol; not to be set "
        "together with `inter.broker.listener.name`.",
        choices=tuple(BY_NAME),
        deviation="Where neither is set, brokers use the first of `listeners`; in Kafka the one named PLAINTEXT.",
    )
# fmt: on
