"""The options of coordinators of transactions: how they are read, and who goes by them."""

import pytest

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.option import ConfigError, Dynamic, rows
from odradek.broker.config.transaction_options import TransactionOptions
from odradek.broker.txn.machine import TransactionOptions as ReadByMachine

OPTIONS = rows(TransactionOptions)
FLAGS = ("transaction.partition.verification.enable", "transaction.two.phase.commit.enable")


def test_they_are_options_of_a_broker_in_order_of_their_names() -> None:
    assert list(OPTIONS) == sorted(OPTIONS)
    assert OPTIONS.items() <= BROKER_OPTIONS.items()


def test_whatever_the_machine_reads_there_is() -> None:
    read = {name for name in vars(ReadByMachine) if name.startswith("transaction")}
    assert len(read) == 4
    assert read <= {row.attribute for row in OPTIONS.values()}


def test_the_defaults_are_apache_kafkas() -> None:
    config = BrokerConfig({})
    assert config.transaction_max_timeout_ms == 900_000
    assert config.transactional_id_expiration_ms == 604_800_000
    assert config.transaction_remove_expired_transaction_cleanup_interval_ms == 3_600_000
    assert config.transaction_partition_verification_enable is True
    assert config.transaction_state_log_num_partitions == 50
    assert config.transaction_state_log_replication_factor == 3
    assert config.transaction_state_log_min_isr == 2
    assert config.transaction_state_log_segment_bytes == 104_857_600
    assert config.transaction_two_phase_commit_enable is False


@pytest.mark.parametrize("name", [name for name in OPTIONS if name not in FLAGS])
@pytest.mark.parametrize("value", ["0", "-1", "many"])
def test_what_makes_no_sense_is_refused(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BrokerConfig({name: value})


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_true_or_false(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        BrokerConfig({name: "1"})


def test_verification_is_switched_for_all_brokers_while_they_run() -> None:
    assert [row.name for row in OPTIONS.values() if row.dynamic is not Dynamic.READ_ONLY] == [
        "transaction.partition.verification.enable"
    ]
    config = BrokerConfig({})
    config.update({"transaction.partition.verification.enable": "false"}, {})
    assert config.transaction_partition_verification_enable is False
