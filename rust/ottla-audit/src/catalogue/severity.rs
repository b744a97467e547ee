//! How grave a finding is.

use serde::{Deserialize, Serialize};
use std::fmt;

/// How grave a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Severity {
    /// Worth knowing; nothing is lost and nothing stops.
    Info,
    /// Records may be missing, or something will go wrong later.
    Warning,
    /// Bytes are damaged, or readers stop or get wrong data.
    Error,
}

impl Severity {
    /// `info`, `warning` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

impl Severity {
    /// Every severity, the gravest first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Info];

    /// The severity of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
