//! Batches from a seed, memory between unreadable pages, and random numbers.

#![allow(dead_code, unreachable_pub, reason = "every test program uses a part")]

use ottla_kernels::crc32c;

/// Numbers from a seed (xorshift).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed | 1)
    }
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
    pub fn below(&mut self, limit: u64) -> u64 {
        (self.next() >> 11) % limit
    }
    pub fn bytes(&mut self, size: usize) -> Vec<u8> {
        (0..size).map(|_| (self.next() >> 32) as u8).collect()
    }
}

/// Memory between two unreadable pages: one byte read too far, on either side, is a crash.
pub struct Guarded {
    start: *mut u8,
    size: usize,
}

const PAGE: usize = 4096;

impl Guarded {
    pub fn new(size: usize) -> Guarded {
        let size = size.max(1).next_multiple_of(PAGE);
        // SAFETY: a new private mapping, of which the middle is made accessible.
        unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let all =
                libc::mmap(std::ptr::null_mut(), size + 2 * PAGE, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(all, libc::MAP_FAILED);
            let start = all.cast::<u8>().add(PAGE);
            assert_eq!(libc::mprotect(start.cast(), size, libc::PROT_READ | libc::PROT_WRITE), 0);
            Guarded { start, size }
        }
    }
    /// A copy of `data` that ends where memory ends.
    pub fn at_end(&mut self, data: &[u8]) -> &mut [u8] {
        self.copy(data, self.size - data.len())
    }
    /// A copy of `data` that begins where memory begins.
    pub fn at_start(&mut self, data: &[u8]) -> &mut [u8] {
        self.copy(data, 0)
    }
    fn copy(&mut self, data: &[u8], position: usize) -> &mut [u8] {
        assert!(position + data.len() <= self.size);
        // SAFETY: the place is inside the accessible pages, which this owns.
        unsafe {
            let place = self.start.add(position);
            std::ptr::copy_nonoverlapping(data.as_ptr(), place, data.len());
            std::slice::from_raw_parts_mut(place, data.len())
        }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping made in `new`.
        unsafe { libc::munmap(self.start.sub(PAGE).cast(), self.size + 2 * PAGE) };
    }
}

/// Appends the varint of `value`, and `surplus` bytes more than it needs, which Kafka accepts.
pub fn put_varint(to: &mut Vec<u8>, value: i64, surplus: usize) {
    let mut rest = ((value << 1) ^ (value >> 63)) as u64;
    while rest > 0x7f {
        to.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    to.push(rest as u8);
    for _ in 0..surplus {
        *to.last_mut().expect("a byte") |= 0x80;
        to.push(0);
    }
}

/// What a batch is made of. Sizes are the largest; `odd` makes unusual but legal records now and
/// then.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub records: u32,
    pub key: u64,
    pub value: u64,
    pub headers: u64,
    pub odd: bool,
}

pub const SHAPES: [Shape; 9] = [
    Shape { records: 1, key: 16, value: 100, headers: 0, odd: false },
    Shape { records: 1, key: 0, value: 0, headers: 0, odd: false },
    Shape { records: 3, key: 3, value: 3, headers: 0, odd: true },
    Shape { records: 70, key: 16, value: 100, headers: 0, odd: false },
    Shape { records: 70, key: 13, value: 14, headers: 3, odd: true },
    Shape { records: 40, key: 20, value: 200, headers: 4, odd: false },
    Shape { records: 5, key: 200, value: 20_000, headers: 9, odd: true },
    Shape { records: 30, key: 90, value: 300, headers: 1, odd: true },
    Shape { records: 9000, key: 4, value: 20, headers: 0, odd: false },
];

const BASE_TIMESTAMP: i64 = 1_700_000_000_000;

