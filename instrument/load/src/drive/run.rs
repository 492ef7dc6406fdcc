//! A run, from connecting to the last answer: start barrier, phases, counts.

use std::sync::Arc;

use concurve_clock::monotonic_ns;
use concurve_reporter::Reporter;
use concurve_reporter::line::{Edge, PhaseLine, ReportLine};

use super::greatest;
use super::workers::Workers;
use crate::admin::{AdminConnection, AdminError};
use crate::counts::greatest::Greatest;
use crate::counts::tally::{Interval, Tally};
use crate::error::Error;
use crate::failures::Failures;
use crate::figures::intervals::IntervalObservers;
use crate::plan::{AskedPace, Load, Pace, Plan, Task};
use crate::stop::Stop;

/// From giving a task to its first transaction: all workers have received it by then.
pub const HEAD_START_NS: u64 = 5_000_000;

/// What a run has counted.
pub struct Counted {
    /// The pace that was measured.
    pub pace: Pace,
    /// What the rate of an open loop is a share of, if it is one.
    pub greatest: Option<Greatest>,
    /// Of each worker.
    pub tallies: Vec<Tally>,
    /// Why the server may not know of the begin or of the end of the measured phase.
    pub unmarked: Option<String>,
    /// What the counts do not depend on: an engine could not be closed, or logs not be written.
    pub failures: Failures,
}

/// Connects all sessions, starts them together, and returns what was counted.
pub fn run(
    plan: &Arc<Plan>,
    load: &Load,
    reporter: &Reporter,
    stop: &Stop,
    mut observers: IntervalObservers,
) -> Result<Counted, Error> {
    let mut marker = PhaseMarker::open(plan, stop)?;
    let mut workers = Workers::connect(plan, stop)?;
    reporter.ready()?;
    let (pace, greatest) = match &load.pace {
        AskedPace::Given(pace) => (*pace, None),
        AskedPace::Share(asked) => {
            observers.tell("measuring the greatest rate");
            let warm_up_ns = load.warm_up_ns;
            let found = greatest::measure(plan, asked, warm_up_ns, &mut workers, reporter, stop)?;
            (asked.pace(found.rate_per_second), Some(found))
        }
    };
    let task = Task {
        interval_ns: observers.interval_ns(),
        ..load.task(monotonic_ns() + HEAD_START_NS, pace)
    };
    workers.begin(&task)?;
    observers.begin(&task, &plan.target_name())?;
    let mut observe =
        |worker: usize, interval: Option<&Interval>| observers.observe(worker, interval);
    begin_measuring(&task, reporter, &mut workers, &mut observe)?;
    marker.mark(Edge::Begin)?;
    let mut tallies = end_measuring(&task, reporter, &mut workers, &mut observe)?;
    if let Some(greatest) = &greatest {
        greatest.add_to(&mut tallies);
    }
    marker.mark(Edge::End)?;
    let closed = workers.end();
    let mut failures = observers.end();
    failures.note(closed);
    Ok(Counted {
        pace,
        greatest,
        tallies,
        unmarked: marker.unmarked,
        failures,
    })
}

/// Reports the begin of each phase at its time, so that probes are read then.
fn begin_measuring(
    task: &Task,
    reporter: &Reporter,
    workers: &mut Workers,
    observe: &mut dyn FnMut(usize, Option<&Interval>),
) -> Result<(), Error> {
    let mut measure_ns = task.measure_ns();
    if measure_ns > task.begin_ns {
        report_edge(reporter, "warm-up", Edge::Begin, Some(task.begin_ns))?;
        workers.receive_until(measure_ns, observe)?;
        // All workers may have ended before.
        measure_ns = measure_ns.min(monotonic_ns());
        report_edge(reporter, "warm-up", Edge::End, Some(measure_ns))?;
    }
    report_edge(reporter, "measure", Edge::Begin, Some(measure_ns))
}

/// Reports the end of measuring at its time, and returns the counts. Sessions may have transactions
/// under way then: what these use is not measured, and neither is closing an engine.
fn end_measuring(
    task: &Task,
    reporter: &Reporter,
    workers: &mut Workers,
    observe: &mut dyn FnMut(usize, Option<&Interval>),
) -> Result<Vec<Tally>, Error> {
    workers.receive_until(task.end_ns(), observe)?;
    if !workers.has_ended() {
        report_edge(reporter, "measure", Edge::End, Some(task.end_ns()))?;
        return workers.finish(observe);
    }
    let tallies = workers.finish(observe)?;
    // Workers that lost all sessions before the phase have measured nothing.
    let end_ns = tallies.iter().map(|it| it.end_ns).max();
    report_edge(reporter, "measure", Edge::End, end_ns.filter(|it| *it > 0))?;
    Ok(tallies)
}

/// Reports the begin or the end of a phase.
pub fn report_edge(
    reporter: &Reporter,
    phase: &str,
    edge: Edge,
    at_ns: Option<u64>,
) -> Result<(), Error> {
    let phase = phase.to_owned();
    Ok(reporter.line(&ReportLine::Phase(PhaseLine { phase, edge, at_ns }))?)
}

/// Marks the begin and the end of the measured phase at the reference server, so that it reports
/// its counters for that time only.
struct PhaseMarker {
    /// `None` if the phase is not to be marked, or cannot be any more.
    connection: Option<Box<dyn AdminConnection>>,
    server: String,
    /// Why the server may not know of an edge of the phase.
    unmarked: Option<String>,
}

impl PhaseMarker {
    /// Must be called before the sessions connect: another connection between theirs would change
    /// the distribution of the sessions over the server's threads.
    fn open(plan: &Plan, stop: &Stop) -> Result<Self, Error> {
        let admin = plan.phase_marking.as_ref();
        Ok(Self {
            connection: admin.map(|it| it.open(false, stop)).transpose()?,
            server: plan.target_name(),
            unmarked: None,
        })
    }

    fn mark(&mut self, edge: Edge) -> Result<(), Error> {
        let (statement, name) = match edge {
            Edge::Begin => ("PHASE BEGIN", "begin"),
            Edge::End => ("PHASE END", "end"),
        };
        let Some(connection) = &mut self.connection else {
            return Ok(());
        };
        match connection.execute(statement) {
            Ok(_) => Ok(()),
            // The sessions notice when the server is gone.
            Err(AdminError::Lost(..) | AdminError::Stopped) => Ok(()),
            Err(why @ AdminError::NoAnswer(..)) => {
                self.connection = None;
                self.unmarked = Some(format!(
                    "the server did not say that it knows of the {name} of the measured phase ({why}), so that its counters may not be those of that time; look at the server"
                ));
                Ok(())
            }
            Err(why) => Err(Error::MarkPhase {
                server: self.server.clone(),
                why,
            }),
        }
    }
}
