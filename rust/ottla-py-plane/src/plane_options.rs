//! The options of a `DataPlane` and of its partitions.

use ottla_leader::{LeaderSettings, UnknownProducer};
use ottla_log::kafka_version::KafkaVersion;
use ottla_plane::{DataPlane, Handle, LogSettings, PartitionSettings, PlaneSettings, Refused};
use ottla_py_batches::leader_options::{Keywords, unknown_producer_of};
use ottla_py_batches::request_options::{Integer, named_release, profile_of, release_of};
use ottla_py_batches::topic_settings::settings_of;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyMapping;

/// Kafka's default of `segment.ms` and `retention.ms`.
const WEEK_MS: i64 = 604_800_000;

/// Kafka's defaults of `segment.index.bytes` and `index.interval.bytes`.
const SEGMENT_INDEX_BYTES: u64 = 10 << 20;
const INDEX_INTERVAL_BYTES: u64 = 4 << 10;

/// What all partitions of a plane have in common.
pub(crate) struct PlaneOptions {
    pub(crate) plane: PlaneSettings,
    kafka_version: Option<KafkaVersion>,
    unknown_producer: UnknownProducer,
    transaction_verification: bool,
}

impl PlaneOptions {
    pub(crate) fn take(keywords: &Keywords<'_>) -> PyResult<Self> {
        let profile: String = keywords.take("profile", "strict".to_owned())?;
        let kafka_version: Option<String> = keywords.take("kafka_version", None)?;
        let unknown_producer: String = keywords.take("unknown_producer", "auto".to_owned())?;
        let default = PlaneSettings::default();
        Ok(Self {
            plane: PlaneSettings {
                profile: profile_of(&profile)?,
                max_stored_bytes: keywords.take("max_stored_bytes", default.max_stored_bytes)?,
                session_seed: keywords.take("session_seed", default.session_seed)?,
            },
            kafka_version: named_release(kafka_version.as_deref())?,
            unknown_producer: unknown_producer_of(&unknown_producer)?,
            transaction_verification: keywords.take("transaction_verification", true)?,
        })
    }
}

/// What a partition decides by.
pub(crate) struct PartitionOptions {
    pub(crate) leader: LeaderSettings,
    pub(crate) settings: PartitionSettings,
}

impl PartitionOptions {
    /// What an open partition decides by now.
    pub(crate) fn of(plane: &DataPlane, handle: Handle) -> Option<Self> {
        let leader = plane.leader(handle)?.settings().clone();
        Some(Self { leader, settings: plane.partition_settings(handle)? })
    }

    /// Takes the options that are given; the others are those that are `known`, or the defaults.
    pub(crate) fn take(
        py: Python<'_>,
        plane: &PlaneOptions,
        settings: Option<&Bound<'_, PyAny>>,
        keywords: &Keywords<'_>,
        known: Option<&Self>,
    ) -> PyResult<Self> {
        let config = match (known, settings) {
            (Some(known), None) => known.leader.config.clone(),
            _ => settings_of(py, settings)?.get().config().clone(),
        };
        let of = known.map(|known| known.settings);
        let epoch = known.map_or(0, |known| known.leader.leader_epoch);
        let leader_epoch: Integer = keywords.take("leader_epoch", Integer::Of(epoch.into()))?;
        let retention_ms = of.map_or(WEEK_MS, |of| of.log.retention_ms);
        let retention_bytes = of.map_or(-1, |of| of.log.retention_bytes);
        let segment_ms = of.map_or(WEEK_MS, |of| of.log.segment_ms);
        let index_bytes = of.map_or(SEGMENT_INDEX_BYTES, |of| of.log.segment_index_bytes);
        let interval = of.map_or(INDEX_INTERVAL_BYTES, |of| of.log.index_interval_bytes);
        let minimum = of.map_or(1, |of| of.min_insync_replicas);
        let in_sync = of.map_or(1, |of| of.in_sync_replicas);
        let partition_epoch = of.map_or(-1, |of| of.partition_epoch);
        let is_internal = of.is_some_and(|of| of.is_internal);
        let log = LogSettings {
            segment_bytes: config.segment_bytes,
            segment_ms: keywords.take("segment_ms", segment_ms)?,
            segment_index_bytes: keywords.take("segment_index_bytes", index_bytes)?,
            index_interval_bytes: keywords.take("index_interval_bytes", interval)?,
            is_deleted: config.is_deleted,
            retention_ms: keywords.take("retention_ms", retention_ms)?,
            retention_bytes: keywords.take("retention_bytes", retention_bytes)?,
        };
        let kafka_version = match plane.kafka_version {
            Some(version) => release_of(&config, Some(&version.to_string()))?,
            None => release_of(&config, None)?,
        };
        Ok(Self {
            leader: LeaderSettings {
                kafka_version,
                config,
                leader_epoch: leader_epoch.leader_epoch()?,
                profile: plane.plane.profile,
                unknown_producer: plane.unknown_producer,
                transaction_verification: plane.transaction_verification,
            },
            settings: PartitionSettings {
                log,
                is_internal: keywords.take("is_internal", is_internal)?,
                min_insync_replicas: keywords.take("min_insync_replicas", minimum)?,
                in_sync_replicas: keywords.take("in_sync_replicas", in_sync)?,
                partition_epoch: keywords.take("partition_epoch", partition_epoch)?,
            },
        })
    }
}

/// Error codes by topic and partition.
pub(crate) fn refused_of(refused: Option<&Bound<'_, PyAny>>) -> PyResult<Refused> {
    let mut found = Refused::default();
    let Some(refused) = refused else { return Ok(found) };
    let mapping = refused.cast::<PyMapping>().map_err(|_| {
        PyTypeError::new_err("refused is a mapping of topic and partition to an error code")
    })?;
    for item in mapping.items()? {
        let ((topic, partition), code): ((String, i32), i16) = item.extract()?;
        found.add(topic.as_bytes(), partition, code);
    }
    Ok(found)
}
