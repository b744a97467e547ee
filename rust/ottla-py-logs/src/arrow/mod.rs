//! Columns and tables for Arrow.

pub mod fetched;
pub mod split;
mod spread;
pub mod tables;
pub mod verdicts;
