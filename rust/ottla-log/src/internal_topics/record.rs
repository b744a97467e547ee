//! A record of an internal topic, decoded.

use super::schema::Value;

/// The value of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordValue {
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

impl RecordValue {
    pub(super) fn of((version, value): (i16, Value)) -> Self {
        Self::Value { version, value }
    }
}

/// A record of an internal topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoordinatorRecord {
    /// Its type.
    pub name: &'static str,
    /// The fields of its key.
    pub key: Value,
    /// Its value.
    pub value: RecordValue,
}
