//! What the kernel tells of threads as they exit: their accounts, counts, births and deaths.

use concurve_clock as clock;
use concurve_probe::taskstats::Received;

use super::Trial;

/// How often the perf rings are emptied: they hold what all CPUs can bring about meanwhile, many
/// times over. A look costs a few loads.
const RINGS_INTERVAL_NS: u64 = 10_000_000;

impl Trial {
    /// Takes the exit accounts that wait, what the exiting threads had counted, and births and
    /// deaths. With `now_or_never` all exits are booked at once.
    pub fn take_exits(&mut self, now_or_never: bool) {
        self.sampler.collect_waits(&mut self.ledger);
        self.receive_exits();
        self.take_rings(clock::monotonic_ns());
        self.ledger.settle(now_or_never);
    }

    /// When the rings are looked into at the latest, if there are any.
    pub fn rings_due_ns(&self) -> Option<u64> {
        let mut roles = self.roles.iter();
        let any = roles.any(|role| role.counter.is_some() || role.lives.is_some());
        any.then_some(self.rings_taken_ns + RINGS_INTERVAL_NS)
    }

    /// Takes what exiting threads had counted, and births and deaths.
    pub fn take_rings(&mut self, now: u64) {
        self.rings_taken_ns = now;
        for role in &mut self.roles {
            if let Some(counter) = &mut role.counter {
                let per_thread = counter.reads_per_thread();
                self.ledger.reads(counter.take_reads(), per_thread);
            }
            if let Some(lives) = &mut role.lives {
                let lives = lives.take();
                self.ledger.live(&lives.lives);
                role.census.add(lives);
            }
        }
    }

    fn receive_exits(&mut self) {
        let Some((listener, _)) = &mut self.host.taskstats else {
            return;
        };
        loop {
            match listener.receive() {
                Ok(Received::Accounts(accounts)) => self.ledger.exits(accounts),
                Ok(Received::Lost) => self.ledger.exits_lost = true,
                Ok(Received::Nothing) => return,
                Err(error) => {
                    self.ledger.exits_lost = true;
                    let reason = error.to_string();
                    self.host.absent.insert("taskstats".into(), reason);
                    return;
                }
            }
        }
    }
}
