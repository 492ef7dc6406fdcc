//! Verifies the invariants of the data after a load.

use super::definition::{Check, Dataset};
use super::ledger::Ledger;
use crate::admin::{AdminConnection, AdminError, execute_unless_stopped};
use crate::stop::Stop;

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
/// Something does not hold (all of it is listed), a check cannot be executed, or the run is stopped before
/// all are.
pub fn verify(
    connection: &mut dyn AdminConnection,
    dataset: &dyn Dataset,
    ledger: Option<&Ledger>,
    stop: &Stop,
) -> Result<Verified, VerifyError> {
    let mut broken = Vec::new();
    let checks = dataset.checks();
    let executed = execute_checks(connection, &checks, stop, &mut broken)
        .and_then(|()| compare(connection, dataset, ledger, stop, &mut broken));
    let found = match executed {
        // What did not hold until then does not.
        Err(AdminError::Stopped) if !broken.is_empty() => None,
        found => found?,
    };
    match broken.is_empty() {
        true => Ok(Verified {
            checks: checks.len(),
            found,
        }),
        false => Err(VerifyError::Broken(broken)),
    }
}

/// Adds to `broken` what does not hold.
fn execute_checks(
    connection: &mut dyn AdminConnection,
    checks: &[Check],
    stop: &Stop,
    broken: &mut Vec<String>,
) -> Result<(), AdminError> {
    for check in checks {
        match execute_unless_stopped(connection, &check.statement, stop)? {
            Some(number) if number == check.expected => {}
            Some(number) if check.expected == 0 => {
                broken.push(format!("{}: off by {number}", check.claim));
            }
            Some(number) => broken.push(format!("{}: there are {number}", check.claim)),
            None => broken.push(format!("{}: no answer", check.claim)),
        }
    }
    Ok(())
}

/// The transactions that are found, if there is something to compare them with; adds to `broken` how they
/// differ from that.
fn compare(
    connection: &mut dyn AdminConnection,
    dataset: &dyn Dataset,
    ledger: Option<&Ledger>,
    stop: &Stop,
    broken: &mut Vec<String>,
) -> Result<Option<i64>, AdminError> {
    let Some((counts, before)) = ledger.and_then(Ledger::to_compare) else {
        return Ok(None);
    };
    let grown = committed(connection, dataset, stop)?.unwrap_or_default() - before;
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
    Ok(Some(grown))
}

/// The number of transactions that were ever committed; `None` if they leave no trace.
pub fn committed(
    connection: &mut dyn AdminConnection,
    dataset: &dyn Dataset,
    stop: &Stop,
) -> Result<Option<i64>, AdminError> {
    let questions = dataset.count_committed();
    if questions.is_empty() {
        return Ok(None);
    }
    let mut sum = 0;
    for question in questions {
        sum += execute_unless_stopped(connection, &question, stop)?.unwrap_or_default();
    }
    Ok(Some(sum))
}
