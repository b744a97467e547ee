//! The instructions that the kernels use: chosen once per call, from what the CPU has.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// A set of instructions, from "any CPU" upwards.
///
/// Every function that takes a level silently falls back to what the CPU has, so any level may be
/// passed anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// Any CPU: CRC by tables, walk without special instructions.
    Portable,
    /// `AArch64` with its CRC instructions: `crc32cd` in three streams, portable walk.
    Arm64,
    /// x86-64-v2: `crc32q` in three streams, portable walk.
    Sse42,
    /// x86-64-v3: `crc32q` in three streams, then the walk with `pext` and `pdep`.
    Bmi2,
    /// AVX-512 with VPCLMULQDQ: folded CRC and the BMI2 walk in one loop.
    Avx512,
}

/// Every level, lowest first.
const ALL: [Level; 5] = [Level::Portable, Level::Arm64, Level::Sse42, Level::Bmi2, Level::Avx512];

impl Level {
    /// The fastest level of this CPU.
    ///
    /// # Examples
    ///
    /// ```
    /// use ottla_kernels::Level;
    ///
    /// assert!(Level::available().contains(&Level::best()));
    /// ```
    pub fn best() -> Level {
        static BEST: OnceLock<Level> = OnceLock::new();
        *BEST.get_or_init(|| {
            if highest() == Level::Bmi2 && has_slow_pext() { Level::Sse42 } else { highest() }
        })
    }

    /// Every level this CPU has, lowest first; never empty.
    pub fn available() -> &'static [Level] {
        static AVAILABLE: OnceLock<Vec<Level>> = OnceLock::new();
        AVAILABLE.get_or_init(|| ALL.into_iter().filter(|level| level.usable() == *level).collect())
    }

    /// The level's name in lower case, as [`FromStr`] takes it.
    pub fn name(self) -> &'static str {
        match self {
            Level::Portable => "portable",
            Level::Arm64 => "arm64",
            Level::Sse42 => "sse42",
            Level::Bmi2 => "bmi2",
            Level::Avx512 => "avx512",
        }
    }

    /// This level, or the nearest below it that the CPU has: the one that runs if this one is requested.
    ///
    /// # Examples
    ///
    /// ```
    /// use ottla_kernels::Level;
    ///
    /// assert!(Level::available().contains(&Level::Avx512.usable()));
    /// ```
    #[must_use]
    pub fn usable(self) -> Level {
        let level = self.min(highest());
        let foreign = if cfg!(target_arch = "aarch64") { Level::Sse42 } else { Level::Arm64 };
        if level == foreign { Level::Portable } else { level }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// No [`Level`] has this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownLevel;

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(name: &str) -> Result<Level, UnknownLevel> {
        ALL.into_iter().find(|level| level.name() == name).ok_or(UnknownLevel)
    }
}

/// The highest level whose instructions the CPU has.
fn highest() -> Level {
    static HIGHEST: OnceLock<Level> = OnceLock::new();
    *HIGHEST.get_or_init(detect)
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    let v2 = is_x86_feature_detected!("sse4.2") && is_x86_feature_detected!("pclmulqdq");
    let v3 = v2
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let v4 = v3
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("vpclmulqdq");
    match (v4, v3, v2) {
        (true, ..) => Level::Avx512,
        (_, true, _) => Level::Bmi2,
        (.., true) => Level::Sse42,
        _ => Level::Portable,
    }
}

#[cfg(target_arch = "aarch64")]
fn detect() -> Level {
    if std::arch::is_aarch64_feature_detected!("crc") { Level::Arm64 } else { Level::Portable }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn detect() -> Level {
    Level::Portable
}

/// AMD before Zen 3 (family 0x19) runs `pext` and `pdep` in microcode: 18 cycles and more instead of
/// three.
#[cfg(target_arch = "x86_64")]
#[allow(clippy::arithmetic_side_effects, reason = "sums a nibble and a byte")]
fn has_slow_pext() -> bool {
    use std::arch::x86_64::__cpuid;
    let vendor = __cpuid(0);
    let is_amd = [vendor.ebx, vendor.edx, vendor.ecx] == [0x6874_7541, 0x6974_6e65, 0x444d_4163];
    let version = __cpuid(1).eax;
    is_amd && (version >> 8 & 15) + (version >> 20 & 255) < 0x19
}

#[cfg(not(target_arch = "x86_64"))]
fn has_slow_pext() -> bool {
    false
}
