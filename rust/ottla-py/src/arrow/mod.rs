//! Columns and tables for Arrow.

pub(crate) mod columns;
pub(crate) mod split;
pub(crate) mod stream;
pub(crate) mod tables;
pub(crate) mod verdicts;
