//! The options of a `Leader`, and of the log that it is brought back from.

use crate::integers::{Integral, int, of_argument};
use crate::producer_state::AbortedTransaction;
use crate::request_options::{Integer, profile_of, release_of};
use crate::topic_settings::settings_of;
use ottla_leader::{LeaderSettings, LogOffsets, Replay, UnknownProducer};
use ottla_log::sidefiles::transaction_index::AbortedTransaction as Aborted;
use ottla_log::sorting::sort_by_key;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The keywords of a call that are not positional, taken out one after the other.
pub struct Keywords<'py> {
    function: &'static str,
    given: Option<Bound<'py, PyDict>>,
}

impl<'py> Keywords<'py> {
    /// The keywords of a call of a function.
    pub fn new(function: &'static str, given: Option<&Bound<'py, PyDict>>) -> Self {
        Self { function, given: given.cloned() }
    }

    /// Takes a keyword out, or returns the default where it is not given.
    pub fn take<T>(&self, name: &str, default: T) -> PyResult<T>
    where
        T: for<'a> FromPyObject<'a, 'py, Error: Into<PyErr>>,
    {
        let Some(value) = self.value(name)? else { return Ok(default) };
        value.extract().map_err(|error| wrong_kind(&value, name, Into::<PyErr>::into(error)))
    }

    /// Takes a keyword out that is an integer.
    pub(crate) fn int<T: Integral>(&self, name: &str, default: T) -> PyResult<T> {
        let Some(value) = self.value(name)? else { return Ok(default) };
        let named = |error| of_argument(value.py(), name, wrong_kind(&value, name, error));
        int(&value).map_err(named)
    }

    /// Takes out what is given for a keyword.
    fn value(&self, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(given) = &self.given else { return Ok(None) };
        let value = given.get_item(name)?;
        if value.is_some() {
            given.del_item(name)?;
        }
        Ok(value)
    }

    /// Refuses the keywords that are left.
    pub fn finish(self) -> PyResult<()> {
        let Some(left) = self.given.and_then(|given| given.keys().iter().next()) else {
            return Ok(());
        };
        let function = self.function;
        let message = format!("{function} got an unexpected keyword argument '{left}'");
        Err(PyTypeError::new_err(message))
    }
}

/// The error for a value of another kind, with the name of the argument.
fn wrong_kind(value: &Bound<'_, PyAny>, name: &str, error: PyErr) -> PyErr {
    let py = value.py();
    if !error.is_instance_of::<PyTypeError>(py) {
        return error;
    }
    let message = format!("argument '{name}': {}", error.value(py));
    PyErr::from_type(error.get_type(py), (message,))
}

/// What a leader is, whatever its log holds.
pub(crate) struct LeaderOptions {
    pub(crate) settings: LeaderSettings,
    pub(crate) topic: String,
    pub(crate) partition: i32,
}

impl LeaderOptions {
    pub(crate) fn take(
        config: Option<&Bound<'_, PyAny>>,
        keywords: &Keywords<'_>,
        py: Python<'_>,
    ) -> PyResult<Self> {
        let leader_epoch: Integer = keywords.take("leader_epoch", Integer::Of(0))?;
        let profile: String = keywords.take("profile", "strict".to_owned())?;
        let kafka_version: Option<String> = keywords.take("kafka_version", None)?;
        let unknown_producer: String = keywords.take("unknown_producer", "auto".to_owned())?;
        let config = settings_of(py, config)?.get().config().clone();
        Ok(Self {
            settings: LeaderSettings {
                kafka_version: release_of(&config, kafka_version.as_deref())?,
                config,
                leader_epoch: leader_epoch.leader_epoch()?,
                profile: profile_of(&profile)?,
                unknown_producer: unknown_producer_of(&unknown_producer)?,
                transaction_verification: keywords.take("transaction_verification", true)?,
            },
            topic: keywords.take("topic", String::new())?,
            partition: keywords.int("partition", 0)?,
        })
    }
}

/// What becomes of a producer that the partition does not know, by its name.
pub fn unknown_producer_of(name: &str) -> PyResult<UnknownProducer> {
    UnknownProducer::from_name(name).ok_or_else(|| {
        let names = "'auto', 'unknown' or 'accept'";
        PyValueError::new_err(format!("unknown_producer is {names}, not '{name}'"))
    })
}

/// What is known of a stored log beside its bytes.
pub(crate) struct StoredLogOptions {
    pub(crate) snapshot_offset: i64,
    pub(crate) offsets: LogOffsets,
    pub(crate) aborted: Vec<Aborted>,
    pub(crate) replay: Replay,
}

impl StoredLogOptions {
    pub(crate) fn take(keywords: &Keywords<'_>) -> PyResult<Self> {
        let aborted: Vec<AbortedTransaction> = keywords.take("aborted_transactions", Vec::new())?;
        let mut aborted: Vec<_> = aborted.into_iter().map(AbortedTransaction::entry).collect();
        sort_by_key(&mut aborted, |entry| entry.last_offset);
        let is_recovery = keywords.take("is_recovery", false)?;
        Ok(Self {
            snapshot_offset: keywords.int("snapshot_offset", 0)?,
            offsets: LogOffsets {
                log_start_offset: keywords.int("log_start_offset", 0)?,
                log_start_batch_offset: keywords.int("log_start_batch_offset", None)?,
                high_watermark: keywords.int("high_watermark", None)?,
                log_end_offset: keywords.int("log_end_offset", None)?,
            },
            aborted,
            replay: if is_recovery { Replay::Recover } else { Replay::Load },
        })
    }
}
