//! The accounts of every thread of every role: which role it belongs to, and what it used.
//!
//! A thread's final figures come from the kernel's account at its exit, or from reading the
//! zombie that the runner reaps; failing both, from its last sample. Exits of the whole
//! machine arrive here, so each has to be traced to a role through its process and parent.

mod ends;
mod role;
mod thread;

pub use role::RoleLedger;
pub use thread::{Final, LAG_NS_MAX, Seen, Sums};

use std::collections::{HashMap, HashSet};

use concurve_clock as clock;
use concurve_probe::perf::{Life, ThreadRead};
use concurve_probe::taskstats::ExitAccount;

use thread::{Lifetimes, Reads};

/// Most exits that wait for their process to become known; further ones are lost.
const PENDING_MAX: usize = 200_000;
/// How long an exit account waits for the thread's counts: a thread that exits may well be
/// preempted between the two.
const WAIT_NS: u64 = 500_000_000;
const JUST_ENDED_NS: u64 = 1_000_000_000;

/// An exit account that is not entered yet.
#[derive(Debug)]
struct Pending {
    account: ExitAccount,
    /// When it is entered with or without the thread's counts.
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
    /// First threads whose exit was entered before their zombie was read, and their CPU time.
    booked_leaders: HashMap<u32, u64>,
    /// The counts of exiting threads, until their exit account is entered.
    reads: HashMap<u32, Reads>,
    /// Births and deaths from perf, used where no exit account says how long a thread lived.
    lives: Lifetimes,
    /// Threads that have exited, and when: `/proc` still shows them for a while.
    ended_ns: HashMap<u32, u64>,
    /// Children of the runner that are of no role.
    no_role: HashSet<u32>,
    /// Processes that were killed as stragglers.
    condemned: HashSet<u32>,
    /// Whether exit accounts arrive at all.
    pub exits_granted: bool,
    /// Whether the kernel has dropped exit accounts.
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
            no_role: HashSet::new(),
            condemned: HashSet::new(),
            exits_granted,
            exits_lost: false,
        }
    }

    /// The role that a process belongs to, if it is known.
    pub fn role_of(&self, pid: u32) -> Option<usize> {
        self.role_of.get(&pid).copied()
    }

    /// Records that a living process belongs to a role.
    pub fn adopt(&mut self, pid: u32, role: usize) {
        if self.role_of.insert(pid, role) == Some(role) && self.roles[role].processes.contains(&pid)
        {
            return;
        }
        self.roles[role].enter(pid);
        self.booked_leaders.remove(&pid);
    }

    /// Records that a process of an attached role, which used so much, ended before it was attached.
    pub fn ended_before(&mut self, pid: u32, role: usize, cpu_ns: u64) {
        if self.role_of.insert(pid, role).is_none() {
            self.roles[role].ended_before(cpu_ns);
        }
    }

    /// Records that a child of the runner is of no role.
    pub fn set_apart(&mut self, pid: u32) {
        self.no_role.insert(pid);
    }

    /// Records that such a child was reaped.
    pub fn forget_apart(&mut self, pid: u32) {
        self.no_role.remove(&pid);
    }

    /// Whether this child of the runner is of no role.
    pub fn is_no_role(&self, pid: u32) -> bool {
        self.no_role.contains(&pid)
    }

    /// Records that a process is killed as a straggler; returns whether that is new.
    pub fn condemn(&mut self, pid: u32) -> bool {
        self.condemned.insert(pid)
    }

    /// Whether a thread of this number ended within the last second; `/proc` may still show it.
    pub fn just_ended(&self, tid: u32) -> bool {
        let ended = self.ended_ns.get(&tid);
        ended.is_some_and(|at| clock::monotonic_ns() - at < JUST_ENDED_NS)
    }

    /// Whether all that a process used is entered: `/proc` shows it until its parent has waited for it, and it takes a
    /// while to give its memory back before.
    pub fn is_entered(&self, pid: u32) -> bool {
        let role = self.role_of(pid);
        role.is_some_and(|role| !self.roles[role].processes.contains(&pid)) && self.just_ended(pid)
    }

    /// Records a living thread's sample.
    pub fn see(&mut self, role: usize, tid: u32, seen: Seen) {
        self.roles[role].living.insert(tid, seen);
    }

    /// Records the birth of a role's first thread, which perf does not report.
    pub fn born(&mut self, tid: u32, at_ns: u64) {
        self.lives.born(tid, at_ns);
    }

    /// Records births and deaths of threads of the roles.
    pub fn live(&mut self, lives: &[Life]) {
        if !self.exits_granted {
            lives.iter().for_each(|life| self.lives.note(life));
        }
    }

    /// Records what a zombie's files say; to be called before its exit account is entered.
    pub fn read_final(&mut self, pid: u32, reading: Final) {
        self.finals.insert(pid, reading);
    }

    /// Records exits of any processes of the machine.
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

    /// Records counts of exiting threads of a role, of one CPU each.
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

    /// Enters the exits that can be traced to a role. A thread's counts arrive shortly after its exit
    /// account: unless `now_or_never`, an account waits for them for a limited time.
    pub fn settle(&mut self, now_or_never: bool) {
        let now = match now_or_never {
            true => u64::MAX,
            false => clock::monotonic_ns(),
        };
        self.resolve(now);
    }

    /// Why the ends of threads are not all accounted for, if they are not.
    pub fn exits_missing(&self) -> Option<&'static str> {
        match (self.exits_granted, self.exits_lost) {
            (true, false) => None,
            (true, true) => Some("exit accounts were lost"),
            (false, _) => Some("no exit accounts (taskstats)"),
        }
    }

    /// Closes the account of a reaped process: what is known of it is final.
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
            let (process_ns, children_ns) = (reading.process_ns, reading.children_ns);
            self.roles[role].children_ns += children_ns;
            self.end_by_zombie(role, pid, seen, reading);
            if self.exits_missing().is_some() {
                self.end_by_samples(role, pid);
                self.roles[role].book_clock(pid, process_ns.unwrap_or(0));
            }
        }
        self.roles[role].close(pid);
    }

    /// Closes the account of a process that has ended and that the runner does not reap. Without its exit
    /// accounts, its threads end by their last samples: what it used since is not known.
    pub fn end_unreaped(&mut self, role: usize, pid: u32) {
        if self.exits_missing().is_some() && self.roles[role].processes.contains(&pid) {
            let sampled = self.end_by_samples(role, pid);
            let roster = &mut self.roles[role];
            roster.unbooked_processes += 1;
            roster.unsampled_processes += u64::from(sampled == 0);
        }
        let roster = &mut self.roles[role];
        if roster.keep_before(pid) {
            roster.living.retain(|_, seen| seen.pid != pid);
        }
        roster.close(pid);
    }

    /// Ends the threads of a process that are still taken for alive, by their last samples; returns how many.
    fn end_by_samples(&mut self, role: usize, pid: u32) -> usize {
        let living = &mut self.roles[role].living;
        let ended: Vec<_> = living.extract_if(|_, seen| seen.pid == pid).collect();
        let count = ended.len();
        for (tid, seen) in ended {
            self.end_by_sample(role, tid, seen);
        }
        count
    }

    /// Ends every thread that is still taken for alive, by its last sample.
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

    /// Handles a thread that has disappeared: without exit accounts its last sample is all there is.
    pub fn vanished(&mut self, role: usize, tid: u32) {
        if self.exits_missing().is_none() {
            return;
        }
        // The own reading of a first thread follows when its process is reaped. One that its own parent waits for
        // has none: its process ends when a reading finds it gone.
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

    /// Enters pending exits until no more can be traced.
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
            self.ended_ns.retain(|_, at| now - *at < JUST_ENDED_NS);
        }
        self.ended_ns.insert(tid, now);
    }
}

