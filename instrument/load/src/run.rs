//! A run from connecting to the last answer: barrier, phases, counts.

use std::sync::Arc;

use concurve_clock::monotonic_ns;
use concurve_reporter::Reporter;
use concurve_reporter::line::{Edge, PhaseLine, ReportLine};

use crate::crew::Crew;
use crate::error::Error;
use crate::marks::Marks;
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
    let mut marks = Marks::open(plan, stop)?;
    let mut crew = Crew::connect(plan, stop)?;
    reporter.ready()?;
    let task = Task {
        interval_ns: watch.interval_ns(),
        ..plan.task(monotonic_ns() + HEAD_START_NS)
    };
    crew.begin(&task)?;
    watch.begin(&task, &plan.place())?;
    let mut hear = |member: usize, said: Option<&Interval>| watch.hear(member, said);
    mark_begin(&task, reporter, &mut crew, &mut hear)?;
    marks.begin()?;
    let threads = mark_end(&task, reporter, &mut crew, &mut hear)?;
    marks.end()?;
    crew.end()?;
    watch.end()?;
    Ok(Counted { threads })
}

/// Tells the begin of each phase when it comes, so that probes are read then.
fn mark_begin(
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

/// Tells the end of measuring when it comes, and what was counted by then. At its time sessions may
/// be at a transaction still: what that uses is not measured, and the close of an engine neither.
fn mark_end(
    task: &Task,
    reporter: &Reporter,
    crew: &mut Crew,
    hear: &mut dyn FnMut(usize, Option<&Interval>),
) -> Result<Vec<Tally>, Error> {
    crew.hear_until(task.end_ns(), hear)?;
    if !crew.has_ended() {
        edge(reporter, "measure", Edge::End, Some(task.end_ns()))?;
        return crew.finish(hear);
    }
    let threads = crew.finish(hear)?;
    // None that measured: all sessions were lost before.
    let end_ns = threads.iter().map(|it| it.end_ns).max();
    edge(reporter, "measure", Edge::End, end_ns.filter(|it| *it > 0))?;
    Ok(threads)
}

/// Tells an edge of a phase.
pub fn edge(reporter: &Reporter, phase: &str, edge: Edge, at_ns: Option<u64>) -> Result<(), Error> {
    let phase = phase.to_owned();
    Ok(reporter.line(&ReportLine::Phase(PhaseLine { phase, edge, at_ns }))?)
}
