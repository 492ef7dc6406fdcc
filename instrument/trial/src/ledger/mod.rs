//! The accounts of every thread of every role: who belongs to whom, and what each one used.
//!
//! A thread's final figures come from the kernel's account at its exit, or from reading the
//! zombie that the runner buries; failing both, from its last sample. Exits of the whole
//! machine arrive here, so each has to be traced to a role through its process and parent.

mod ends;
mod role;
mod thread;

pub use thread::{Final, Seen, Sums};

use std::collections::{HashMap, HashSet};

use concurve_clock as clock;
use concurve_probe::perf::{Life, ThreadRead};
use concurve_probe::taskstats::ExitAccount;

use role::RoleLedger;
use thread::{Lifetimes, Reads};

/// Exits that wait for their process to become known; the oldest give way.
const PENDING_MAX: usize = 200_000;
/// How long an exit account waits for the thread's counts: a thread that exits may well be
/// preempted between the two.
const WAIT_NS: u64 = 500_000_000;
const MOMENT_NS: u64 = 1_000_000_000;

/// An exit account that is not booked yet.
#[derive(Debug)]
struct Pending {
    account: ExitAccount,
    /// When it is booked with or without the thread's counts.
    due_ns: u64,
}

/// The threads of all roles.
#[derive(Debug)]
pub struct Ledger {
    pub roles: Vec<RoleLedger>,
    pub role_names: Vec<String>,
    role_of: HashMap<u32, usize>,
    finals: HashMap<u32, Final>,
    pending: Vec<Pending>,
    /// First threads whose exit was booked before their zombie was read, and their CPU time.
    booked_leaders: HashMap<u32, u64>,
    /// What exiting threads had counted, until their exit account is booked.
    reads: HashMap<u32, Reads>,
    /// Births and deaths that the kernel told, where no exit account says how long a thread lived.
    lives: Lifetimes,
    /// Threads whose exit was booked, and when: `/proc` shows them for a while yet.
    ended_ns: HashMap<u32, u64>,
    /// Processes that were killed as stragglers.
    condemned: HashSet<u32>,
    /// Exit accounts arrive, as far as the kernel could deliver them.
    pub exits_granted: bool,
    /// The kernel had to throw exits away.
    pub exits_lost: bool,
}

impl Ledger {
    pub fn new(role_names: Vec<String>, listed_max: u32, exits_granted: bool) -> Self {
        Self {
            roles: role_names
                .iter()
                .map(|_| RoleLedger::new(listed_max as usize))
                .collect(),
            role_names,
            role_of: HashMap::new(),
            finals: HashMap::new(),
            pending: Vec::new(),
            booked_leaders: HashMap::new(),
            reads: HashMap::new(),
            lives: Lifetimes::default(),
            ended_ns: HashMap::new(),
            condemned: HashSet::new(),
            exits_granted,
            exits_lost: false,
        }
    }

    /// The role that a process belongs to, if it is known.
    pub fn role_of(&self, pid: u32) -> Option<usize> {
        self.role_of.get(&pid).copied()
    }

    /// Learns that a living process belongs to a role.
    pub fn adopt(&mut self, pid: u32, role: usize) {
        if self.role_of.insert(pid, role) == Some(role) && self.roles[role].processes.contains(&pid)
        {
            return;
        }
        self.roles[role].enter(pid);
        self.booked_leaders.remove(&pid);
    }

    /// Notes that a process is killed; says whether that is new.
    pub fn condemn(&mut self, pid: u32) -> bool {
        self.condemned.insert(pid)
    }

    /// Whether a thread of this number ended a moment ago, although `/proc` may still show it.
    pub fn just_ended(&self, tid: u32) -> bool {
        let ended = self.ended_ns.get(&tid);
        ended.is_some_and(|at| clock::monotonic_ns() - at < MOMENT_NS)
    }

    /// Notes a living thread's sample.
    pub fn see(&mut self, role: usize, tid: u32, seen: Seen) {
        self.roles[role].living.insert(tid, seen);
    }

    /// Notes the birth of a role's first thread: nobody watches that.
    pub fn born(&mut self, tid: u32, at_ns: u64) {
        self.lives.born(tid, at_ns);
    }

    /// Notes births and deaths of threads of the roles.
    pub fn live(&mut self, lives: &[Life]) {
        if !self.exits_granted {
            lives.iter().for_each(|life| self.lives.note(life));
        }
    }

