//! Everything that can be found.
//!
//! | module | subject |
//! | --- | --- |
//! | [`kinds`] | the kinds of findings, one row each |
//! | [`row`] | what the catalogue says about a kind |
//! | [`causes`] | why offsets are missing, one row for each cause |
//! | [`severity`] | how grave a finding is |
//! | [`finding`] | one thing found |
//! | [`message`] | what it says in a sentence |
//! | [`list`] | findings of one segment, in bounded memory |

pub mod causes;
pub mod finding;
pub mod kinds;
pub mod list;
pub mod message;
pub mod row;
pub mod severity;
