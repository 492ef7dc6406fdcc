//! Sets the keys that a load asks for, before it is measured: a server answers `GET` of a key that is not there
//! with less work.

use std::sync::Arc;

use concurve_clock::monotonic_ns;

use super::run::HEAD_START_NS;
use super::workers::Workers;
use crate::called;
use crate::counts::tally::{Tally, by_kind};
use crate::error::Error;
use crate::figures::lost_sessions;
use crate::output::tell;
use crate::plan::{Goal, Pace, Plan};
use crate::stop::Stop;
use crate::terminal_line::TerminalLine;
use crate::units::{count, time};

/// How often the terminal shows how many keys are set.
const SHOWN_NS: u64 = 500_000_000;

/// Does such a load, and says on standard error how many keys were set.
///
/// # Errors
/// A key was not set, or the load was stopped.
pub fn fill(plan: &Arc<Plan>, stop: &Stop) -> Result<(), Error> {
    let Goal::Load(load) = &plan.goal else {
        unreachable!("no rate is searched to fill keys");
    };
    let begin_ns = monotonic_ns();
    let mut workers = Workers::connect(plan, stop)?;
    let mut task = load.task(monotonic_ns() + HEAD_START_NS, Pace::Closed { think_ns: 0 });
    let mut line = TerminalLine::on_terminal();
    task.interval_ns = line.is_some().then_some(SHOWN_NS);
    workers.begin(&task)?;
    let mut filled = 0;
    let tallies = workers.finish(&mut |_, interval| {
        let kinds = interval.into_iter().flat_map(|it| &it.kinds);
        filled += kinds.map(|it| it.answered()).sum::<u64>();
        if let Some(line) = &mut line {
            line.show(&format!("setting keys: {}", count(filled as f64)));
        }
    })?;
    drop(line);
    workers.end()?;
    if stop.is_set() {
        return Err(Error::Stopped);
    }
    let all = Tally::merged(tallies);
    let total = all.total();
    if let Some(why) = lost_sessions(plan.sessions, &all.lost) {
        return Err(not_filled(plan, why));
    }
    if total.failed() > 0 {
        return Err(not_filled(plan, by_kind(&total.errors)));
    }
    tell(&format!(
        "{}: {} keys are set, in {}",
        called::program(),
        count(total.answered() as f64),
        time((monotonic_ns() - begin_ns) as f64)
    ));
    Ok(())
}

fn not_filled(plan: &Plan, why: String) -> Error {
    Error::NotFilled {
        server: plan.target_name(),
        why,
    }
}
