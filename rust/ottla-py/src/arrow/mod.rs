//! Tables as columns of Arrow.

pub(crate) mod verdicts;
