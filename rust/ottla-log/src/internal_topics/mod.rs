//! The topics in which coordinators keep what they know, decoded.
//!
//! | module | subject |
//! | --- | --- |
//! | [`schema`] | Kafka's generated formats, read by tables |
//! | [`consumer_offsets`] | `__consumer_offsets`: committed offsets, groups |
//! | [`transaction_state`] | `__transaction_state`: transactional ids |

pub mod consumer_offsets;
pub mod schema;
pub mod transaction_state;

use crate::names::{CONSUMER_OFFSETS, TRANSACTION_STATE};
use schema::{Fault, Value};

/// The value of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// There is none: the key is deleted.
    Tombstone,
    /// One of a type whose values are not decoded here.
    Opaque,
    /// One of a known version.
    Value {
        /// The version.
        version: i16,
        /// Its fields.
        value: Value,
    },
}

impl Record {
    fn of((version, value): (i16, Value)) -> Self {
        Self::Value { version, value }
    }
}

/// A record of an internal topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Its type.
    pub name: &'static str,
    /// The fields of its key.
    pub key: Value,
    /// Its value.
    pub value: Record,
}

/// Decodes a record of a topic; `None` for a topic that is not one of these.
///
/// # Errors
/// [`Fault`], of the key or of the value.
pub fn decode(topic: &str, key: &[u8], value: Option<&[u8]>) -> Option<Result<Decoded, Fault>> {
    match topic {
        CONSUMER_OFFSETS => Some(consumer_offsets::decode(key, value)),
        TRANSACTION_STATE => Some(transaction_state::decode(key, value)),
        _ => None,
    }
}
