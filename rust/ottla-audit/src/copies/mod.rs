//! Copies of a partition compared.
//!
//! | module | subject |
//! | --- | --- |
//! | [`replicas`] | copies compared, block by block |

pub mod replicas;
