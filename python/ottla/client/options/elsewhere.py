"""What the options of Java's client and of librdkafka are here, by their dotted names.

Most have the same name. The others are in one of these tables: another name for the same option,
an option that cannot be kept and so is refused, or one without a meaning here, which is left out
with a warning. An option is refused where leaving it out would change which records are written or
read, or who may see them.
"""

from __future__ import annotations

__all__ = ["IGNORED", "REFUSED", "RENAMED"]

RENAMED = {
    "metadata.broker.list": "bootstrap_servers",
    "topic.metadata.refresh.interval.ms": "metadata_max_age_ms",
    "socket.timeout.ms": "request_timeout_ms",
    "sasl.mechanisms": "sasl_mechanism",
    "ssl.truststore.certificates": "ssl_ca_pem",
    "ssl.keystore.certificate.chain": "ssl_certificate_pem",
    "ssl.keystore.key": "ssl_key_pem",
    "request.required.acks": "acks",
    "message.timeout.ms": "delivery_timeout_ms",
    "message.send.max.retries": "retries",
    "message.max.bytes": "max_request_size",
    "queue.buffering.max.ms": "linger_ms",
    "max.in.flight": "max_in_flight_requests_per_connection",
    "compression.codec": "compression_type",
    "auto.commit.enable": "enable_auto_commit",
    "fetch.wait.max.ms": "fetch_max_wait_ms",
    "fetch.message.max.bytes": "max_partition_fetch_bytes",
}
"""Other names of the same options."""

_OWN_CONTEXT = "give an ssl.SSLContext that is set so, as ssl.context"
_NO_PLUGINS = "classes of Java cannot be loaded"
_CALLBACK = "calls of the client raise, and futures have the errors of records"
_TOKEN = "give a function that returns a token, as sasl.oauth.token"  # noqa: S105

REFUSED = {
    "batch.num.messages": "a batch is bounded by its bytes: use batch.size, and linger.ms",
    "default.topic.config": "its options stand beside the others",
    "delivery.report.only.error": "each record has a future: look at those you need",
    "dr_cb": "each record has a future, with what became of it",
    "dr_msg_cb": "each record has a future, with what became of it",
    "on_delivery": "give it to `send`, or use the future that it returns",
    "enable.auto.offset.store": "use enable.auto.commit=false, and commit what you are done with",
    "enable.gapless.guarantee": "a gap is an error that the producer raises, see on.data.loss",
    "enable.partition.eof": "ask for end offsets, and compare the positions with them",
    "error_cb": _CALLBACK,
    "interceptor.classes": f"{_NO_PLUGINS}: call what intercepts around `send` and `poll`",
    "oauth_cb": _TOKEN,
    "offset.store.method": "offsets are committed to the group, by the brokers",
    "on_commit": "a commit that is awaited returns, or raises",
    "plugin.library.paths": "libraries of librdkafka cannot be loaded",
    "queue.buffering.max.messages": "what waits is bounded by its bytes: use buffer.memory",
    "sasl.client.callback.handler.class": f"{_NO_PLUGINS}: see sasl.oauth.token",
    "sasl.kerberos.keytab": "Kerberos is not supported",
    "sasl.kerberos.kinit.cmd": "Kerberos is not supported",
    "sasl.kerberos.principal": "Kerberos is not supported",
    "sasl.kerberos.service.name": "Kerberos is not supported",
    "sasl.login.callback.handler.class": _TOKEN,
    "sasl.login.class": _TOKEN,
    "sasl.oauthbearer.client.id": _TOKEN,
    "sasl.oauthbearer.client.secret": _TOKEN,
    "sasl.oauthbearer.config": _TOKEN,
    "sasl.oauthbearer.method": _TOKEN,
    "sasl.oauthbearer.scope": _TOKEN,
    "sasl.oauthbearer.token.endpoint.url": _TOKEN,
    "security.providers": _NO_PLUGINS,
    "socks5.proxy": "proxies are not supported",
    "ssl.cipher.suites": _OWN_CONTEXT,
    "ssl.curves.list": _OWN_CONTEXT,
    "ssl.crl.location": _OWN_CONTEXT,
    "ssl.engine.factory.class": _OWN_CONTEXT,
    "ssl.sigalgs.list": _OWN_CONTEXT,
    "throttle_cb": "clients wait as brokers tell them, see the metrics of throttling",
    "transaction.two.phase.commit.enable": "transactions of two phases (KIP-939) are not supported",
}
"""What cannot be kept, and what to do instead."""

