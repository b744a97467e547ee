//! What a call says of a record set beside its bytes and configuration.

use ottla_leader::{Profile, Request, TopicConfig};
use ottla_log::kafka_version::KafkaVersion;
use ottla_log::producers::Origin;
use pyo3::exceptions::{PyOverflowError, PyValueError};
use pyo3::prelude::*;

/// A whole number of Python, which may not fit 64 bits.
#[derive(Clone, Copy)]
pub enum Integer {
    /// One that fits.
    Of(i64),
    /// One that does not.
    TooLarge,
}

impl<'a, 'py> FromPyObject<'a, 'py> for Integer {
    type Error = PyErr;

    #[inline]
    fn extract(value: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        match value.extract::<i64>() {
            Ok(number) => Ok(Self::Of(number)),
            Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Ok(Self::TooLarge),
            Err(error) => Err(error),
        }
    }
}

impl Integer {
    /// The number, if it lies within bounds.
    #[inline]
    pub fn within(self, name: &str, minimum: i64, maximum: i64) -> PyResult<i64> {
        match self {
            Self::Of(number) if (minimum..=maximum).contains(&number) => Ok(number),
            _ => Err(self.outside(name, minimum, maximum)),
        }
    }

    #[cold]
    fn outside(self, name: &str, minimum: i64, maximum: i64) -> PyErr {
        let found = match self {
            Self::Of(number) => number.to_string(),
            Self::TooLarge => "beyond 64 bits".into(),
        };
        PyValueError::new_err(format!("{name} is {found}, expected {minimum} to {maximum}"))
    }

    /// A broker's clock, in ms since 1970.
    pub fn clock(self) -> PyResult<i64> {
        self.within("now_ms", 0, i64::MAX)
    }

    /// A leader epoch.
    pub fn leader_epoch(self) -> PyResult<i32> {
        self.within("leader_epoch", 0, i32::MAX.into()).map(|epoch| epoch as i32)
    }

    /// A Produce version.
    pub(crate) fn api_version(self) -> PyResult<i16> {
        self.within("api_version", 0, 13).map(|version| version as i16)
    }
}

/// An origin, by its name.
#[derive(Clone, Copy)]
pub struct OriginName(pub Origin);

impl<'a, 'py> FromPyObject<'a, 'py> for OriginName {
    type Error = PyErr;

    fn extract(name: pyo3::Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        origin_of(name.extract()?).map(Self)
    }
}

/// The origin of a name.
pub fn origin_of(name: &str) -> PyResult<Origin> {
    Origin::from_name(name).ok_or_else(|| {
        let names = "'client', 'coordinator' or 'replication'";
        PyValueError::new_err(format!("origin is {names}, not '{name}'"))
    })
}

/// The profile of a name.
pub fn profile_of(name: &str) -> PyResult<Profile> {
    Profile::from_name(name).ok_or_else(|| {
        PyValueError::new_err(format!("profile is 'strict' or 'kafka', not '{name}'"))
    })
}

/// The release of a name, where one is given.
pub fn named_release(name: Option<&str>) -> PyResult<Option<KafkaVersion>> {
    name.map(KafkaVersion::from_name)
        .transpose()
        .map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The release whose rules hold, where a call names one or the configuration does.
pub fn release_of(config: &TopicConfig, name: Option<&str>) -> PyResult<KafkaVersion> {
    config.release(named_release(name)?).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// The options of :func:`validate` beside the topic's configuration.
pub struct RequestOptions<'a> {
    /// The leader's clock.
    pub now_ms: Integer,
    /// The version of the Produce request.
    pub api_version: Option<Integer>,
    /// The offset of the first record.
    pub base_offset: Integer,
    /// The epoch of the leader.
    pub leader_epoch: Integer,
    /// Who sends it.
    pub origin: Origin,
    /// Whether the request names a transaction.
    pub has_transactional_id: bool,
    /// Strict or Kafka.
    pub profile: &'a str,
    /// The release that the leader is.
    pub kafka_version: Option<&'a str>,
}

impl RequestOptions<'_> {
    /// The request they describe of a topic, if every number is in range.
    pub fn request(&self, config: &TopicConfig) -> PyResult<Request> {
        Ok(Request {
            now_ms: self.now_ms.clock()?,
            api_version: self.api_version.map(Integer::api_version).transpose()?,
            base_offset: self.base_offset.within("base_offset", 0, i64::MAX)?,
            log_start_offset: 0,
            leader_epoch: self.leader_epoch.leader_epoch()?,
            origin: self.origin,
            has_transactional_id: self.has_transactional_id,
            profile: profile_of(self.profile)?,
            kafka_version: release_of(config, self.kafka_version)?,
        })
    }
}
