//! Everything that can be found.
//!
//! | module | subject |
//! | --- | --- |
//! | [`findings`] | the catalogue, and a finding |

pub mod findings;