#[cfg(test)]
mod tests {
    use concurve_probe::schedstat::Schedstat;

    use super::*;

    fn cpu(cpu_ns: u64) -> Sums {
        Sums {
            cpu_ns,
            ..Sums::default()
        }
    }

    /// It exits when the trial begins: its account was sent before anybody listened.
    #[test]
    fn a_process_that_ends_without_its_account_has_used_no_less_than_before_it_was_attached() {
        let mut ledger = Ledger::new(vec!["server".into()], 10, true);
        ledger.adopt(10, 0);
        ledger.roles[0].used_before(10, cpu(500), cpu(500));
        ledger.end_unreaped(0, 10);
        assert_eq!(
            ledger.roles[0]
                .closed()
                .minus(ledger.roles[0].before)
                .cpu_ns,
            0
        );
        assert_eq!(
            ledger.roles[0].closed().cpu_ns,
            500,
            "or what others use would be less by that"
        );
    }

    #[test]
    fn a_process_whose_account_came_is_entered_while_it_is_still_shown() {
        let mut ledger = Ledger::new(vec!["server".into()], 10, true);
        ledger.adopt(10, 0);
        assert!(!ledger.is_entered(10), "it lives");
        let account = ExitAccount {
            tid: 10,
            pid: 10,
            parent: 1,
            name: "backend".into(),
            nice: 0,
            policy: None,
            last: true,
            cpu_ns: 7,
            run_queue_ns: 0,
            slices: 1,
            voluntary_switches: 0,
            involuntary_switches: 0,
            elapsed_ns: 8,
            rss_bytes_max: None,
        };
        ledger.exits(vec![account]);
        ledger.settle(true);
        assert!(ledger.is_entered(10));
        assert_eq!(ledger.roles[0].closed().cpu_ns, 7);
        assert!(!ledger.is_entered(11), "nobody knows it");
    }

