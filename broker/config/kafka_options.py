"""Apache Kafka 4.3.1's broker options that this broker does not have, each with why it does without (KafkaConfig.scala;
tests compare the names with what a node of Kafka describes).

An operator who brings a `server.properties` of Kafka's is told of each such line what to do. At run time Kafka's rules
hold for these names too (DynamicBrokerConfig.scala): an option that Kafka cannot change while it runs is refused, and
another one is stored, and has no effect here.
"""

import re
from enum import Enum

_NAMES_BY_REASON: dict[str, str] = {
    "`ssl.enabled.protocols` says which versions of TLS are spoken": """
        ssl.protocol
    """,
    "OpenSSL speaks TLS, with random numbers and algorithms of its own": """
        security.providers ssl.engine.factory.class ssl.keymanager.algorithm ssl.provider
        ssl.secure.random.implementation ssl.trustmanager.algorithm
    """,
    "Kerberos (GSSAPI) is not served": """
        sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
        sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter sasl.kerberos.ticket.renew.window.factor
    """,
    "delegation tokens are not served": """
        delegation.token.expiry.check.interval.ms delegation.token.expiry.time.ms delegation.token.max.lifetime.ms
        delegation.token.secret.key
    """,
    "a broker asks for its token with each connection to another one, and tries again by itself": """
        sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    """,
    "a broker asks for its token by `clientId` and `clientSecret` of `sasl.jaas.config`": """
        sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
        sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
        sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
        sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
        sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
        sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
        sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.scope
    """,
    "controllers are brokers; `sasl.mechanism.inter.broker.protocol` says how they log in": """
        sasl.mechanism.controller.protocol
    """,
    "share groups are not built": """
        group.share.assignment.interval.ms group.share.assignors group.share.delivery.count.limit
        group.share.heartbeat.interval.ms group.share.max.assignment.interval.ms
        group.share.max.delivery.count.limit group.share.max.heartbeat.interval.ms
        group.share.max.partition.max.record.locks group.share.max.record.lock.duration.ms
        group.share.max.session.timeout.ms group.share.max.share.sessions group.share.max.size
        group.share.min.assignment.interval.ms group.share.min.delivery.count.limit
        group.share.min.heartbeat.interval.ms group.share.min.partition.max.record.locks
        group.share.min.record.lock.duration.ms group.share.min.session.timeout.ms
        group.share.partition.max.record.locks group.share.record.lock.duration.ms
        group.share.session.timeout.ms share.coordinator.append.linger.ms
        share.coordinator.cached.buffer.max.bytes share.coordinator.load.buffer.size
        share.coordinator.snapshot.update.records.per.snapshot share.coordinator.state.topic.compression.codec
        share.coordinator.state.topic.min.isr share.coordinator.state.topic.num.partitions
        share.coordinator.state.topic.replication.factor share.coordinator.state.topic.segment.bytes
        share.coordinator.threads share.coordinator.write.timeout.ms
        share.fetch.purgatory.purge.interval.requests
    """,
    "streams groups are not built": """
        group.streams.assignment.interval.ms group.streams.heartbeat.interval.ms
        group.streams.initial.rebalance.delay.ms group.streams.max.assignment.interval.ms
        group.streams.max.heartbeat.interval.ms group.streams.max.session.timeout.ms group.streams.max.size
        group.streams.max.standby.replicas group.streams.min.assignment.interval.ms
        group.streams.min.heartbeat.interval.ms group.streams.min.session.timeout.ms
        group.streams.num.standby.replicas group.streams.session.timeout.ms
    """,
    "groups are coordinated by the broker's one thread, from what is read in slices": """
        group.coordinator.background.threads group.coordinator.cached.buffer.max.bytes group.coordinator.threads
        offsets.load.buffer.size
    """,
    "both kinds of groups are always there, the newer one by the feature group.version": """
        group.coordinator.rebalance.protocols
    """,
    "a transaction is aborted when its time is up, and its log is read in slices": """
        transaction.abort.timed.out.transaction.cleanup.interval.ms transaction.state.log.load.buffer.size
    """,
    "a coordinator holds what comes too early until the transaction before is complete": """
        add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
    """,
    "tiered storage is not built": """
        follower.fetch.last.tiered.offset.enable remote.fetch.max.wait.ms remote.list.offsets.request.timeout.ms
        remote.log.index.file.cache.total.size.bytes remote.log.manager.copier.thread.pool.size
        remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
        remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
        remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
        remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
        remote.log.manager.task.interval.ms remote.log.manager.thread.pool.size
        remote.log.metadata.custom.metadata.max.bytes remote.log.metadata.manager.class.name
        remote.log.metadata.manager.class.path remote.log.metadata.manager.impl.prefix
        remote.log.metadata.manager.listener.name remote.log.reader.max.pending.tasks remote.log.reader.threads
        remote.log.storage.manager.class.name remote.log.storage.manager.class.path
        remote.log.storage.manager.impl.prefix remote.log.storage.system.enable
    """,
    "other brokers are asked within limits of their own": """
        controller.socket.timeout.ms request.timeout.ms
    """,
    "the metadata is not kept by KRaft; `metadata.store` says where it is": """
        controller.listener.names controller.quorum.append.linger.ms controller.quorum.auto.join.enable
        controller.quorum.bootstrap.servers controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms controller.quorum.retry.backoff.ms controller.quorum.voters
        metadata.log.dir metadata.log.max.record.bytes.between.snapshots metadata.log.max.snapshot.interval.ms
        metadata.log.segment.bytes metadata.log.segment.ms metadata.max.idle.interval.ms
        metadata.max.retention.bytes metadata.max.retention.ms process.roles
    """,
    "every listener opens when the broker is ready": """
        early.start.listeners
    """,
    "the replication throttle counts without windows": """
        replication.quota.window.num replication.quota.window.size.seconds
    """,
    "a broker has one fetcher for each leader that it follows": """
        num.replica.fetchers
    """,
    "partitions are not moved between the directories of a broker": """
        alter.log.dirs.replication.quota.window.num alter.log.dirs.replication.quota.window.size.seconds
        num.replica.alter.log.dirs.threads
    """,
    "a clean stop always hands its partitions over first": """
        controlled.shutdown.enable
    """,
    "a broker goes on without the directory, and tells the cluster until it has heard": """
        log.dir.failure.timeout.ms
    """,
    "no directory can be kept free of new partitions": """
        cordoned.log.dirs
    """,
    "one thread serves everything; `queued.max.request.bytes` bounds what waits": """
        queued.max.requests
    """,
    "one thread serves everything": """
        background.threads num.io.threads num.network.threads num.recovery.threads.per.data.dir
    """,
    "a request that waits is a task, which leaves nothing to purge": """
        delete.records.purgatory.purge.interval.requests fetch.purgatory.purge.interval.requests
        producer.purgatory.purge.interval.requests
    """,
    "metrics are Prometheus's, under the address that `--metrics` gives": """
        kafka.metrics.polling.interval.secs kafka.metrics.reporters metric.reporters metrics.num.samples
        metrics.recording.level metrics.sample.window.ms
    """,
    "clients' telemetry is not collected": """
        telemetry.max.bytes
    """,
    "each attempt to connect has `socket.connection.setup.timeout.ms`": """
        socket.connection.setup.timeout.max.ms
    """,
    "the sizes of sockets' buffers are the system's": """
        replica.socket.receive.buffer.bytes socket.receive.buffer.bytes socket.send.buffer.bytes
    """,
    "the length of the queue is the system's": """
        socket.listen.backlog.size
    """,
    "classes of Java are not loaded": """
        alter.config.policy.class.name client.quota.callback.class create.topic.policy.class.name
        sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
        sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class
    """,
}

