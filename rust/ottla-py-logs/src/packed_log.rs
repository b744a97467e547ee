//! What a log adds to the tables of an audit, packed until somebody reads it.

use crate::packed_rows::{Cell, RowPacker, unpack};
use crate::partition::PartitionScan;
use crate::partition_tables::PartitionTable;
use crate::segment::{SegmentScan, codecs_of, magics_of};
use ottla_audit::RetentionEffect;
use ottla_py_batches::calls::{attached, detached};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

/// Rows that are unpacked at a time, where a table has more.
const PIECE_ROWS: u32 = 1024;

/// The version of the format of :meth:`PackedLog.to_bytes`.
const VERSION: u8 = 2;

/// Number of the section of the files; those of tables count from 0.
const FILES: u8 = u8::MAX;

fn section_of(table: PartitionTable) -> u8 {
    let place = PartitionTable::ALL.iter().position(|known| *known == table);
    place.map_or(FILES, |place| place as u8)
}

fn table_of(name: &str) -> PyResult<PartitionTable> {
    let known = PartitionTable::ALL.into_iter().find(|table| table.name() == name);
    known
        .ok_or_else(|| PyValueError::new_err(format!("a partition adds nothing to a table {name}")))
}

/// Some rows of one section, as so many of the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
struct PackedPiece {
    section: u8,
    rows: u32,
    bytes: u32,
}

/// What a log comes to, for which nobody needs to unpack its rows: scanned files, their batches, records
/// and bytes; transactions committed and aborted; segments that a timestamp in the future holds back.
type Totals = [u64; 7];

fn totals_of<'a>(
    scans: impl Iterator<Item = &'a ottla_audit::SegmentScan>,
    merged: &[&PartitionScan],
) -> Totals {
    let files = scans.map(|scan| {
        let counters = &scan.counters;
        [1, counters.batches, counters.records, counters.bytes, 0, 0, 0]
    });
    let partitions = merged.iter().map(|partition| {
        let inner = &partition.inner;
        let effects = inner.segments.iter().map(RetentionEffect::of);
        let held_back = effects.filter(|effect| *effect == Some(RetentionEffect::HeldBack)).count();
        [0, 0, 0, 0, inner.counters.committed, inner.counters.aborted, held_back as u64]
    });
    files.chain(partitions).fold(Totals::default(), sum_of)
}

fn sum_of(one: Totals, other: Totals) -> Totals {
    std::array::from_fn(|n| one.get(n).zip(other.get(n)).map_or(0, |(a, b)| a.saturating_add(*b)))
}

/// The scanned files of a log, and the rows that it adds to every table: some hundred bytes, picklable.
#[pyclass(frozen, eq, module = "ottla._engine")]
#[derive(Default, PartialEq, Eq)]
pub struct PackedLog {
    data: Box<[u8]>,
    pieces: Box<[PackedPiece]>,
    totals: Totals,
}

/// A log that is being packed.
#[derive(Default)]
struct Packing {
    data: Vec<u8>,
    pieces: Vec<PackedPiece>,
}

impl Packing {
    /// Adds the rows that `each_row` passes to what it is given.
    fn add<'a>(&mut self, section: u8, each_row: impl FnOnce(&mut dyn FnMut(&[Cell<'a>]))) {
        let mut packer = RowPacker::default();
        each_row(&mut |row| {
            packer.push(row);
            if packer.count() == PIECE_ROWS {
                self.close(section, std::mem::take(&mut packer));
            }
        });
        if packer.count() > 0 {
            self.close(section, packer);
        }
    }

    fn close(&mut self, section: u8, packer: RowPacker<'_>) {
        let rows = packer.count();
        let data = packer.into_bytes();
        let bytes = u32::try_from(data.len()).unwrap_or(u32::MAX);
        self.data.extend_from_slice(&data);
        self.pieces.push(PackedPiece { section, rows, bytes });
    }
}

