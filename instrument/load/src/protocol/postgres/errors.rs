//! Kinds of errors.

/// Names of the conditions that a load meets (documentation of PostgreSQL, appendix A).
const NAMES: [(&str, &str); 14] = [
    ("22003", "numeric value out of range"),
    ("23505", "unique violation"),
    ("25006", "read-only transaction"),
    ("25P02", "in failed transaction"),
    ("40001", "serialization failure"),
    ("40P01", "deadlock detected"),
    ("42501", "insufficient privilege"),
    ("42P01", "undefined table"),
    ("53100", "disk full"),
    ("53200", "out of memory"),
    ("55P03", "lock not available"),
    ("57014", "query cancelled"),
    ("58030", "I/O error"),
    ("XX000", "internal error"),
];

/// An error by its SQLSTATE, and by name if it is a usual one.
pub fn kind(code: &str) -> String {
    match NAMES.iter().find(|(known, _)| *known == code) {
        Some((_, name)) => format!("{code} {name}"),
        None => code.to_owned(),
    }
}
