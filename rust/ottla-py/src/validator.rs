//! Each thread's validator.

use crate::bytes::DETACH_BYTES;
use crate::kernels::kernels;
use ottla_format::limits::Limits;
use ottla_leader::Validator;
use std::cell::RefCell;

thread_local! {
    static VALIDATOR: RefCell<Validator> =
        RefCell::new(Validator::new(Limits::default(), kernels()));
}

/// Lends this thread's validator.
pub(crate) fn with_validator<T>(work: impl FnOnce(&mut Validator) -> T) -> T {
    VALIDATOR.with_borrow_mut(work)
}

/// Whether a decision takes less than a microsecond, so that keeping the GIL is cheaper: few bytes,
/// which do not inflate to many.
pub(crate) fn is_short(records: &[u8]) -> bool {
    const PLAIN_BYTES: usize = 16 << 10;
    const CODEC: u8 = 7;
    let is_plain = || records.get(22).is_some_and(|attributes| attributes & CODEC == 0);
    records.len() < DETACH_BYTES || records.len() < PLAIN_BYTES && is_plain()
}
