//! Where the bytes of a segment come from, and the window through which they are read.

use std::io;

/// Bytes that can be read from any position.
pub trait Source {
    /// Reads into `buffer` from `position` on. Returns the number of bytes read, 0 only at the end.
    ///
    /// # Errors
    /// What the operating system reports.
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// How many bytes there are.
    ///
    /// # Errors
    /// What the operating system reports.
    fn size(&self) -> io::Result<u64>;

    /// Where bytes other than zeros may come at the earliest from `position` on, without reading: a
    /// sparse file has no blocks for its zeros. `u64::MAX` where none come.
    fn next_data(&self, position: u64) -> u64 {
        position
    }
}

#[cfg(any(unix, windows))]
impl Source for std::fs::File {
    #[cfg(unix)]
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, position)
    }

    // It moves the file's own position, which nothing here reads.
    #[cfg(windows)]
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, position)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(any(target_os = "linux", target_os = "macos", target_os = "freebsd"))]
    fn next_data(&self, position: u64) -> u64 {
        // Where it is read plays no part: every read says its position.
        match rustix::fs::seek(self, rustix::fs::SeekFrom::Data(position)) {
            Ok(data) => data.max(position),
            Err(rustix::io::Errno::NXIO) => u64::MAX,
            // A file system that does not tell.
            Err(_) => position,
        }
    }
}

impl Source for [u8] {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(position).ok().and_then(|at| self.get(at..)).unwrap_or(&[]);
        Ok(copy(rest, buffer))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

/// Copies as many bytes as there are and fit. Returns how many.
fn copy(from: &[u8], to: &mut [u8]) -> usize {
    let size = from.len().min(to.len());
    if let (Some(to), Some(from)) = (to.get_mut(..size), from.get(..size)) {
        to.copy_from_slice(from);
    }
    size
}

/// The first bytes of a source, whatever is appended to it meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Limited<S> {
    source: S,
    size: u64,
}

impl<S: Source> Limited<S> {
    /// At most `size` bytes of `source`.
    pub fn new(source: S, size: u64) -> Self {
        Self { source, size }
    }
}

impl<S: Source> Source for Limited<S> {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.size.saturating_sub(position)).unwrap_or(usize::MAX);
        let size = buffer.len().min(left);
        buffer.get_mut(..size).map_or(Ok(0), |room| self.source.read_at(position, room))
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.source.size()?.min(self.size))
    }

    fn next_data(&self, position: u64) -> u64 {
        self.source.next_data(position)
    }
}

impl<T: Source + ?Sized> Source for &T {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(position, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }

    fn next_data(&self, position: u64) -> u64 {
        (**self).next_data(position)
    }
}

