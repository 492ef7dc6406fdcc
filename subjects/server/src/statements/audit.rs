//! Sums over whole files, which check their consistency after a load.
//!
//! Pages are read without locks: to be used while no session changes the files.

use concurve_records::Session;
use concurve_records::command::{self, Groups};
use concurve_statements::{StatementError, Value};

use super::catalogue::View;
use super::layout::field;
use super::refusal::Refusal;

/// Sums of a field over the records of a file, grouped by another field.
#[derive(Debug, Clone, Copy)]
pub struct Sums<'a> {
    pub file: &'a str,
    pub field: &'a str,
    /// `None`: all of them are one group.
    pub by: Option<&'a str>,
}

impl Sums<'_> {
    fn of(&self, view: &View, session: &mut Session) -> Result<Groups<Value>, Refusal> {
        let file = view.file(self.file)?;
        let number = |name: &str| {
            let at = file.fields.iter().position(|it| it == name);
            at.ok_or_else(|| StatementError::NoField {
                file: self.file.to_owned(),
                field: name.to_owned(),
                known: file.fields.join(", "),
            })
        };
        let (summed, by) = (number(self.field)?, self.by.map(number).transpose()?);
        let handle = session.open(&file.name)?;
        let mut sums = Groups::default();
        session.each_record(handle, |record| {
            let group = by.map_or(0, |by| field(record, by));
            let added = sums.add(&group, field(record, summed));
            added.map_err(Refusal::from)
        })?;
        Ok(sums)
    }
}

/// The number of groups whose sums differ between two files; a missing group has the sum 0.
///
/// # Errors
/// If there is no such file or field, there are too many groups, or a sum does not fit into 64 bits.
pub fn differing(
    one: &Sums,
    other: &Sums,
    view: &View,
    session: &mut Session,
) -> Result<i64, Refusal> {
    let (one, other) = (one.of(view, session)?, other.of(view, session)?);
    Ok(command::differing(&one, &other))
}
