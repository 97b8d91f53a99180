"""The settings of several brokers in one process, each as if it had been started by itself. Reads directories."""

from collections.abc import Mapping, Sequence

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.listeners import Listener
from odradek.broker.config.settings import Settings, told_broker_listener
from odradek.broker.directories.cluster_layout import FIRST_ID, broker_directory, first_broker_id
from odradek.broker.disk.file_disk import FileDisk
from odradek.broker.launch import protection
from odradek.broker.launch.listen_options import check_inter_broker, check_sasl
from odradek.broker.launch.memory_defaults import with_defaults


def cluster_settings(
    count: int,
    listener: Listener,
    data_dir: str | None,
    static: Mapping[str, str],
    *,
    ids: Sequence[int] | None = None,
    defaults: Mapping[str, str] | None = None,
    advertised_host: str | None = None,
) -> list[Settings]:
    """The settings of so many brokers, on consecutive ports, or on free ones with port 0. `ids`: theirs; from 1, or
    from the first one that has a directory, by default. `defaults`: of topics, in place of as many replicas as there
    can be. `advertised_host`: what clients are told in place of the listener's, with the same ports. Raises
    ConfigError, ListenerError, OSError."""
    settings: list[Settings] = []
    told_host = listener.host if advertised_host is None else advertised_host
    if ids is None:
        first_id = FIRST_ID if data_dir is None else first_broker_id(FileDisk(), data_dir)
        ids = range(first_id, first_id + count)
    for number, node_id in enumerate(ids):
        here = listener._replace(port=listener.port + number if listener.port else 0)
        config = BrokerConfig(
            {
                "default.replication.factor": str(min(count, 3)),
                "min.insync.replicas": "2" if count >= 3 else "1",
                **(defaults or {}),
                **with_defaults(static, memory=data_dir is None),
                "node.id": str(node_id),
                "broker.rack": f"rack-{node_id}",
                "listeners": str(here),
            }
        )
        option, name = told_broker_listener(config)
        check_inter_broker(name, [here], option)
        protection.check([here], config, None)
        check_sasl([here], config, here.name if count > 1 else None)
        directories = None if data_dir is None else [broker_directory(data_dir, node_id)]
        settings.append(Settings([here], {here.name: here._replace(host=told_host)}, directories, node_id, config))
    return settings
