//! Does the data hold what it must after a load?

use super::{DataError, Desk, Dialect, Ledger};
use crate::workload::tpcb::Data;

/// What was found of data that is as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Questions that were answered right.
    pub checks: usize,
    /// Transactions that were found, if they were compared with those that were counted.
    pub found: Option<i64>,
}

/// What does not hold.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("the data is not what it must be: {}", .0.join("; "))]
pub struct Broken(pub Vec<String>);

/// Asks everything, and tells all that does not hold.
///
/// # Errors
/// Something does not hold, or cannot be asked.
pub fn verify(
    desk: &mut dyn Desk,
    dialect: &dyn Dialect,
    data: Data,
    ledger: Option<&Ledger>,
) -> Result<Verified, DataError> {
    let mut broken = Vec::new();
    let checks = dialect.checks(data);
    for check in &checks {
        match desk.ask(&check.statement)? {
            Some(number) if number == check.must_be => {}
            Some(number) if check.must_be == 0 => {
                broken.push(format!("{}: off by {number}", check.says));
            }
            Some(number) => broken.push(format!("{}: there are {number}", check.says)),
            None => broken.push(format!("{}: no answer", check.says)),
        }
    }
    let mut found = None;
    if let Some((counts, before)) = ledger.and_then(Ledger::to_compare) {
        let grown = committed(desk, dialect, data)?.unwrap_or_default() - before;
        let (least, doubt) = (counts.acknowledged as i64, counts.in_doubt as i64);
        if !(least..=least + doubt).contains(&grown) {
            let wrong = match grown < least {
                true => format!("{} lost", least - grown),
                false => format!("{} too many", grown - least - doubt),
            };
            broken.push(format!(
                "{least} transactions were acknowledged and {doubt} are in doubt, but {grown} are found: {wrong}"
            ));
        }
        found = Some(grown);
    }
    match broken.is_empty() {
        true => Ok(Verified {
            checks: checks.len(),
            found,
        }),
        false => Err(Broken(broken).into()),
    }
}

/// Transactions that were ever committed; none if they leave no trace.
pub fn committed(
    desk: &mut dyn Desk,
    dialect: &dyn Dialect,
    data: Data,
) -> Result<Option<i64>, DataError> {
    let questions = dialect.committed(data);
    if questions.is_empty() {
        return Ok(None);
    }
    let mut sum = 0;
    for question in questions {
        sum += desk.ask(&question)?.unwrap_or_default();
    }
    Ok(Some(sum))
}
