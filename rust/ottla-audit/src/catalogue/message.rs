//! What a finding says in a sentence.

use ottla_format::words;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Room for a sentence about a transaction.
const USUAL_BYTES: usize = 192;

/// A sentence. Of what a log may have thousands of, it is made when somebody reads it.
#[derive(Clone, Debug)]
pub enum Message {
    /// One that is made.
    Text(String),
    /// That a transaction has no end marker.
    OpenTransaction(OpenTransactionFacts),
}

/// What is said of a transaction without an end marker.
#[derive(Clone, Copy, Debug)]
pub struct OpenTransactionFacts {
    pub(crate) producer_id: i64,
    pub(crate) producer_epoch: i16,
    pub(crate) batches: u64,
    pub(crate) first_offset: i64,
    pub(crate) age_ms: i64,
    /// Whether offsets after its beginning were lost.
    pub(crate) may_have_lost_marker: bool,
}

impl fmt::Display for OpenTransactionFacts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { producer_id, producer_epoch, batches, first_offset, age_ms, .. } = *self;
        let doubt = if self.may_have_lost_marker {
            "; its marker may be among the offsets lost to damage"
        } else {
            ""
        };
        write!(
            f,
            "producer {producer_id} epoch {producer_epoch}: {} from offset {first_offset} on without an end marker, open for {}; read_committed consumers stop there{doubt}",
            words::count(batches, "batch"),
            words::duration(age_ms),
        )
    }
}

impl Message {
    /// The sentence.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::OpenTransaction(facts) => {
                let mut text = String::with_capacity(USUAL_BYTES);
                // A string takes whatever is written.
                let _ = write!(text, "{facts}");
                Cow::Owned(text)
            }
        }
    }
}

impl From<String> for Message {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Message {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<OpenTransactionFacts> for Message {
    fn from(facts: OpenTransactionFacts) -> Self {
        Self::OpenTransaction(facts)
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text())
    }
}

impl PartialEq for Message {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Eq for Message {}

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::Text)
    }
}
