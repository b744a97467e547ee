//! CRC-32C: every kernel equals the definition.

mod common;

use common::{Guarded, Random};
use ottla_kernels::{Level, crc32c, crc32c_at};

#[test]
fn the_check_value_of_the_catalogue_of_crcs() {
    for &level in Level::available() {
        assert_eq!(crc32c_at(level, b"123456789"), 0xe306_9283, "{level}");
    }
    assert_eq!(crc32c(b""), 0);
}

#[test]
fn every_level_equals_naive_at_every_length_at_both_ends_of_memory() {
    let mut random = Random::new(7);
    let mut memory = Guarded::new(8192);
    for size in (0..=4096).chain([4097, 8191, 8192]) {
        let data = random.bytes(size);
        let wanted = crc32c::naive(&data);
        for &level in Level::available() {
            assert_eq!(
                crc32c_at(level, memory.at_end(&data)),
                wanted,
                "{level}, {size} bytes at the end"
            );
            assert_eq!(
                crc32c_at(level, memory.at_start(&data)),
                wanted,
                "{level}, {size} bytes at the start"
            );
        }
    }
}

#[test]
fn every_level_equals_naive_for_long_inputs() {
    let data = Random::new(9).bytes(300_000);
    for size in [12_287, 12_288, 12_289, 100_003, 262_143, 262_144, 300_000] {
        let wanted = crc32c::naive(&data[..size]);
        for &level in Level::available() {
            assert_eq!(crc32c_at(level, &data[..size]), wanted, "{level}, {size} bytes");
        }
    }
}

#[test]
fn a_level_this_cpu_lacks_falls_back() {
    let data = Random::new(11).bytes(5000);
    for name in ["portable", "arm64", "sse42", "bmi2", "avx512"] {
        let level: Level = name.parse().expect("the name of a level");
        assert_eq!(level.to_string(), name);
        assert_eq!(crc32c_at(level, &data), crc32c(&data), "{level}");
    }
    assert!("mmx".parse::<Level>().is_err());
}
