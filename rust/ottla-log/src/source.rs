//! Where the bytes of a segment come from, and the window through which they are seen.

use std::io;

/// Bytes that can be read from any position.
pub trait Source {
    /// Reads into `buffer` from `position` on: the number of bytes read, 0 only at the end.
    ///
    /// # Errors
    /// What the operating system says.
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Bytes there are.
    ///
    /// # Errors
    /// What the operating system says.
    fn size(&self) -> io::Result<u64>;
}

#[cfg(unix)]
impl Source for std::fs::File {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, position)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}

impl Source for [u8] {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(position).ok().and_then(|at| self.get(at..)).unwrap_or_default();
        let size = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..size), rest.get(..size)) {
            to.copy_from_slice(from);
        }
        Ok(size)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
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
        self.source.read_at(position, buffer.get_mut(..size).unwrap_or_default())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.source.size()?.min(self.size))
    }
}

impl<T: Source + ?Sized> Source for &T {
    fn read_at(&self, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
        (**self).read_at(position, buffer)
    }

    fn size(&self) -> io::Result<u64> {
        (**self).size()
    }
}

/// Fills a buffer from a position on: how much of it, less only at the end of the source.
///
/// # Errors
/// What the source says.
pub fn fill(source: &dyn Source, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(room) = buffer.get_mut(filled..).filter(|room| !room.is_empty()) {
        match source.read_at(position.saturating_add(filled as u64), room) {
            Ok(0) => break,
            Ok(read) => filled += read,
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

/// A part of a source held in memory. It moves forward, and backward after damage, and grows only
/// for a single batch that is larger than itself.
///
/// A source that turns out shorter than it said ends where it ends; an I/O error ends it too and is
/// kept. So the code that looks through the window knows one kind of end. Either is noticed when
/// bytes from there are asked for, not when they are read ahead: what is seen depends on what was
/// looked at, never on where the window happened to be.
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
    most_zeros: u64,
    has_more_zeros: bool,
}

/// A window that is not looked through for a while.
#[derive(Debug)]
pub struct Kept {
    buffer: Vec<u8>,
    start: u64,
    filled: usize,
    end: u64,
    usual: usize,
    zeros: Option<u64>,
    has_more_zeros: bool,
}

impl<'a> Window<'a> {
    /// `buffer` is memory of an earlier window, to be used again; `usual` how many bytes are read at
    /// once, at most [`WINDOW_BYTES`].
    ///
    /// # Errors
    /// What the operating system says.
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
            most_zeros: u64::MAX,
            has_more_zeros: false,
        })
    }

    /// Takes the source to end where an earlier window found its end.
    pub fn resume(&mut self, end: u64, failure: Option<&str>) {
        self.end = self.end.min(end);
        self.failure = failure.map(io::Error::other);
    }

    /// What it holds, for a later window over the same source.
    pub fn keep(self) -> Kept {
        let Self { buffer, start, filled, end, usual, zeros, has_more_zeros, .. } = self;
        Kept { buffer, start, filled, end, usual, zeros, has_more_zeros }
    }

    /// The window that was kept.
    pub fn again(
        source: &'a dyn Source,
        kept: Kept,
        progress: &'a mut dyn FnMut(u64) -> bool,
    ) -> Self {
        let Kept { buffer, start, filled, end, usual, zeros, has_more_zeros } = kept;
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
            most_zeros: u64::MAX,
            has_more_zeros,
        }
    }

    /// Gives the memory back.
    pub fn into_buffer(self) -> Vec<u8> {
        self.buffer
    }

    /// Where the source ends, as far as is known.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The same, taken out.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }

    /// The error that ended reading, if one did.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failure.as_ref()
    }

    /// Whether the caller said to stop.
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

    /// What is held from `position` on, after making sure that it is `wanted` bytes, or all there
    /// are.
    pub fn hold(&mut self, position: u64, wanted: usize) -> &[u8] {
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        if self.held(position).len() < wanted.min(left) {
            self.refill(position, wanted.min(left), wanted.max(self.usual).min(left));
        }
        self.held(position)
    }

    /// As `hold`, and no more than what was asked for.
    pub fn look(&mut self, position: u64, wanted: usize) -> &[u8] {
        let held = self.hold(position, wanted);
        held.get(..wanted).unwrap_or(held)
    }

    /// Moves the window to `position` and fills it with `size` bytes, of which `wanted` are needed.
    fn refill(&mut self, position: u64, wanted: usize, size: usize) {
        let kept = self.held(position).len();
        if kept > 0 {
            self.buffer.copy_within(self.filled - kept..self.filled, 0);
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
        let mut by_page = false;
        while self.filled < size && !self.is_cancelled {
            let from = self.start + self.filled as u64;
            let page = (PAGE - from % PAGE) as usize;
            let stop = if by_page { size.min(self.filled + page) } else { size };
            let Some(room) = self.buffer.get_mut(self.filled..stop) else { break };
            match self.source.read_at(from, room) {
                Ok(read) if read > 0 => {
                    self.filled += read;
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
            self.end = self.start + self.filled as u64;
        }
    }

    fn end_at(&mut self, end: u64) {
        self.end = end;
        self.zeros = None;
    }

    /// Counts no more than so many zeros at the end of the source.
    pub fn count_zeros(&mut self, most: u64) {
        self.most_zeros = most;
    }

    /// Whether more zeros were at the end than were to be counted: then where they begin is not known.
    pub fn has_more_zeros(&self) -> bool {
        self.has_more_zeros
    }

    /// Where the zeros at the end of the source begin, seen back to `floor`; that only goes up from
    /// call to call.
    pub fn zeros_from(&mut self, floor: u64) -> u64 {
        if let Some(zeros) = self.zeros {
            return zeros.max(floor).min(self.end);
        }
        let lowest = self.end.saturating_sub(self.most_zeros);
        let mut start = self.end;
        let mut piece = vec![0; PIECE];
        while start > floor {
            let from = start.saturating_sub(PIECE as u64).max(floor);
            let size = (start - from) as usize;
            let read = self.peek(from, piece.get_mut(..size).unwrap_or_default());
            if let Some(last) = piece.iter().take(read).rposition(|&byte| byte != 0) {
                start = from + last as u64 + 1;
                break;
            }
            start = from;
            if start > floor && start < lowest {
                self.has_more_zeros = true;
                break;
            }
        }
        self.zeros = Some(start);
        start
    }

    /// Reads a few bytes elsewhere without moving the window; fewer at the end.
    pub fn peek(&mut self, position: u64, buffer: &mut [u8]) -> usize {
        let left = usize::try_from(self.end.saturating_sub(position)).unwrap_or(usize::MAX);
        let wanted = buffer.len().min(left);
        let held = self.held(position);
        if let (Some(to), Some(from)) = (buffer.get_mut(..wanted), held.get(..wanted)) {
            to.copy_from_slice(from);
            return wanted;
        }
        let mut done = 0;
        while let Some(room) = buffer.get_mut(done..wanted).filter(|room| !room.is_empty()) {
            match self.source.read_at(position + done as u64, room) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        done
    }
}
