//! The greatest rate of the sessions: that of a closed loop, before an open loop at a share of it.

use concurve_clock::monotonic_ns;
use concurve_reporter::Reporter;
use concurve_reporter::line::Edge;

use super::run::{HEAD_START_NS, report_edge};
use super::workers::Workers;
use crate::counts::greatest::Greatest;
use crate::counts::tally::{Tally, by_kind};
use crate::error::Error;
use crate::figures::machine::MachineBefore;
use crate::figures::{busiest_share, lost_sessions};
use crate::plan::{End, Pace, Plan, ShareOfGreatest, Task};
use crate::stop::Stop;
use crate::units::{percent, time};

/// The closed loop runs for this fraction of its length before it is measured.
const SETTLE: u64 = 4;
/// With more errors among the answers, the rate is not that of what was asked for.
const MOSTLY: f64 = 0.5;
/// The phase of the closed loop.
const PHASE: &str = "greatest-rate";

/// Lets the connected sessions send as fast as they are answered; once more where the machine was busy meanwhile. Of
/// a study's trial the record says whether it was.
///
/// # Errors
/// Nothing can be taken a share of: no answers, mostly errors, or lost sessions.
pub fn measure(
    plan: &Plan,
    asked: &ShareOfGreatest,
    warm_up_ns: u64,
    workers: &mut Workers,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<Greatest, Error> {
    let first = once(plan, asked, warm_up_ns, workers, reporter, stop)?;
    if first.machine_busy.is_none() {
        return Ok(first);
    }
    let second = once(plan, asked, warm_up_ns, workers, reporter, stop)?;
    Ok(second.or_before(first))
}

fn once(
    plan: &Plan,
    asked: &ShareOfGreatest,
    warm_up_ns: u64,
    workers: &mut Workers,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<Greatest, Error> {
    let task = Task {
        begin_ns: monotonic_ns() + HEAD_START_NS,
        ramp_ns: 0,
        warm_up_ns: warm_up_ns + asked.closed_ns / SETTLE,
        pace: Pace::Closed { think_ns: 0 },
        end: End::After {
            ns: asked.closed_ns,
        },
        interval_ns: None,
        among: None,
    };
    let machine = MachineBefore::outside_studies(reporter);
    report_edge(reporter, PHASE, Edge::Begin, Some(task.measure_ns()))?;
    workers.begin(&task)?;
    let tallies = workers.finish(&mut |_, _| {})?;
    let machine_busy = machine.and_then(|it| it.busy_since(plan.target.is_server_here()));
    report_edge(reporter, PHASE, Edge::End, Some(task.end_ns()))?;
    if stop.is_set() {
        return Err(Error::StoppedBeforeRate);
    }
    let busiest_thread_share = busiest_share(&tallies);
    let all = Tally::merged(tallies);
    check(plan, asked, &all)?;
    let seconds = all.wall_ns() as f64 / 1e9;
    Ok(Greatest {
        rate_per_second: all.total().answered() as f64 / seconds,
        seconds,
        share: asked.share,
        busiest_thread_share,
        all,
        machine_busy,
        is_repeated: false,
    })
}

fn check(plan: &Plan, asked: &ShareOfGreatest, all: &Tally) -> Result<(), Error> {
    let total = all.total();
    let (answered, failed) = (total.answered(), total.failed());
    let why = if let Some(why) = lost_sessions(plan.sessions, &all.lost) {
        why
    } else if answered == 0 || all.wall_ns() == 0 {
        format!("nothing was answered in {}", time(asked.closed_ns as f64))
    } else if failed as f64 > MOSTLY * answered as f64 {
        format!("most answers were errors ({})", by_kind(&total.errors))
    } else {
        return Ok(());
    };
    let share = percent(asked.share);
    Err(Error::NoGreatestRate { share, why })
}
