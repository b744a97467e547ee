//! Columns and tables for Arrow.

pub(crate) mod columns;
pub(crate) mod fetched;
pub(crate) mod shared;
pub(crate) mod split;
mod spread;
pub(crate) mod stream;
pub(crate) mod tables;
pub(crate) mod verdicts;
