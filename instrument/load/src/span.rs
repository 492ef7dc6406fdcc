//! Spans of time as people write them: `10s`, `2.5ms`, `1m`; a bare number is seconds.

const UNITS: [(&str, f64); 7] = [
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];
const SECOND_NS: f64 = 1e9;
const LONGEST_NS: f64 = 1e16;

/// A span in ns.
///
/// # Errors
/// It is no number with a unit, below 0, or above ten million seconds.
pub fn parse(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|it: char| it.is_alphabetic());
    let unit = &text[digits.len()..];
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    let scale = match (unit, found) {
        ("", _) => Some(SECOND_NS),
        (_, found) => found.map(|(_, scale)| *scale),
    };
    let number = digits.parse::<f64>().ok().zip(scale);
    let ns = number.map(|(number, scale)| number * scale);
    ns.filter(|ns| (0.0..=LONGEST_NS).contains(ns))
        .map(|ns| ns.round() as u64)
        .ok_or_else(|| "a time like 10s, 2.5ms or 1m".to_owned())
}

/// A span that is longer than nothing.
pub fn parse_positive(text: &str) -> Result<u64, String> {
    match parse(text)? {
        0 => Err("a time above 0, like 10s".to_owned()),
        ns => Ok(ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_people_write() {
        for (text, ns) in [
            ("10", 10_000_000_000),
            ("10s", 10_000_000_000),
            ("2.5ms", 2_500_000),
            ("3us", 3_000),
            ("3µs", 3_000),
            ("1m", 60_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
        for text in ["", "s", "-1s", "1 d", "1d", "nan", "1e99", "ten"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse_positive("0ms").is_err());
    }
}
