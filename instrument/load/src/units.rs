//! Times, sizes and counts: parsed from what people write, and formatted for them to read.

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
const TIME_MAX_NS: f64 = 1e16;

/// A time such as `10s`, `2.5ms` or `1m`, in ns; a bare number is in seconds.
///
/// # Errors
/// It is no number with a unit, below 0, or above ten million seconds.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|it: char| it.is_alphabetic());
    let unit = &text[digits.len()..];
    let found = UNITS.iter().find(|(name, _)| *name == unit);
    let scale = match (unit, found) {
        ("", _) => Some(SECOND_NS),
        (_, found) => found.map(|(_, scale)| *scale),
    };
    let number = digits.parse::<f64>().ok().zip(scale);
    let ns = number.map(|(number, scale)| number * scale);
    ns.filter(|ns| (0.0..=TIME_MAX_NS).contains(ns))
        .map(|ns| ns.round() as u64)
        .ok_or_else(|| "a time like 10s, 2.5ms or 1m".to_owned())
}

/// A rate in transactions a second.
///
/// # Errors
/// It is no number: a unit or a suffix such as `40k` is not taken.
pub fn parse_rate(text: &str) -> Result<f64, String> {
    text.parse()
        .map_err(|_| "transactions a second as a plain number, like 40000 or 0.5".to_owned())
}

/// A time above 0.
pub fn parse_positive_time(text: &str) -> Result<u64, String> {
    match parse_time(text)? {
        0 => Err("a time above 0, like 10s".to_owned()),
        ns => Ok(ns),
    }
}

/// A share such as `1%`, above 0 and below 1.
///
/// # Errors
/// It is no percentage, or not between 0 % and 100 %.
pub fn parse_share(text: &str) -> Result<f64, String> {
    let percent = text.strip_suffix('%').and_then(|it| it.parse::<f64>().ok());
    percent
        .map(|it| it / 100.0)
        .filter(|it| *it > 0.0 && *it < 1.0)
        .ok_or_else(|| "a share like 1%, above 0 % and below 100 %".to_owned())
}

/// A share as a percentage, in two digits.
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    match value {
        value if value >= 9.95 => format!("{value:.0} %"),
        value if value >= 0.995 => format!("{value:.1} %"),
        value => format!("{value:.2} %"),
    }
}

/// A time in ns with its unit, in three digits.
pub fn time(ns: f64) -> String {
    match ns {
        ns if ns < 999.5 => format!("{ns:.0} ns"),
        ns if ns < 999.5e3 => format!("{} µs", significant(ns / 1e3)),
        ns if ns < 999.5e6 => format!("{} ms", significant(ns / 1e6)),
        ns => format!("{} s", significant(ns / 1e9)),
    }
}

/// Bytes with their unit, in three digits.
pub fn bytes(value: f64) -> String {
    match value {
        value if value < 999.5 => format!("{value:.0} B"),
        value if value < 999.5e3 => format!("{} kB", significant(value / 1e3)),
        value if value < 999.5e6 => format!("{} MB", significant(value / 1e6)),
        value => format!("{} GB", significant(value / 1e9)),
    }
}

/// A count with commas; below a hundred with three digits.
pub fn count(value: f64) -> String {
    if value < 99.95 && value.fract() != 0.0 {
        return significant(value);
    }
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn significant(value: f64) -> String {
    match value {
        value if value >= 99.95 => format!("{value:.0}"),
        value if value >= 9.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_digits_and_a_unit() {
        let times = [0.4, 999.4, 999.6, 12_345.0, 999_600.0, 1.5e9, 250e9];
        let expected = [
            "0 ns", "999 ns", "1.00 µs", "12.3 µs", "1.00 ms", "1.50 s", "250 s",
        ];
        assert_eq!(times.map(time), expected);
        assert_eq!([12.0, 1_234_567.0].map(bytes), ["12 B", "1.23 MB"]);
    }

    #[test]
    fn counts_have_commas() {
        let counts = [0.0, 7.0, 12.345, 999.0, 1_000.0, 1_234_567.4];
        let expected = ["0", "7", "12.3", "999", "1,000", "1,234,567"];
        assert_eq!(counts.map(count), expected);
    }

    #[test]
    fn shares_are_percentages() {
        assert_eq!(
            [0.4, 0.012, 0.0034].map(percent),
            ["40 %", "1.2 %", "0.34 %"]
        );
        assert_eq!(parse_share("2.5%"), Ok(0.025));
        for text in ["", "%", "1", "0%", "100%", "-1%", "nan%"] {
            assert!(parse_share(text).is_err(), "{text}");
        }
    }

    #[test]
    fn times_are_numbers_with_a_unit() {
        for (text, ns) in [
            ("10", 10_000_000_000),
            ("10s", 10_000_000_000),
            ("2.5ms", 2_500_000),
            ("3us", 3_000),
            ("3µs", 3_000),
            ("1m", 60_000_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse_time(text), Ok(ns), "{text}");
        }
        for text in ["", "s", "-1s", "1 d", "1d", "nan", "1e99", "ten"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
        assert!(parse_positive_time("0ms").is_err());
    }

    #[test]
    fn a_rate_is_a_plain_number() {
        assert_eq!(parse_rate("40000"), Ok(40_000.0));
        assert_eq!(parse_rate("0.5"), Ok(0.5));
        for text in ["40k", "", "1M", "5/s", "fast"] {
            let said = parse_rate(text).unwrap_err();
            assert!(said.contains("plain number, like 40000"), "{text}: {said}");
        }
    }
}
