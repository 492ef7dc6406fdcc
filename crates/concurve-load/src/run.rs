//! A run from connecting to the last answer: threads or processes, barrier, phases.

use std::thread;
use std::time::Duration;

use concurve_wire::report::{Edge, PhaseLine, ReportLine};
use concurve_wire::reporter::{Reporter, monotonic_ns};

use crate::error::Error;
use crate::event_loop;
use crate::gate::Gate;
use crate::plan::{Crew, Plan};
use crate::process::Processes;
use crate::tally::Tally;

/// From the barrier to the first request: all threads or processes are awake by then.
const HEAD_START_NS: u64 = 5_000_000;

/// What every thread counted.
#[derive(Debug)]
pub struct Counted {
    pub threads: Vec<Tally>,
}

/// Connects all sessions, lets them go together, and collects the counts.
pub fn run(plan: &Plan, reporter: &Reporter) -> Result<Counted, Error> {
    let threads = match plan.crew {
        Crew::Threads(threads) => in_threads(plan, threads, reporter)?,
        Crew::Processes => in_processes(plan, reporter)?,
    };
    let end_ns = threads.iter().map(|it| it.end_ns).max();
    edge(reporter, "measure", Edge::End, end_ns)?;
    Ok(Counted { threads })
}

fn in_threads(plan: &Plan, threads: u64, reporter: &Reporter) -> Result<Vec<Tally>, Error> {
    let gate = Gate::default();
    thread::scope(|scope| {
        let mut clients = Vec::new();
        for number in 0..threads {
            let gate = &gate;
            let client = thread::Builder::new()
                .name(format!("worker-{number}"))
                .spawn_scoped(scope, move || event_loop::run(plan, number, gate));
            match client {
                Ok(client) => clients.push(client),
                Err(error) => {
                    gate.fail();
                    return Err(Error::Thread(number, error));
                }
            }
        }
        if gate.all_ready(threads) {
            let begin_ns = monotonic_ns() + HEAD_START_NS;
            gate.open(begin_ns);
            mark_phases(plan, begin_ns, reporter)?;
        }
        let ended: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        ended
            .into_iter()
            .map(|it| it.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

fn in_processes(plan: &Plan, reporter: &Reporter) -> Result<Vec<Tally>, Error> {
    let mut processes = Processes::start(plan)?;
    let begin_ns = monotonic_ns() + HEAD_START_NS;
    processes.open(begin_ns)?;
    mark_phases(plan, begin_ns, reporter)?;
    processes.collect()
}

/// Tells the begin of each phase when it comes, so that probes are read then.
fn mark_phases(plan: &Plan, begin_ns: u64, reporter: &Reporter) -> Result<(), Error> {
    reporter.ready()?;
    let before_ns = plan.ramp_ns + plan.warm_up_ns;
    if before_ns > 0 {
        edge(reporter, "warm-up", Edge::Begin, Some(begin_ns))?;
        let until_ns = (begin_ns + before_ns).saturating_sub(monotonic_ns());
        thread::sleep(Duration::from_nanos(until_ns));
        edge(reporter, "warm-up", Edge::End, Some(begin_ns + before_ns))?;
    }
    edge(reporter, "measure", Edge::Begin, Some(begin_ns + before_ns))
}

fn edge(reporter: &Reporter, phase: &str, edge: Edge, at_ns: Option<u64>) -> Result<(), Error> {
    let phase = phase.to_owned();
    Ok(reporter.line(&ReportLine::Phase(PhaseLine { phase, edge, at_ns }))?)
}
