//! A topic's configuration as the engine has it.

use crate::request_options::{named_release, release_of};
use ottla_leader::TopicConfig;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// The settings of a ``ottla.TopicConfig``, read once.
#[pyclass(frozen, module = "ottla._engine")]
pub struct TopicSettings {
    config: TopicConfig,
}

impl TopicSettings {
    /// The configuration.
    pub fn config(&self) -> &TopicConfig {
        &self.config
    }
}

#[pymethods]
impl TopicSettings {
    /// Reads pairs of Kafka's name of a setting and its value as text, of a release of Kafka.
    #[new]
    #[pyo3(signature = (settings, kafka_version=None))]
    fn new(settings: Vec<(String, String)>, kafka_version: Option<&str>) -> PyResult<Self> {
        let kafka_version = named_release(kafka_version)?;
        let mut config = TopicConfig { kafka_version, ..TopicConfig::default() };
        for (key, value) in settings {
            config.set(&key, &value).map_err(|error| PyValueError::new_err(error.to_string()))?;
        }
        if kafka_version.is_some() {
            release_of(&config, None)?;
        }
        Ok(Self { config })
    }
}

/// The settings of a ``TopicConfig``, those given as such, or Kafka's defaults.
pub fn settings_of(
    py: Python<'_>,
    config: Option<&Bound<'_, PyAny>>,
) -> PyResult<Py<TopicSettings>> {
    static DEFAULT: PyOnceLock<Py<TopicSettings>> = PyOnceLock::new();
    let Some(config) = config else {
        let default = DEFAULT.get_or_try_init(py, || {
            Py::new(py, TopicSettings { config: TopicConfig::default() })
        })?;
        return Ok(default.clone_ref(py));
    };
    if let Ok(settings) = config.cast::<TopicSettings>() {
        return Ok(settings.clone().unbind());
    }
    let settings = config.getattr(pyo3::intern!(py, "_settings")).ok();
    if let Some(settings) = settings.and_then(|settings| settings.cast_into().ok()) {
        return Ok(settings.unbind());
    }
    let found = config.get_type().qualname()?;
    Err(PyTypeError::new_err(format!("config is a TopicConfig, not {found}")))
}
