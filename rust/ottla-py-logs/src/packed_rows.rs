//! Rows of values as few bytes: a log keeps them until somebody reads them.
//!
//! ```text
//! piece   columns, then for each row a value for each column
//! value   a number: what it is in the low three bits, and
//!         a text: its size, before its bytes; an integer: its distance from the row before, zigzag;
//!         a list: how many values follow, each as if no row were before it
//! ```
//!
//! Numbers are of as many bytes as they need, seven bits in each. Rows of one log are much alike, so
//! most values take one or two.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// A value of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cell<'a> {
    Nothing,
    Flag(bool),
    Number(i128),
    Text(&'a str),
    List(&'a [Cell<'a>]),
}

const NOTHING: u128 = 0;
const FLAG: u128 = 1;
const NUMBER: u128 = 2;
const TEXT: u128 = 3;
/// The same text as in the row before.
const SAME_TEXT: u128 = 4;
const LIST: u128 = 5;
const KIND_BITS: u32 = 3;

/// Lists of values are flat: nothing nests deeper than this.
const MAX_DEPTH: usize = 4;

macro_rules! numbers {
    ($($kind:ty),*) => {
        $(impl From<$kind> for Cell<'_> {
            fn from(value: $kind) -> Self {
                Self::Number(i128::from(value))
            }
        })*
    };
}

numbers!(i16, i32, i64, u8, u32, u64);

impl From<usize> for Cell<'_> {
    fn from(value: usize) -> Self {
        Self::Number(value as i128)
    }
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Self::Flag(value)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a String> for Cell<'a> {
    fn from(value: &'a String) -> Self {
        Self::Text(value)
    }
}

impl<T: Into<Self>> From<Option<T>> for Cell<'_> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

impl<'a> From<&'a [Cell<'a>]> for Cell<'a> {
    fn from(values: &'a [Cell<'a>]) -> Self {
        Self::List(values)
    }
}

/// Makes bytes of rows.
#[derive(Default)]
pub(crate) struct RowPacker<'a> {
    data: Vec<u8>,
    before: Vec<Cell<'a>>,
    count: u32,
}

impl<'a> RowPacker<'a> {
    /// Adds a row; all have the same columns.
    pub(crate) fn push(&mut self, row: &[Cell<'a>]) {
        if self.count == 0 {
            put_number(&mut self.data, row.len() as u128);
            self.before = vec![Cell::Nothing; row.len()];
        }
        for (cell, before) in row.iter().zip(&mut self.before) {
            put(&mut self.data, cell, before);
            *before = *cell;
        }
        self.count = self.count.saturating_add(1);
    }

    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.data
    }
}

fn put(data: &mut Vec<u8>, cell: &Cell<'_>, before: &Cell<'_>) {
    let (kind, number) = match cell {
        Cell::Nothing => (NOTHING, 0),
        Cell::Flag(value) => (FLAG, u128::from(*value)),
        Cell::Number(value) => (NUMBER, zigzag(value.wrapping_sub(number_of(before)))),
        Cell::Text(_) if before == cell => (SAME_TEXT, 0),
        Cell::Text(text) => (TEXT, text.len() as u128),
        Cell::List(cells) => (LIST, cells.len() as u128),
    };
    let head = number << KIND_BITS | kind;
    if head < 0x80 {
        // As most are: rows of one log are much alike.
        data.push(head as u8);
    } else {
        put_number(data, head);
    }
    match cell {
        Cell::Text(text) if kind == TEXT => data.extend_from_slice(text.as_bytes()),
        Cell::List(cells) => cells.iter().for_each(|cell| put(data, cell, &Cell::Nothing)),
        _ => {}
    }
}

fn number_of(before: &Cell<'_>) -> i128 {
    if let Cell::Number(value) = before { *value } else { 0 }
}

fn zigzag(value: i128) -> u128 {
    (value.wrapping_shl(1) ^ value.wrapping_shr(127)).cast_unsigned()
}

fn put_number(data: &mut Vec<u8>, mut number: u128) {
    while number > u128::from(u64::MAX) {
        data.push(number as u8 | 0x80);
        number >>= 7;
    }
    // Hardly a number is longer, and those of 64 bits are much cheaper.
    let mut number = number as u64;
    while number >= 0x80 {
        data.push(number as u8 | 0x80);
        number >>= 7;
    }
    data.push(number as u8);
}

