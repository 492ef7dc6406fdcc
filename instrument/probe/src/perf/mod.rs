//! The kernel's perf subsystem, over a whole process tree.
//!
//! Three events a CPU, inherited by every thread and child, each with a ring of its own: one counts for each thread
//! ([`TreeCounter`]), another records births, deaths and program texts ([`TreeLives`]) and counts for the whole tree, and
//! the third samples where in
//! their programs the threads run ([`TreeSamples`]). They are separate because a thread's counts may be
//! written on another CPU than the ring's, and the kernel does not serialise two writers; the others are
//! written on the ring's own CPU only, so none of them is torn.
//!
//! Who asks for it gets a counter of the hardware as well: the misses of the caches ([`CacheMisses`]).

mod counter;
mod event;
mod lives;
mod misses;
mod ring;
mod samples;
mod texts;

pub use counter::{Counts, ThreadRead, TreeCounter};
pub use lives::{Life, LifeEvent, Lives, TreeLives};
pub use misses::CacheMisses;
pub use samples::{Place, Sampled, TreeSamples};
pub use texts::TextMapping;

use std::cell::Cell;
use std::fs::File;

use crate::{ProbeError, Result};

/// With more CPUs the copies of the events would cost each new thread too much.
const CPUS_MAX: usize = 32;

/// What is attached to a tree, or why each part was refused.
#[derive(Debug)]
pub struct Attached {
    pub counter: Result<TreeCounter>,
    pub lives: Result<TreeLives>,
    pub samples: Result<TreeSamples>,
}

/// Attaches to a process that has not exec'ed yet: counting begins with its exec and covers
/// every thread and child that it starts from then on. Needs `kernel.perf_event_paranoid` ≤ 2,
/// or CAP_PERFMON; migrations ≤ 1, or CAP_PERFMON.
pub fn attach(pid: u32, cpus_online: &[u32]) -> Attached {
    let kernel = Cell::new(true);
    let open_counter = |cpu| {
        counter::open(pid, cpu, kernel.get()).or_else(|_| {
            kernel.set(false);
            counter::open(pid, cpu, false)
        })
    };
    if cpus_online.len() > CPUS_MAX {
        let too_many = |what: &str| {
            ProbeError::Unavailable(format!(
                "{what} on more than {CPUS_MAX} CPUs: each new thread would pay for an event on each"
            ))
        };
        return Attached {
            counter: open_counter(-1).map(|one| TreeCounter::new(vec![], vec![one], kernel.get())),
            lives: Err(too_many("births and deaths are not watched")),
            samples: Err(too_many("where threads run is not sampled")),
        };
    }
    // In the order of CPUs, as the kernel's own: when it switches from a parent to its child, it swaps
    // the counts of both pairwise, by their positions in two lists, of which these calls make one and
    // the kernel makes the other.
    let (mut counters, mut lives, mut samples) = (Ok(vec![]), Ok(vec![]), Ok(vec![]));
    for cpu in cpus_online {
        let cpu = *cpu as i32;
        add(&mut counters, || open_counter(cpu));
        add(&mut lives, || lives::open(pid, cpu, kernel.get()));
        add(&mut samples, || samples::open(pid, cpu));
    }
    // The rings in the order in which they are needed: what may be locked in memory is bounded.
    let counter = counters.and_then(|counters| {
        let totals = totals_of(&lives)?;
        Ok(TreeCounter::new(counters, totals, kernel.get()))
    });
    let lives = lives.and_then(TreeLives::new);
    let samples = match &lives {
        Ok(_) => samples.and_then(TreeSamples::new),
        Err(error) => Err(ProbeError::Unavailable(format!(
            "what is mapped as program text is not recorded: {error}"
        ))),
    };
    Attached {
        counter,
        lives,
        samples,
    }
}

/// The same events once more, as they stay open for the counts where their rings are refused.
fn totals_of(lives: &Result<Vec<File>>) -> Result<Vec<File>> {
    let events = lives.as_ref().map_err(|error| {
        ProbeError::Unavailable(format!("the whole tree is not counted: {error}"))
    })?;
    let again = events.iter().map(File::try_clone);
    let again = again.collect::<std::io::Result<_>>();
    again.map_err(|error| ProbeError::system("duplicate a perf event", error))
}

/// Adds the next event, unless one was refused.
fn add(all: &mut Result<Vec<File>>, open: impl FnOnce() -> Result<File>) {
    if let Ok(events) = all {
        match open() {
            Ok(event) => events.push(event),
            Err(error) => *all = Err(error),
        }
    }
}