NOT_HERE: dict[str, str] = {name: reason for reason, names in _NAMES_BY_REASON.items() for name in names.split()}
"""Why, by name, in words that follow "here"."""


class _Changed(Enum):
    """How Kafka changes an option while it runs (DynamicBrokerConfig.scala). The others it cannot change."""

    PER_LISTENER = "for one listener, as listener.name.NAME.OPTION"
    PER_BROKER = "for one broker"
    CLUSTER_WIDE = "for one broker or for all"


_NAMES_BY_CHANGE: dict[_Changed, str] = {
    _Changed.PER_LISTENER: """
        ssl.key.password ssl.keystore.certificate.chain ssl.keystore.key ssl.keystore.location
        ssl.keystore.password ssl.keystore.type ssl.truststore.certificates ssl.truststore.location
        ssl.truststore.password ssl.truststore.type
    """,
    _Changed.PER_BROKER: """
        cordoned.log.dirs sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin
        sasl.kerberos.principal.to.local.rules sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
        sasl.kerberos.ticket.renew.window.factor sasl.login.refresh.buffer.seconds
        sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor sasl.login.refresh.window.jitter
        ssl.cipher.suites ssl.client.auth ssl.enabled.protocols
        ssl.endpoint.identification.algorithm ssl.engine.factory.class ssl.keymanager.algorithm ssl.protocol
        ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm
    """,
    _Changed.CLUSTER_WIDE: """
        background.threads follower.fetch.last.tiered.offset.enable
        group.coordinator.cached.buffer.max.bytes
        group.share.assignment.interval.ms group.streams.assignment.interval.ms metric.reporters num.io.threads
        num.network.threads num.recovery.threads.per.data.dir num.replica.fetchers remote.fetch.max.wait.ms
        remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
        remote.log.manager.copier.thread.pool.size remote.log.manager.copy.max.bytes.per.second
        remote.log.manager.expiration.thread.pool.size remote.log.manager.fetch.max.bytes.per.second
        remote.log.manager.follower.thread.pool.size remote.log.reader.threads
        share.coordinator.cached.buffer.max.bytes
    """,
}
_CHANGED = {name: change for change, names in _NAMES_BY_CHANGE.items() for name in names.split()}

_OF_ONE_LISTENER = re.compile(r"listener\.name\.[^.]*\.(.*)")
_CLUSTER_WIDE_OF_LISTENERS = ("max.connections", "max.connection.creation.rate", "num.network.threads")


def is_fixed(name: str) -> bool:
    """Whether Kafka has this option, and cannot change it while it runs."""
    return name in NOT_HERE and name not in _CHANGED


def needs_listener(name: str) -> bool:
    """Whether Kafka changes this option for single listeners only."""
    return _CHANGED.get(name) is _Changed.PER_LISTENER


def needs_broker(name: str) -> bool:
    """Whether Kafka changes this option, which is not one of ours, for single brokers only."""
    if (of_one := _OF_ONE_LISTENER.fullmatch(name)) is not None:
        return of_one[1] not in _CLUSTER_WIDE_OF_LISTENERS
    return _CHANGED.get(name) is _Changed.PER_BROKER


def reason_for(name: str) -> str | None:
    """Why this option of Kafka's is not here, also under the name of one listener; None for a name Kafka does not have.

    Names under a mechanism of SASL, `listener.name.NAME.scram-sha-256.`, are looked up without it.
    """
    if (of_one := _OF_ONE_LISTENER.fullmatch(name)) is None:
        return NOT_HERE.get(name)
    base = of_one[1]
    return NOT_HERE.get(base) or NOT_HERE.get(base.partition(".")[2])
