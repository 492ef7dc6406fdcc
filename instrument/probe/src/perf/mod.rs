//! The kernel's perf subsystem, over a whole process tree.
//!
//! Two events a CPU, inherited by every thread and child, each with a ring of its own: one counts
//! ([`TreeCounter`]), the other records births and deaths ([`TreeLives`]). They are separate because a
//! thread's counts may be written on another CPU than the ring's, and the kernel does not serialise
//! two writers; births and deaths are written on the ring's own CPU only, so none of them is torn.
//!
//! Who asks for it gets a counter of the hardware as well: the misses of the caches ([`CacheMisses`]).

mod counter;
mod event;
mod lives;
mod misses;
mod ring;

pub use counter::{Counts, ThreadRead, TreeCounter};
pub use lives::{Life, LifeEvent, Lives, TreeLives};
pub use misses::CacheMisses;

use crate::{ProbeError, Result};

/// With more CPUs the copies of the events would cost each new thread too much.
const CPUS_MAX: usize = 32;

/// What is attached to a tree, or why each part was refused.
#[derive(Debug)]
pub struct Attached {
    pub counter: Result<TreeCounter>,
    pub lives: Result<TreeLives>,
}

/// Attaches to a process that has not exec'ed yet: counting begins with its exec and covers
/// every thread and child that it starts from then on. Needs `kernel.perf_event_paranoid` ≤ 2,
/// or CAP_PERFMON; migrations ≤ 1, or CAP_PERFMON.
pub fn attach(pid: u32, cpus_online: &[u32]) -> Attached {
    let mut kernel = true;
    let mut open_counter = |cpu| {
        counter::open(pid, cpu, kernel).or_else(|_| {
            kernel = false;
            counter::open(pid, cpu, kernel)
        })
    };
    if cpus_online.len() > CPUS_MAX {
        return Attached {
            counter: open_counter(-1).map(|one| TreeCounter::new(vec![one], kernel)),
            lives: Err(ProbeError::Unavailable(format!(
                "births and deaths are not watched on more than {CPUS_MAX} CPUs: each new thread \
                 would pay for an event on each"
            ))),
        };
    }
    // In the order of CPUs, as the kernel's own: when it switches from a parent to its child, it swaps
    // the counts of both pairwise, by their positions in two lists, of which these calls make one and
    // the kernel makes the other.
    let (counters, lives): (Vec<_>, Vec<_>) = cpus_online
        .iter()
        .map(|cpu| {
            let cpu = *cpu as i32;
            (open_counter(cpu), lives::open(pid, cpu))
        })
        .unzip();
    let counters: Result<Vec<_>> = counters.into_iter().collect();
    let lives: Result<Vec<_>> = lives.into_iter().collect();
    Attached {
        counter: counters.map(|counters| TreeCounter::new(counters, kernel)),
        lives: lives.and_then(TreeLives::new),
    }
}
