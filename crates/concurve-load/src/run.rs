//! A run from connecting to the last answer: barrier, phases, counts.

use std::sync::Arc;

use concurve_wire::report::{Edge, PhaseLine, ReportLine};
use concurve_wire::reporter::{Reporter, monotonic_ns};

use crate::crew::Crew;
use crate::error::Error;
use crate::plan::Plan;
use crate::stop::Stop;
use crate::tally::{Interval, Tally};
use crate::task::Task;
use crate::watch::Watch;

/// From the barrier to the first request: all threads or processes are awake by then.
pub const HEAD_START_NS: u64 = 5_000_000;

/// What every thread counted.
#[derive(Debug)]
pub struct Counted {
    pub threads: Vec<Tally>,
}

/// Connects all sessions, lets them go together, and collects the counts.
pub fn run(
    plan: &Arc<Plan>,
    reporter: &Reporter,
    stop: &Stop,
    mut watch: Watch,
) -> Result<Counted, Error> {
    let mut crew = Crew::connect(plan, stop)?;
    reporter.ready()?;
    let task = Task {
        interval_ns: watch.interval_ns(),
        ..plan.task(monotonic_ns() + HEAD_START_NS)
    };
    crew.begin(&task)?;
    watch.begin(&task, &plan.place())?;
    let mut hear = |member: usize, said: Option<&Interval>| watch.hear(member, said);
    mark_phases(&task, reporter, &mut crew, &mut hear)?;
    let threads = crew.finish(&mut hear)?;
    crew.end()?;
    watch.end()?;
    // None that measured: all sessions were lost before.
    let end_ns = threads
        .iter()
        .map(|it| it.end_ns)
        .max()
        .filter(|it| *it > 0);
    edge(reporter, "measure", Edge::End, end_ns)?;
    Ok(Counted { threads })
}

/// Tells the begin of each phase when it comes, so that probes are read then.
fn mark_phases(
    task: &Task,
    reporter: &Reporter,
    crew: &mut Crew,
    hear: &mut dyn FnMut(usize, Option<&Interval>),
) -> Result<(), Error> {
    let mut measure_ns = task.measure_ns();
    if measure_ns > task.begin_ns {
        edge(reporter, "warm-up", Edge::Begin, Some(task.begin_ns))?;
        crew.hear_until(measure_ns, hear)?;
        // All may have ended before.
        measure_ns = measure_ns.min(monotonic_ns());
        edge(reporter, "warm-up", Edge::End, Some(measure_ns))?;
    }
    edge(reporter, "measure", Edge::Begin, Some(measure_ns))
}

/// Tells an edge of a phase.
pub fn edge(reporter: &Reporter, phase: &str, edge: Edge, at_ns: Option<u64>) -> Result<(), Error> {
    let phase = phase.to_owned();
    Ok(reporter.line(&ReportLine::Phase(PhaseLine { phase, edge, at_ns }))?)
}