/// The row of a file, whose last values are lists.
struct FileCells {
    values: [Cell<'static>; 8],
    magics: Vec<Cell<'static>>,
    codecs: Vec<Cell<'static>>,
}

impl FileCells {
    fn of((index, scan): (u32, &ottla_audit::SegmentScan)) -> Self {
        let counters = &scan.counters;
        Self {
            values: [
                index.into(),
                counters.bytes.into(),
                counters.batches.into(),
                counters.records.into(),
                scan.first_offset.into(),
                scan.next_offset.into(),
                scan.oldest.map(|oldest| oldest.timestamp).into(),
                scan.newest.map(|newest| newest.timestamp).into(),
            ],
            magics: magics_of(scan).into_iter().map(Cell::from).collect(),
            codecs: codecs_of(scan).into_iter().map(Cell::from).collect(),
        }
    }

    fn pass_to<'a>(&'a self, take: &mut dyn FnMut(&[Cell<'a>])) {
        let lists = [Cell::List(&self.magics), Cell::List(&self.codecs)];
        take(&[self.values.as_slice(), &lists].concat());
    }
}

impl PackedLog {
    /// Packs the scans of a log, each with the number of its file, and the rows of the partitions they
    /// were merged into.
    pub(crate) fn of<'a>(
        scans: impl Iterator<Item = (u32, &'a ottla_audit::SegmentScan)> + Clone,
        merged: &[&PartitionScan],
    ) -> Self {
        let mut packing = Packing::default();
        let totals = totals_of(scans.clone().map(|(_, scan)| scan), merged);
        let files = scans.map(FileCells::of).collect::<Vec<_>>();
        packing.add(FILES, |take| files.iter().for_each(|file| file.pass_to(take)));
        for table in PartitionTable::ALL {
            for partition in merged {
                packing.add(section_of(table), |take| partition.each_row(table, take));
            }
        }
        let Packing { data, pieces } = packing;
        Self { data: data.into(), pieces: pieces.into(), totals }
    }

    /// Bytes of its files.
    pub(crate) fn bytes(&self) -> u64 {
        let [_, _, _, bytes, ..] = self.totals;
        bytes
    }

    /// The bytes and the number of rows of a piece of a section.
    fn piece(&self, section: u8, number: usize) -> Option<(&[u8], u32)> {
        let mut start: usize = 0;
        let mut left = number;
        for piece in &self.pieces {
            let end = start.saturating_add(piece.bytes as usize);
            if piece.section == section {
                if left == 0 {
                    return Some((self.data.get(start..end)?, piece.rows));
                }
                left = left.saturating_sub(1);
            }
            start = end;
        }
        None
    }

    fn unpacked<'py>(
        &self,
        py: Python<'py>,
        section: u8,
        number: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyTuple>>>> {
        self.piece(section, number).map(|(data, rows)| unpack(py, data, rows)).transpose()
    }

    fn from_packed(data: &[u8]) -> Option<Self> {
        let (&[VERSION], rest) = data.split_first_chunk()? else { return None };
        let (sums, rest) = rest.split_at_checked(size_of::<Totals>())?;
        let mut totals = Totals::default();
        for (total, sum) in totals.iter_mut().zip(sums.as_chunks().0) {
            *total = u64::from_be_bytes(*sum);
        }
        let (count, rest) = rest.split_first_chunk()?;
        let size = usize::try_from(u32::from_be_bytes(*count)).ok()?.checked_mul(9)?;
        let (pieces, data) = rest.split_at_checked(size)?;
        let pieces: Box<[PackedPiece]> = pieces
            .as_chunks::<9>()
            .0
            .iter()
            .map(|&[section, a, b, c, d, e, f, g, h]| PackedPiece {
                section,
                rows: u32::from_be_bytes([a, b, c, d]),
                bytes: u32::from_be_bytes([e, f, g, h]),
            })
            .collect();
        Some(Self { data: data.into(), pieces, totals })
    }