    fn seen(pid: u32, cpu_ns: u64) -> Seen {
        Seen {
            pid,
            schedstat: Schedstat {
                cpu_ns,
                ..Schedstat::default()
            },
            ..Seen::default()
        }
    }

    #[test]
    fn the_threads_of_a_process_that_is_not_reaped_end_with_it() {
        for exits_granted in [false, true] {
            let mut ledger = Ledger::new(vec!["server".into()], 10, exits_granted);
            for pid in [10, 20] {
                ledger.adopt(pid, 0);
                ledger.see(0, pid, seen(pid, 700));
                ledger.see(0, pid + 1, seen(pid, 50));
            }
            ledger.end_unreaped(0, 10);
            ledger.end_unreaped(0, 10);
            let unbooked = ledger.roles[0].unbooked_processes;
            assert_eq!(unbooked, u64::from(!exits_granted), "each counts once");
            // Where accounts come, those of these threads are entered as they arrive.
            let expected_ns = if exits_granted { 0 } else { 750 };
            assert_eq!(ledger.roles[0].closed().cpu_ns, expected_ns);
            assert!(!ledger.roles[0].processes.contains(&10));
            ledger.close_all();
            assert_eq!(ledger.roles[0].closed().cpu_ns, 1500, "each counts once");
        }
    }

    #[test]
    fn a_process_that_no_sample_saw_has_ended_all_the_same() {
        let mut ledger = Ledger::new(vec!["server".into()], 10, false);
        ledger.adopt(10, 0);
        ledger.adopt(20, 0);
        ledger.see(0, 20, seen(20, 700));
        ledger.end_unreaped(0, 10);
        ledger.end_unreaped(0, 20);
        let roster = &ledger.roles[0];
        let unbooked = (roster.unbooked_processes, roster.unsampled_processes);
        assert_eq!((unbooked, roster.sampled_only), ((2, 1), 1));
    }

    #[test]
    fn the_clock_of_a_zombie_has_the_threads_that_no_sample_saw() {
        let mut ledger = Ledger::new(vec!["server".into()], 10, false);
        ledger.adopt(10, 0);
        ledger.see(0, 10, seen(10, 100));
        ledger.see(0, 11, seen(10, 50));
        let zombie = Final {
            name: "server".into(),
            nice: 0,
            policy: None,
            schedstat: seen(10, 120).schedstat,
            switches: None,
            migrations: None,
            process_ns: Some(900),
            children_ns: 70,
        };
        ledger.read_final(10, zombie);
        ledger.reap(10);
        ledger.close_all();
        let roster = &ledger.roles[0];
        assert_eq!((roster.closed().cpu_ns, roster.closed().threads), (900, 2));
        assert_eq!((roster.unbooked_processes, roster.sampled_only), (0, 1));
        assert_eq!(roster.unseen_ns, 730);
        assert_eq!(roster.children_ns, 70);
    }
}
