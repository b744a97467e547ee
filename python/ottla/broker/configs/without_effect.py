"""Settings of Kafka's that are seldom set, and have no effect here."""

from __future__ import annotations

from typing import Final

__all__ = ["SELDOM_SET"]

SELDOM_SET: Final = (
    "alter.config.policy.class.name", "broker.heartbeat.interval.ms", "broker.session.timeout.ms",
    "client.quota.callback.class", "connection.failed.authentication.delay.ms",
    "controlled.shutdown.enable", "controlled.shutdown.max.retries",
    "controller.quorum.append.linger.ms", "controller.quorum.auto.join.enable",
    "controller.quorum.election.backoff.max.ms", "controller.quorum.election.timeout.ms",
    "controller.quorum.fetch.timeout.ms", "controller.quorum.request.timeout.ms",
    "controller.quorum.retry.backoff.ms", "controller.socket.timeout.ms",
    "create.topic.policy.class.name", "delete.records.purgatory.purge.interval.requests",
    "early.start.listeners", "fetch.purgatory.purge.interval.requests",
    "group.coordinator.append.linger.ms", "group.coordinator.threads", "group.share.enable",
    "initial.broker.registration.timeout.ms", "inter.broker.protocol.version",
    "leader.imbalance.check.interval.seconds", "leader.imbalance.per.broker.percentage",
    "log.cleaner.io.buffer.load.factor", "log.cleaner.io.buffer.size", "log.cleaner.threads",
    "log.dir.failure.timeout.ms", "log.flush.scheduler.interval.ms",
    "log.flush.start.offset.checkpoint.interval.ms", "log.initial.task.delay.ms",
    "log.local.retention.bytes", "log.local.retention.ms", "log.message.format.version",
    "max.connection.creation.rate", "max.connections.per.ip.overrides",
    "metadata.log.max.snapshot.interval.ms", "metadata.log.segment.bytes",
    "metadata.log.segment.ms", "metadata.max.idle.interval.ms", "metadata.max.retention.ms",
    "metrics.num.samples",
    "metrics.recording.level", "metrics.sample.window.ms", "num.replica.alter.log.dirs.threads",
    "offsets.commit.required.acks", "offsets.commit.timeout.ms", "offsets.load.buffer.size",
    "offsets.topic.compression.codec", "offsets.topic.segment.bytes",
    "producer.purgatory.purge.interval.requests", "queued.max.request.bytes", "quota.window.num",
    "quota.window.size.seconds", "replica.fetch.backoff.ms", "replica.fetch.max.bytes",
    "replica.fetch.min.bytes", "replica.fetch.response.max.bytes", "replica.fetch.wait.max.ms",
    "replica.high.watermark.checkpoint.interval.ms", "replica.lag.time.max.ms",
    "replica.selector.class", "replica.socket.receive.buffer.bytes", "replica.socket.timeout.ms",
    "request.timeout.ms", "socket.connection.setup.timeout.max.ms",
    "socket.connection.setup.timeout.ms", "socket.listen.backlog.size", "telemetry.max.bytes",
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    "transaction.state.log.load.buffer.size", "transaction.state.log.segment.bytes",
    "transaction.two.phase.commit.enable", "unstable.api.versions.enable",
    "unstable.feature.versions.enable", "zookeeper.connection.timeout.ms",
    "zookeeper.session.timeout.ms",
)  # fmt: skip
"""What is about threads, other brokers, controllers, classes of Java, or the size of files that are
none of a topic's. A file that sets them is one of Kafka's and is taken as it is."""
