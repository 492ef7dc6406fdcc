//! The limit of open files, as far as we may raise it.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::error::Error;
use crate::plan::{Plan, Reach, Runners};

/// Beside the sessions: standard streams, event queues, pipes, files.
const OTHERS: u64 = 32;
/// Of a session of an engine: the data, a log, what is shared between sessions.
const ENGINE: u64 = 4;

/// Makes room for the descriptors that a plan needs.
///
/// # Errors
/// More are needed than this process may ever open.
pub fn fit_open_files(plan: &Plan) -> Result<(), Error> {
    let needed = OTHERS
        + match (plan.runners, &plan.reach) {
            (Runners::Threads(threads), Reach::Server(_)) => plan.sessions + threads,
            (Runners::Threads(_), Reach::Engine(_)) => ENGINE * plan.sessions,
            // Two pipes to each child.
            (Runners::Processes, _) => 2 * plan.sessions,
        };
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else {
        return Ok(());
    };
    if needed <= soft {
        return Ok(());
    }
    if needed > hard || setrlimit(Resource::RLIMIT_NOFILE, needed, hard).is_err() {
        return Err(Error::Asked(format!(
            "{} sessions need {needed} open files, and this process may open {hard}: raise the limit (ulimit -Hn), or take fewer --sessions",
            plan.sessions
        )));
    }
    Ok(())
}
