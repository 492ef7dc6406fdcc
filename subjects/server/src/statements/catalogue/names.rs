//! What files, their fields and their databases may be called.

use super::Refusal;
use crate::statements::layout::FIELD_BYTES;

/// Most fields of a file.
pub const FIELDS_MAX: usize = 64;
/// Longest name of a file with that of its database, as the record engine's.
pub const NAME_BYTES: usize = 64;
/// Between the name of a database and that of a file: it is in neither.
pub const SEPARATOR: char = '-';

/// Refuses what is no name; `of` says whose it would be.
pub fn check_name(name: &str, of: &str) -> Result<(), Refusal> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '_';
    if (1..=NAME_BYTES).contains(&name.len()) && name.chars().all(is_plain) {
        return Ok(());
    }
    let shown: String = name.chars().take(NAME_BYTES).collect();
    Err(Refusal::Usage(format!(
        "'{shown}' is no name of {of}: take 1 to {NAME_BYTES} letters, digits or _"
    )))
}

/// The length of records of these fields.
pub fn checked_length(fields: &[String], asked: Option<u16>) -> Result<u16, Refusal> {
    if !(1..=FIELDS_MAX).contains(&fields.len()) {
        return Err(Refusal::Usage(format!(
            "{} fields: a file has 1 to {FIELDS_MAX}, the first is its key",
            fields.len()
        )));
    }
    for (at, field) in fields.iter().enumerate() {
        check_name(field, "a field")?;
        if fields[..at].contains(field) {
            return Err(Refusal::Usage(format!("two fields are named {field}")));
        }
    }
    let needed = (fields.len() * FIELD_BYTES) as u16;
    match asked {
        Some(asked) if asked < needed => Err(Refusal::Usage(format!(
            "BYTES {asked}: {} fields need {needed}",
            fields.len()
        ))),
        Some(asked) => Ok(asked),
        None => Ok(needed),
    }
}