    fn to_packed(&self) -> Vec<u8> {
        let mut data = vec![VERSION];
        for sum in self.totals {
            data.extend_from_slice(&sum.to_be_bytes());
        }
        data.extend_from_slice(&u32::try_from(self.pieces.len()).unwrap_or(0).to_be_bytes());
        for piece in &self.pieces {
            data.push(piece.section);
            data.extend_from_slice(&piece.rows.to_be_bytes());
            data.extend_from_slice(&piece.bytes.to_be_bytes());
        }
        data.extend_from_slice(&self.data);
        data
    }
}

#[pymethods]
impl PackedLog {
    /// Packs what was found in a log.
    ///
    /// Args:
    ///     scans: pairs of a number of a file, and its scan.
    ///     merged: what they were merged into, as far as it adds rows to tables.
    #[new]
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
    fn new(
        py: Python<'_>,
        scans: Vec<(u32, Py<SegmentScan>)>,
        merged: Vec<Py<PartitionScan>>,
    ) -> PyResult<Self> {
        detached(py, || {
            let scans = scans.iter().map(|(index, scan)| (*index, &scan.get().inner));
            let merged: Vec<&PartitionScan> = merged.iter().map(Py::get).collect();
            Self::of(scans, &merged)
        })
    }

    /// How many files were scanned.
    #[getter]
    fn file_count(&self) -> u64 {
        let [files, ..] = self.totals;
        files
    }

    /// What logs come to together: how many files were scanned, their batches, records and bytes;
    /// transactions committed and aborted; segments that a timestamp in the future holds back; and the
    /// rows of each table, in the order of :func:`partition_tables`.
    #[staticmethod]
    #[expect(clippy::needless_pass_by_value, reason = "a list of Python arrives as a vector")]
    fn totals(logs: Vec<Option<Bound<'_, Self>>>) -> (Totals, [u64; PartitionTable::ALL.len()]) {
        let mut totals = Totals::default();
        let mut rows = [0; PartitionTable::ALL.len()];
        for log in logs.iter().flatten().map(Bound::get) {
            totals = sum_of(totals, log.totals);
            for piece in &log.pieces {
                if let Some(rows) = rows.get_mut(usize::from(piece.section)) {
                    *rows = u64::saturating_add(*rows, piece.rows.into());
                }
            }
        }
        (totals, rows)
    }

    /// A piece of the scanned files: number, bytes, batches, records, first and next offset, least and
    /// greatest timestamp, versions and codecs; ``None`` behind the last.
    fn files<'py>(
        &self,
        py: Python<'py>,
        piece: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyTuple>>>> {
        self.unpacked(py, FILES, piece)
    }

    /// A piece of the rows of a table; ``None`` behind the last.
    ///
    /// Raises:
    ///     ValueError: there is no such table.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        table: &str,
        piece: usize,
    ) -> PyResult<Option<Vec<Bound<'py, PyTuple>>>> {
        self.unpacked(py, section_of(table_of(table)?), piece)
    }

    /// The bytes that :meth:`from_bytes` makes it of.
    fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &attached(py, || self.to_packed())?))
    }

    /// The packed log that :meth:`to_bytes` made into bytes.
    ///
    /// Raises:
    ///     ValueError: the bytes are not of this format, or of another version of it.
    #[staticmethod]
    fn from_bytes(data: &[u8]) -> PyResult<Self> {
        Self::from_packed(data)
            .ok_or_else(|| PyValueError::new_err("these bytes are no packed log"))
    }

    fn __reduce__<'py>(
        slf: &Bound<'py, Self>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let from_bytes = slf.get_type().getattr("from_bytes")?;
        Ok((from_bytes, (slf.get().to_bytes(slf.py())?,)))
    }
}

/// The tables that partitions fill, each with the names of its columns. A column ``file`` has the number
/// of a file.
#[pyfunction]
pub fn partition_tables() -> Vec<(&'static str, Vec<&'static str>)> {
    let tables = PartitionTable::ALL.into_iter();
    tables.map(|table| (table.name(), table.columns().to_vec())).collect()
}