/// Reads the rows that a packer has made into bytes.
pub(crate) fn unpack<'py>(
    py: Python<'py>,
    data: &[u8],
    count: u32,
) -> PyResult<Vec<Bound<'py, PyTuple>>> {
    let mut reader = RowReader { data };
    let width = reader.number()?;
    // Each value takes a byte at least, and so does each row.
    if width == 0 || u128::from(count).saturating_mul(width) > data.len() as u128 {
        return Err(not_packed());
    }
    let width = width as usize;
    let mut numbers = vec![0; width];
    let mut texts: Vec<Option<Bound<'py, PyString>>> = vec![None; width];
    let mut rows = Vec::with_capacity(count as usize);
    let mut values = Vec::with_capacity(width);
    for _ in 0..count {
        for (number, text) in numbers.iter_mut().zip(&mut texts) {
            values.push(reader.value(py, number, text, 0)?);
        }
        rows.push(PyTuple::new(py, values.drain(..))?);
    }
    if reader.data.is_empty() { Ok(rows) } else { Err(not_packed()) }
}

fn not_packed() -> PyErr {
    PyValueError::new_err("these bytes are no packed rows")
}

struct RowReader<'a> {
    data: &'a [u8],
}

impl<'a> RowReader<'a> {
    fn number(&mut self) -> PyResult<u128> {
        if let Some((&byte, rest)) = self.data.split_first()
            && byte < 0x80
        {
            self.data = rest;
            return Ok(byte.into());
        }
        // Hardly a number is longer, and those of 64 bits are much cheaper.
        let mut small: u64 = 0;
        for (&byte, shift) in self.data.iter().zip((0_u32..63).step_by(7)) {
            small |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let size = (shift / 7).saturating_add(1) as usize;
                self.data = self.data.get(size..).unwrap_or_default();
                return Ok(small.into());
            }
        }
        self.large_number()
    }

    /// A number of more than 63 bits.
    fn large_number(&mut self) -> PyResult<u128> {
        let mut number: u128 = 0;
        for shift in (0..128).step_by(7) {
            let (&byte, rest) = self.data.split_first().ok_or_else(not_packed)?;
            self.data = rest;
            number |= u128::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(not_packed())
    }

    fn text(&mut self, size: u128) -> PyResult<&'a str> {
        let size = usize::try_from(size).map_err(|_| not_packed())?;
        let (text, rest) = self.data.split_at_checked(size).ok_or_else(not_packed)?;
        self.data = rest;
        std::str::from_utf8(text).map_err(|_| not_packed())
    }

    /// The next value; `number` and `text` are those of the row before.
    fn value<'py>(
        &mut self,
        py: Python<'py>,
        number: &mut i128,
        text: &mut Option<Bound<'py, PyString>>,
        depth: usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let head = self.number()?;
        let rest = head >> KIND_BITS;
        let kind = head & ((1 << KIND_BITS) - 1);
        if kind != NUMBER {
            *number = 0;
        }
        match kind {
            NOTHING => Ok(py.None().into_bound(py)),
            FLAG => (rest != 0).into_bound_py_any(py),
            NUMBER => {
                let distance = (rest >> 1).cast_signed() ^ (rest & 1).cast_signed().wrapping_neg();
                *number = number.wrapping_add(distance);
                match i64::try_from(*number) {
                    Ok(small) => small.into_bound_py_any(py),
                    Err(_) => number.into_bound_py_any(py),
                }
            }
            TEXT => {
                let made = PyString::new(py, self.text(rest)?);
                *text = Some(made.clone());
                Ok(made.into_any())
            }
            SAME_TEXT => text.clone().map(Bound::into_any).ok_or_else(not_packed),
            LIST if depth < MAX_DEPTH && rest <= self.data.len() as u128 => {
                let each =
                    (0..rest).map(|_| self.value(py, &mut 0, &mut None, depth.saturating_add(1)));
                Ok(PyTuple::new(py, each.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            _ => Err(not_packed()),
        }
    }
}