/// The records of a batch, and the largest time delta among them.
pub fn records(random: &mut Random, shape: Shape) -> (Vec<u8>, i64) {
    let (mut all, mut max_delta) = (vec![], 0);
    for index in 0..i64::from(shape.records) {
        let odd = shape.odd && random.below(8) == 0;
        let surplus = |random: &mut Random| if odd { random.below(3) as usize } else { 0 };
        let delta = match random.below(if shape.odd { 10 } else { 4 }) {
            0 => 0,
            1..=3 => index * 7,
            4 => -(random.below(1 << 20) as i64),
            5 => random.below(1 << 40) as i64,
            6 => i64::MAX - BASE_TIMESTAMP,
            _ => random.below(100) as i64,
        };
        max_delta = max_delta.max(delta);
        let mut record = vec![if odd { random.next() as u8 & 0x7f } else { 0 }];
        let room = if delta < 1 << 30 { surplus(random) } else { 0 };
        put_varint(&mut record, delta, room);
        let room = surplus(random);
        put_varint(&mut record, index, room);
        let part = |record: &mut Vec<u8>, random: &mut Random, largest: u64| {
            if random.below(6) == 0 {
                put_varint(record, -1, 0);
            } else {
                let size = random.below(largest + 1);
                let room = surplus(random);
                put_varint(record, size as i64, room);
                record.extend(random.bytes(size as usize));
            }
        };
        let key = |record: &mut Vec<u8>, random: &mut Random, largest: u64| {
            let size = random.below(largest + 1) as usize;
            let room = surplus(random);
            let accents = if odd { random.below(2) as usize * (size / 2) } else { 0 };
            put_varint(record, size as i64, room);
            record.extend("é".repeat(accents).bytes());
            record.extend(random.bytes(size - 2 * accents).iter().map(|byte| byte & 0x7f));
        };
        part(&mut record, random, shape.key);
        part(&mut record, random, shape.value);
        let headers = random.below(shape.headers + 1);
        let room = surplus(random);
        put_varint(&mut record, headers as i64, room);
        for _ in 0..headers {
            let largest = if odd { 300 } else { 40 };
            key(&mut record, random, largest);
            part(&mut record, random, largest);
        }
        let room = surplus(random);
        put_varint(&mut all, record.len() as i64, room);
        all.extend(record);
    }
    (all, max_delta)
}

/// An ordinary batch.
pub fn batch(random: &mut Random, shape: Shape, base_offset: i64) -> Vec<u8> {
    let (records, max_delta) = records(random, shape);
    let mut batch = vec![0; 61];
    batch[0..8].copy_from_slice(&base_offset.to_be_bytes());
    batch[8..12].copy_from_slice(&((49 + records.len()) as u32).to_be_bytes());
    batch[12..16].copy_from_slice(&(random.below(5) as i32 - 1).to_be_bytes());
    batch[16] = 2;
    batch[22] = u8::from(random.below(4) == 0) * 8;
    batch[23..27].copy_from_slice(&(shape.records - 1).to_be_bytes());
    batch[27..35].copy_from_slice(&BASE_TIMESTAMP.to_be_bytes());
    batch[35..43].copy_from_slice(&(BASE_TIMESTAMP + max_delta).to_be_bytes());
    if random.below(3) == 0 {
        batch[22] |= u8::from(random.below(2) == 0) * 16;
        batch[43..51].copy_from_slice(&random.below(1 << 40).to_be_bytes());
        batch[51..53].copy_from_slice(&(random.below(1 << 15) as u16).to_be_bytes());
        batch[53..57].copy_from_slice(&(random.below(1 << 31) as u32).to_be_bytes());
    } else {
        // Some clients leave an epoch and a sequence of 0 where there is no producer.
        batch[43..57].fill(0xff);
        if random.below(2) == 0 {
            batch[51..57].fill(0);
        }
    }
    batch[57..61].copy_from_slice(&shape.records.to_be_bytes());
    batch.extend(records);
    seal(&mut batch);
    batch
}

/// Gives a batch the CRC of its bytes.
pub fn seal(batch: &mut [u8]) {
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
}