    /// Notes what a zombie's files say, before its exit account is looked at.
    pub fn read_final(&mut self, pid: u32, reading: Final) {
        self.finals.insert(pid, reading);
    }

    /// Notes exits of any processes of the machine.
    pub fn exits(&mut self, accounts: Vec<ExitAccount>) {
        let room = PENDING_MAX.saturating_sub(self.pending.len());
        self.exits_lost |= accounts.len() > room;
        for account in &accounts {
            self.note_end(account.tid);
        }
        let due_ns = clock::monotonic_ns() + WAIT_NS;
        let pending = |account| Pending { account, due_ns };
        self.pending
            .extend(accounts.into_iter().take(room).map(pending));
    }

    /// Notes what exiting threads of a role had counted on one CPU each.
    pub fn reads(&mut self, reads: Vec<ThreadRead>, per_thread: usize) {
        for read in reads {
            // Without exit accounts a thread that was never sampled has no name to list it by.
            let mut roles = self.roles.iter();
            if !self.exits_granted && !roles.any(|role| role.living.contains_key(&read.tid)) {
                continue;
            }
            let entry = self.reads.entry(read.tid).or_default();
            entry.note(read.cpu_index, per_thread, read.counts);
        }
    }

    /// Books the exits that can be traced. A thread's counts come a moment after its exit
    /// account: unless `now_or_never`, an account waits for them, but not for ever.
    pub fn settle(&mut self, now_or_never: bool) {
        let now = match now_or_never {
            true => u64::MAX,
            false => clock::monotonic_ns(),
        };
        self.resolve(now);
    }

    /// A process was reaped: what is known of it by now is final.
    pub fn reap(&mut self, pid: u32) {
        let Some(role) = self.role_of(pid) else {
            return;
        };
        if let Some(reading) = self.finals.remove(&pid) {
            if let Some(booked_ns) = self.booked_leaders.remove(&pid) {
                self.roles[role].correct(pid, booked_ns, &reading);
                return self.roles[role].close(pid);
            }
            let seen = self.roles[role].living.remove(&pid).unwrap_or_default();
            self.end_by_zombie(role, pid, seen, reading);
        }
        self.roles[role].close(pid);
    }

    /// Ends everything that is still thought to be alive, by its last sample.
    pub fn close_all(&mut self) {
        for role in 0..self.roles.len() {
            let living: Vec<_> = self.roles[role].living.drain().collect();
            for (tid, seen) in living {
                self.end_by_sample(role, tid, seen);
            }
            let processes: Vec<u32> = self.roles[role].processes.iter().copied().collect();
            for pid in processes {
                self.roles[role].close(pid);
            }
        }
    }

    /// A thread was found gone: without exit accounts its last sample is all there is.
    pub fn vanished(&mut self, role: usize, tid: u32) {
        if self.exits_granted && !self.exits_lost {
            return;
        }
        // A zombie's own reading follows when it is reaped.
        if self.roles[role]
            .living
            .get(&tid)
            .is_some_and(|seen| seen.pid == tid)
        {
            return;
        }
        if let Some(seen) = self.roles[role].living.remove(&tid) {
            self.end_by_sample(role, tid, seen);
        }
    }

    fn belongs(&self, account: &ExitAccount) -> Option<usize> {
        self.role_of(account.pid)
            .or_else(|| self.role_of(account.parent))
    }

    /// Books waiting exits until no more can be traced.
    fn resolve(&mut self, now: u64) {
        loop {
            let (due, pending): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
                .into_iter()
                .partition(|pending| self.due(pending, now));
            self.pending = pending;
            if due.is_empty() {
                return;
            }
            for pending in due {
                self.book_exit(pending.account);
            }
        }
    }

    fn due(&self, pending: &Pending, now: u64) -> bool {
        let counted = self.reads.get(&pending.account.tid);
        let complete = counted.is_some_and(Reads::complete);
        (complete || pending.due_ns <= now) && self.belongs(&pending.account).is_some()
    }

    fn note_end(&mut self, tid: u32) {
        let now = clock::monotonic_ns();
        if self.ended_ns.len() > PENDING_MAX {
            self.ended_ns.retain(|_, at| now - *at < MOMENT_NS);
        }
        self.ended_ns.insert(tid, now);
    }
}
