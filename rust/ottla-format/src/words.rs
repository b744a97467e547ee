//! Numbers, offsets and times as sentences have them.

use std::fmt;

/// A number with its noun, which has a regular plural.
///
/// # Examples
/// ```
/// use ottla_format::words::count;
///
/// assert_eq!(count(1, "offset"), "1 offset");
/// assert_eq!(count(2, "batch"), "2 batches");
/// ```
pub fn count(number: impl Into<i128>, singular: &str) -> String {
    let number = number.into();
    let ending = match (number, singular.ends_with("ch")) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{number} {singular}{ending}")
}

/// A number with a comma before each three digits.
///
/// # Examples
/// ```
/// use ottla_format::words::thousands;
///
/// assert_eq!(thousands(999), "999");
/// assert_eq!(thousands(1_234_567), "1,234,567");
/// ```
pub fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len().saturating_mul(2));
    for (place, digit) in (1..=digits.len()).rev().zip(digits.chars()) {
        text.push(digit);
        if place > 1 && place % 3 == 1 {
            text.push(',');
        }
    }
    text
}

/// A range of offsets, both inclusive.
///
/// # Examples
/// ```
/// use ottla_format::words::offsets;
///
/// assert_eq!(offsets(3, 3), "offset 3");
/// assert_eq!(offsets(3, 5), "offsets 3 to 5");
/// ```
pub fn offsets(first: i64, last: i64) -> String {
    if first == last { format!("offset {first}") } else { format!("offsets {first} to {last}") }
}

/// That a range of offsets is somewhere, or is not.
///
/// # Examples
/// ```
/// use ottla_format::words::offsets_are;
///
/// assert_eq!(offsets_are(3, 3, "missing"), "offset 3 is missing");
/// assert_eq!(offsets_are(3, 5, "missing"), "offsets 3 to 5 are missing");
/// ```
pub fn offsets_are(first: i64, last: i64, what: impl fmt::Display) -> String {
    let verb = if first == last { "is" } else { "are" };
    format!("{} {verb} {what}", offsets(first, last))
}

/// That the last offsets of a log are missing.
///
/// # Examples
/// ```
/// use ottla_format::words::last_missing;
///
/// assert_eq!(last_missing(1), "the last offset is missing");
/// assert_eq!(last_missing(2), "the last 2 offsets are missing");
/// ```
pub fn last_missing(number: i64) -> String {
    match number {
        1 => "the last offset is missing".to_owned(),
        _ => format!("the last {} are missing", count(number, "offset")),
    }
}

/// A duration in its two largest units.
///
/// # Examples
/// ```
/// use ottla_format::words::duration;
///
/// assert_eq!(duration(60_500), "1 min 0 s");
/// ```
pub fn duration(time_ms: i64) -> String {
    let seconds = time_ms / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// The time of a timestamp in UTC, or its number where no calendar of four digits has it.
///
/// # Examples
/// ```
/// use ottla_format::words::moment;
///
/// assert_eq!(moment(1_760_000_000_000), "2025-10-09 08:53:20 UTC");
/// assert_eq!(moment(-1), "1969-12-31 23:59:59.999 UTC");
/// assert_eq!(moment(i64::MAX), "timestamp 9223372036854775807");
/// ```
pub fn moment(timestamp_ms: i64) -> String {
    let (days, in_day) = (timestamp_ms.div_euclid(86_400_000), timestamp_ms.rem_euclid(86_400_000));
    let Some((year, month, day)) = date(days) else { return format!("timestamp {timestamp_ms}") };
    let (seconds, millis) = (in_day / 1000, in_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let fraction = if millis == 0 { String::new() } else { format!(".{millis:03}") };
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}{fraction} UTC")
}

/// Year, month and day of a day since 1970, in the years 1 to 9999 of the Gregorian calendar.
// No day of these years is near a bound of the numbers.
#[allow(clippy::arithmetic_side_effects)]
fn date(days: i64) -> Option<(i64, i64, i64)> {
    const DAYS_OF_ERA: i64 = 146_097;
    // Days since the first of March of the year 0, where eras of 400 years begin.
    let days = days.checked_add(719_468).filter(|days| (306..3_652_365).contains(days))?;
    let (era, day) = (days / DAYS_OF_ERA, days % DAYS_OF_ERA);
    let year_of_era = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    Some((year, month, day))
}
