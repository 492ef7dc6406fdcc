//! Numbers as people read them.

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

/// Whole, with commas; below a hundred with what makes three digits.
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
}
