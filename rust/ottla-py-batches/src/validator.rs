//! Each thread's validator.

use crate::bytes::DETACH_BYTES;
use crate::kernels::kernels;
use ottla_format::limits::Limits;
use ottla_leader::Validator;
use std::cell::Cell;

thread_local! {
    static IDLE: Cell<Option<Box<Validator>>> = const { Cell::new(None) };
}

/// Works with this thread's validator, which is taken out for that time: whoever asks meanwhile, from
/// Python called on the way, gets another one.
pub fn with_validator<T>(work: impl FnOnce(&mut Validator) -> T) -> T {
    IDLE.with(|idle| {
        let mut validator =
            idle.take().unwrap_or_else(|| Box::new(Validator::new(Limits::default(), kernels())));
        let result = work(&mut validator);
        idle.set(Some(validator));
        result
    })
}

/// Whether a decision takes less than a microsecond, so that keeping the GIL is cheaper: few bytes,
/// which do not inflate to many.
pub(crate) fn is_short(records: &[u8]) -> bool {
    const PLAIN_BYTES: usize = 16 << 10;
    const CODEC: u8 = 7;
    let is_plain = || records.get(22).is_some_and(|attributes| attributes & CODEC == 0);
    records.len() < DETACH_BYTES || records.len() < PLAIN_BYTES && is_plain()
}