_SOCKETS = "the operating system sizes and times sockets"
_LOGS = "Python's `logging` decides"
_METRICS = "metrics are asked for, by `metrics()`"
_NEVER_OLD = "brokers are asked for their versions"
_BY_BYTES = "what is read ahead is bounded by fetch.max.bytes"

IGNORED = {
    "api.version.fallback.ms": _NEVER_OLD,
    "api.version.request": _NEVER_OLD,
    "api.version.request.timeout.ms": _NEVER_OLD,
    "auto.include.jmx.reporter": _METRICS,
    "background.event.callback": _LOGS,
    "broker.address.family": "both kinds of addresses are tried",
    "broker.address.ttl": "addresses are looked up at each connection",
    "broker.version.fallback": _NEVER_OLD,
    "client.dns.lookup": "all addresses of a name are tried",
    "consume.callback.max.messages": "nothing is called for messages",
    "coordinator.query.interval.ms": "a coordinator is looked up when it is needed",
    "debug": _LOGS,
    "enable.metrics.push": "no metrics are sent to brokers (KIP-714)",
    "fetch.error.backoff.ms": "retry.backoff.ms is waited for",
    "fetch.queue.backoff.ms": _BY_BYTES,
    "group.protocol.type": "a group of this client is one of consumers",
    "internal.termination.signal": "there is no thread of C to end",
    "log.connection.close": _LOGS,
    "log.queue": _LOGS,
    "log.thread.name": _LOGS,
    "log_cb": _LOGS,
    "log_level": _LOGS,
    "logger": _LOGS,
    "metadata.max.idle.ms": "topics that were written to are kept up to date until the end",
    "metadata.recovery.rebootstrap.trigger.ms": "the bootstrap servers are asked where no other is",
    "metadata.recovery.strategy": "the bootstrap servers are asked where no other is",
    "metric.reporters": _METRICS,
    "metrics.num.samples": _METRICS,
    "metrics.recording.level": _METRICS,
    "metrics.sample.window.ms": _METRICS,
    "open_cb": "the operating system opens files",
    "opaque": "closures do what it is for",
    "queue.buffering.backpressure.threshold": "batches wait for requests in flight",
    "queued.max.messages.kbytes": _BY_BYTES,
    "queued.min.messages": _BY_BYTES,
    "receive.buffer.bytes": _SOCKETS,
    "send.buffer.bytes": _SOCKETS,
    "socket.blocking.max.ms": _SOCKETS,
    "socket.keepalive.enable": _SOCKETS,
    "socket.max.fails": "a connection that fails is closed",
    "socket.nagle.disable": "requests leave at once",
    "socket.receive.buffer.bytes": _SOCKETS,
    "socket.send.buffer.bytes": _SOCKETS,
    "sasl.login.refresh.buffer.seconds": "a token is asked for before each login",
    "sasl.login.refresh.min.period.seconds": "a token is asked for before each login",
    "sasl.login.refresh.window.factor": "a token is asked for before each login",
    "sasl.login.refresh.window.jitter": "a token is asked for before each login",
    "socket_cb": _SOCKETS,
    "ssl.enabled.protocols": "Python's defaults hold: TLS 1.2 and newer",
    "ssl.keymanager.algorithm": "it is Java's",
    "ssl.protocol": "Python's defaults hold: TLS 1.2 and newer",
    "ssl.provider": "it is Java's",
    "ssl.secure.random.implementation": "it is Java's",
    "ssl.trustmanager.algorithm": "it is Java's",
    "statistics.interval.ms": _METRICS,
    "stats_cb": _METRICS,
    "sticky.partitioning.linger.ms": "records without a key change partitions by bytes (KIP-794)",
    "topic.blacklist": "a pattern that is subscribed to can leave topics out",
    "topic.metadata.propagation.max.ms": "a topic that is missing is waited for, by max.block.ms",
    "topic.metadata.refresh.fast.cnt": "retry.backoff.ms is waited for",
    "topic.metadata.refresh.fast.interval.ms": "retry.backoff.ms is waited for",
    "topic.metadata.refresh.sparse": "topics of interest alone are looked up",
}
"""What has no meaning here, and why."""
