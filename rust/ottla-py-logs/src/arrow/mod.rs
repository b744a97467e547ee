//! Columns and tables for Arrow.

pub mod split;
mod spread;
pub mod tables;
pub mod verdicts;
