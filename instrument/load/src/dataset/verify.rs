//! Verifies the invariants of the data after a load.

use super::definition::Dataset;
use super::ledger::Ledger;
use crate::admin::{AdminConnection, AdminError};

/// The result of a successful verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified {
    /// Number of checks; all hold.
    pub checks: usize,
    /// Transactions that were found, if they were compared with those that were counted.
    pub found: Option<i64>,
}

/// Why the verification failed.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error(transparent)]
    Admin(#[from] AdminError),
    /// What does not hold.
    #[error("the data is not what it must be: {}", .0.join("; "))]
    Broken(Vec<String>),
}

/// Executes all checks, and compares the transactions with those of a ledger.
///
/// # Errors
/// Something does not hold (all of it is listed), or a check cannot be executed.
pub fn verify(
    connection: &mut dyn AdminConnection,
    dataset: &dyn Dataset,
    ledger: Option<&Ledger>,
) -> Result<Verified, VerifyError> {
    let mut broken = Vec::new();
    let checks = dataset.checks();
    for check in &checks {
        match connection.execute(&check.statement)? {
            Some(number) if number == check.expected => {}
            Some(number) if check.expected == 0 => {
                broken.push(format!("{}: off by {number}", check.claim));
            }
            Some(number) => broken.push(format!("{}: there are {number}", check.claim)),
            None => broken.push(format!("{}: no answer", check.claim)),
        }
    }
    let mut found = None;
    if let Some((counts, before)) = ledger.and_then(Ledger::to_compare) {
        let grown = committed(connection, dataset)?.unwrap_or_default() - before;
        let (least, in_doubt) = (counts.acknowledged as i64, counts.in_doubt as i64);
        if !(least..=least + in_doubt).contains(&grown) {
            let wrong = match grown < least {
                true => format!("{} lost", least - grown),
                false => format!("{} too many", grown - least - in_doubt),
            };
            broken.push(format!(
                "{least} transactions were acknowledged and {in_doubt} are in doubt, but {grown} are found: {wrong}"
            ));
        }
        found = Some(grown);
    }
    match broken.is_empty() {
        true => Ok(Verified {
            checks: checks.len(),
            found,
        }),
        false => Err(VerifyError::Broken(broken)),
    }
}

/// The number of transactions that were ever committed; `None` if they leave no trace.
pub fn committed(
    connection: &mut dyn AdminConnection,
    dataset: &dyn Dataset,
) -> Result<Option<i64>, AdminError> {
    let questions = dataset.count_committed();
    if questions.is_empty() {
        return Ok(None);
    }
    let mut sum = 0;
    for question in questions {
        sum += connection.execute(&question)?.unwrap_or_default();
    }
    Ok(Some(sum))
}