/// Fills a buffer from a position on. Returns how much of it, less only at the end of the source.
///
/// # Errors
/// What the source reports.
pub fn fill(source: &dyn Source, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled: usize = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match source.read_at(position.saturating_add(filled as u64), room) {
            Ok(0) => break,
            Ok(read) => filled = filled.saturating_add(read),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Bytes a window reads at once and usually holds. Of 1 to 8 MiB the fastest: small enough to stay in
/// the caches of the core while it is checked, large enough for the system to copy at full speed.
pub const WINDOW_BYTES: usize = 2 << 20;

/// Zeros at the end are counted in pieces of this size.
const PIECE: usize = 64 << 10;

/// Where reading fails is found to this many bytes: the page of a disk.
const PAGE: u64 = 4096;

/// A part of a source in memory. It moves forward, and backward after damage, and grows only for a
/// single batch that is larger than itself.
///
/// A source may turn out shorter than it said, and an I/O error ends it as well: the code that reads
/// through the window knows one kind of end, and the error is held for later. Either counts when
/// bytes from there are needed, not when they are read ahead: results depend on what was read, never
/// on where the window happened to be.
pub struct Window<'a> {
    source: &'a dyn Source,
    progress: &'a mut dyn FnMut(u64) -> bool,
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
    end: u64,
    usual: usize,
    failure: Option<io::Error>,
    is_cancelled: bool,
    /// Where the zeros at the end begin, once that was asked.
    zeros: Option<u64>,
    /// How many of them are counted.
    max_zeros: u64,
    has_more_zeros: bool,
}

/// What a window holds between two uses of its source.
#[derive(Debug)]
pub struct WindowState {
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
    end: u64,
    usual: usize,
    zeros: Option<u64>,
    has_more_zeros: bool,
}

impl<'a> Window<'a> {
    /// A window over a source. `buffer` is memory of an earlier window, to be used again; `usual` is
    /// how many bytes are read at once, at most [`WINDOW_BYTES`]. `progress` is called with the bytes
    /// of each read, and stops reading by returning `false`.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn new(
        source: &'a dyn Source,
        buffer: Vec<u8>,
        usual: u64,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> io::Result<Self> {
        let end = source.size()?;
        let usual = WINDOW_BYTES.min(usize::try_from(end.min(usual)).unwrap_or(WINDOW_BYTES));
        Ok(Self {
            source,
            progress,
            buffer,
            start: 0,
            filled: 0,
            end,
            usual,
            failure: None,
            is_cancelled: false,
            zeros: None,
            max_zeros: u64::MAX,
            has_more_zeros: false,
        })
    }

    /// Ends the source where an earlier window found its end.
    pub fn resume(&mut self, end: u64, failure: Option<&str>) {
        self.end = self.end.min(end);
        self.failure = failure.map(io::Error::other);
    }

    /// What it holds, for a later window over the same source.
    pub fn into_state(self) -> WindowState {
        let Self { buffer, start, filled, end, usual, zeros, has_more_zeros, .. } = self;
        WindowState { buffer, start, filled, end, usual, zeros, has_more_zeros }
    }

    /// The window with this state, over the same source.
    pub fn from_state(
        source: &'a dyn Source,
        state: WindowState,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Self {
        let WindowState { buffer, start, filled, end, usual, zeros, has_more_zeros } = state;
        Self {
            source,
            progress,
            buffer,
            start,
            filled,
            end,
            usual,
            failure: None,
            is_cancelled: false,
            zeros,
            max_zeros: u64::MAX,
            has_more_zeros,
        }
    }

    /// Returns the memory, for a later window.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Where the source ends, as far as is known.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The error that ended reading, if one did, without the window holding it any longer.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// The error that ended reading, if one did.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Whether `progress` stopped reading.
    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled
    }

    /// What is held from `position` on, without reading.
    pub fn held(&self, position: u64) -> &[u8] {
        position
            .checked_sub(self.start)
            .and_then(|skip| usize::try_from(skip).ok())
            .and_then(|skip| self.buffer.get(skip..self.filled))
            .unwrap_or_default()
    }

    /// What is held from `position` on, at least `wanted` bytes or all there are: reads what is
    /// missing.
    pub fn hold(&mut self, position: u64, wanted: usize) -> &[u8] {
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        if self.held(position).len() < wanted.min(left) {
            self.refill(position, wanted.min(left), wanted.max(self.usual).min(left));
        }
        self.held(position)
    }

    /// Exactly `wanted` bytes from `position` on, fewer at the end.
    pub fn look(&mut self, position: u64, wanted: usize) -> &[u8] {
        let held = self.hold(position, wanted);
        held.get(..wanted).unwrap_or(held)
    }

    /// Moves the window to `position` and fills it with `size` bytes, of which `wanted` are needed.
    fn refill(&mut self, position: u64, wanted: usize, size: usize) {
        self.move_to(position, size);
        let mut by_page = false;
        while self.filled < size && !self.is_cancelled {
            let from = self.held_end();
            let stop = if by_page { bytes_to_page_end(from) } else { usize::MAX };
            let stop = self.filled.saturating_add(stop).min(size);
            let Some(room) = self.buffer.get_mut(self.filled..stop) else { break };
            match self.source.read_at(from, room) {
                Ok(read) if read > 0 => {
                    self.filled = self.filled.saturating_add(read);
                    self.is_cancelled = !(self.progress)(read as u64);
                    continue;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                // What can be read of it is read page by page.
                Err(_) if !by_page => {
                    by_page = true;
                    continue;
                }
                ended if self.filled < wanted => {
                    self.end_at(from);
                    self.failure = ended.err();
                }
                _ => {}
            }
            break;
        }
        if self.is_cancelled {
            self.end = self.held_end();
        }
    }

    /// Moves the window to `position` with what it holds from there on, and makes room for `size`
    /// bytes.
    fn move_to(&mut self, position: u64, size: usize) {
        let kept = self.held(position).len();
        if kept > 0 {
            self.buffer.copy_within(self.filled.saturating_sub(kept)..self.filled, 0);
        }
        self.start = position;
        self.filled = kept;
        if self.buffer.len() > 2 * WINDOW_BYTES && size.max(kept) <= WINDOW_BYTES {
            // A batch larger than the window has passed: give its memory back.
            self.buffer.truncate(WINDOW_BYTES);
            self.buffer.shrink_to_fit();
        }
        if self.buffer.len() < size {
            self.buffer.resize(size, 0);
        }
    }

    /// Position after the bytes that are held.
    fn held_end(&self) -> u64 {
        self.start.saturating_add(self.filled as u64)
    }

    fn end_at(&mut self, end: u64) {
        self.end = end;
        self.zeros = None;
    }

    /// Limits how many zeros at the end of the source are counted.
    pub fn count_zeros(&mut self, max_zeros: u64) {
        self.max_zeros = max_zeros;
    }

    /// Whether the source ends in more zeros than were to be counted: where they begin is unknown then.
    pub fn has_more_zeros(&self) -> bool {
        self.has_more_zeros
    }

    /// Where the zeros at the end of the source begin, but not below `floor`, which must not fall from
    /// call to call.
    pub fn zeros_from(&mut self, floor: u64) -> u64 {
        if let Some(zeros) = self.zeros {
            return zeros.max(floor).min(self.end);
        }
        let mut left = self.max_zeros;
        let mut start = self.end;
        // Most damage is near the end of a small file.
        let size = usize::try_from(start.saturating_sub(floor)).unwrap_or(PIECE);
        let mut piece = vec![0; size.min(PIECE)];
        while start > floor {
            let from = start.saturating_sub(PIECE as u64).max(floor);
            let size = start.saturating_sub(from) as usize;
            let Some(room) = piece.get_mut(..size) else { break };
            let read = self.peek(from, room);
            let last = piece.iter().take(read).rposition(|&byte| byte != 0);
            if let Some(last) = last {
                start = from.saturating_add(last as u64).saturating_add(1);
                break;
            }
            start = self.hole_before(from, floor);
            let counted = left.checked_sub(read as u64);
            if start > floor && counted.is_none() {
                self.has_more_zeros = true;
                break;
            }
            left = counted.unwrap_or(0);
        }
        self.zeros = Some(start);
        start
    }

    /// Where the hole of a sparse file begins that ends at `end`, but not below `floor`; `end` without
    /// one.
    fn hole_before(&self, end: u64, floor: u64) -> u64 {
        let is_hole = |position: u64| self.source.next_data(position) >= end;
        if end <= floor || !is_hole(end.saturating_sub(PIECE as u64).max(floor)) {
            return end;
        }
        let (mut data, mut hole) = (floor, end);
        while data < hole {
            let middle = data.midpoint(hole);
            if is_hole(middle) {
                hole = middle;
            } else {
                data = middle.saturating_add(1);
            }
        }
        hole
    }

    /// The next position that is not in a hole of a sparse file, which holds nothing but zeros.
    pub fn next_data(&self, position: u64) -> u64 {
        self.source.next_data(position).min(self.end).max(position)
    }

    /// Reads a few bytes elsewhere without moving the window; fewer at the end.
    pub fn peek(&mut self, position: u64, buffer: &mut [u8]) -> usize {
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let Some(wanted_room) = buffer.get_mut(..wanted) else { return 0 };
        let held = self.held(position);
        if held.len() >= wanted {
            return copy(held, wanted_room);
        }
        let mut done: usize = 0;
        while let Some(room) = wanted_room.get_mut(done..).filter(|room| !room.is_empty()) {
            match self.source.read_at(position.saturating_add(done as u64), room) {
                Ok(0) => break,
                Ok(read) => done = done.saturating_add(read),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        done
    }
}

/// Bytes from a position to the end of its page.
#[allow(clippy::arithmetic_side_effects, reason = "the remainder is below the page it is taken of")]
fn bytes_to_page_end(position: u64) -> usize {
    (PAGE - position % PAGE) as usize
}
