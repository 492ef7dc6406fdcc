//! The accounts of every thread of every role: who belongs to whom, and what each one used.
//!
//! A thread's final figures come from the kernel's account at its exit, or from reading the
//! zombie that the runner buries; failing both, from its last sample. Exits of the whole
//! machine arrive here, so each has to be traced to a role through its process and parent.

use std::collections::{HashMap, HashSet};

use concurve_probe::clock;
use concurve_probe::perf::{Counts, Life, ThreadRead};
use concurve_probe::schedstat::Schedstat;
use concurve_probe::taskstats::ExitAccount;
use concurve_wire::record::{Absent, ThreadRecord, ThreadSource, Usage};
use concurve_wire::spec::Policy;

use crate::lifetimes::Lifetimes;
use crate::waits::Sights;

/// Exits that wait for their process to become known; the oldest give way.
const PENDING_MAX: usize = 200_000;
/// How long an exit account waits for the thread's counts: a thread that exits may well be
/// preempted between the two.
const WAIT_NS: u64 = 500_000_000;
/// An exit account's CPU time is as of the last tick; no tick is this long.
const LAG_NS_MAX: u64 = 20_000_000;
const MOMENT_NS: u64 = 1_000_000_000;

/// What is known of a thread that has not ended yet.
#[derive(Debug, Clone, Default)]
pub struct Seen {
    pub pid: u32,
    pub name: String,
    pub nice: Option<i32>,
    pub policy: Option<Policy>,
    pub cpus: Option<Vec<u32>>,
    pub schedstat: Schedstat,
    /// Voluntary and involuntary.
    pub switches: Option<(u64, u64)>,
    pub waits: Sights,
}

/// What a zombie's files say; exact.
#[derive(Debug, Clone)]
pub struct Final {
    pub name: String,
    pub nice: i32,
    pub policy: Option<Policy>,
    pub schedstat: Schedstat,
    pub switches: Option<(u64, u64)>,
    pub migrations: Option<u64>,
}

/// Sums over threads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    pub threads: u64,
    pub cpu_ns: u64,
    pub run_queue_ns: u64,
    pub slices: u64,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
}

impl Sums {
    pub fn add(&mut self, other: Self) {
        self.threads += other.threads;
        self.cpu_ns += other.cpu_ns;
        self.run_queue_ns += other.run_queue_ns;
        self.slices += other.slices;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }

    /// The account of a whole process or of one thread.
    pub fn of(account: &ExitAccount) -> Self {
        Self {
            threads: 1,
            cpu_ns: account.cpu_ns,
            run_queue_ns: account.run_queue_ns,
            slices: account.slices,
            voluntary_switches: account.voluntary_switches,
            involuntary_switches: account.involuntary_switches,
        }
    }
}

/// An exit account that is not booked yet.
#[derive(Debug)]
struct Pending {
    account: ExitAccount,
    /// When it is booked with or without the thread's counts.
    due_ns: u64,
}

/// Counts of an exiting thread, over the CPUs that have told so far.
#[derive(Debug, Clone, Default)]
struct Reads {
    counts: Vec<Option<Counts>>,
}

impl Reads {
    fn complete(&self) -> bool {
        self.counts.iter().all(Option::is_some)
    }

    fn sum(&self) -> Counts {
        let told = self.counts.iter().flatten();
        told.copied().reduce(Counts::plus).unwrap_or_default()
    }

    /// An exit account's CPU time is as of the last tick, and ticks are at most 10 ms apart:
    /// counts that differ by more are another thread's. One CPU's may be lost; then the account
    /// or what is left, whichever is more, is nearer the truth.
    fn refine(&self, account_ns: u64) -> Option<u64> {
        let cpu_ns = self.sum().cpu_ns;
        if cpu_ns > account_ns + LAG_NS_MAX {
            return None;
        }
        match self.complete() {
            true => (cpu_ns + 1_000_000 >= account_ns).then_some(cpu_ns),
            false => Some(cpu_ns.max(account_ns)),
        }
    }
}

/// The threads of one role.
#[derive(Debug, Default)]
pub struct RoleLedger {
    /// Threads that are alive as far as is known, by their number.
    pub living: HashMap<u32, Seen>,
    /// Processes that are alive as far as is known.
    pub processes: HashSet<u32>,
    pub processes_total: u64,
    /// Ended threads of processes that have ended.
    closed: Sums,
    /// Ended threads of processes that live on.
    open: HashMap<u32, Sums>,
    listed: Vec<ThreadRecord>,
    /// Threads whose counts were lost: their CPU time is as of their last tick.
    uncounted: Vec<u32>,
    /// Threads of which only a sample is known.
    pub sampled_only: u64,
    pub threads_peak: u64,
    pub rss_bytes_max: Option<u64>,
    pub rss_bytes_tree_max: Option<u64>,
}

/// The threads of all roles.
#[derive(Debug)]
pub struct Ledger {
    pub roles: Vec<RoleLedger>,
    pub role_names: Vec<String>,
    listed_max: usize,
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
            roles: role_names.iter().map(|_| RoleLedger::default()).collect(),
            role_names,
            listed_max: listed_max as usize,
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
        let ledger = &mut self.roles[role];
        ledger.processes.insert(pid);
        ledger.processes_total += 1;
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
            entry.counts.resize(per_thread, None);
            entry.counts[read.cpu_index] = Some(read.counts);
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

    /// A process was buried: what is known of it by now is final.
    pub fn bury(&mut self, pid: u32) {
        let Some(role) = self.role_of(pid) else {
            return;
        };
        if let Some(reading) = self.finals.remove(&pid) {
            if let Some(booked_ns) = self.booked_leaders.remove(&pid) {
                self.correct(role, pid, booked_ns, &reading);
                return self.close(role, pid);
            }
            // No exit account came for it.
            let seen = self.roles[role].living.remove(&pid).unwrap_or_default();
            self.end_by_zombie(role, pid, seen, reading);
        }
        self.close(role, pid);
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
                self.close(role, pid);
            }
        }
    }

    /// A thread was found gone: without exit accounts its last sample is all there is.
    pub fn vanished(&mut self, role: usize, tid: u32) {
        if self.exits_granted && !self.exits_lost {
            return;
        }
        // A zombie's own reading follows when it is buried.
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

    /// Sums over all threads of a role that have ended, in ended processes only.
    pub fn closed(&self, role: usize) -> Sums {
        self.roles[role].closed
    }

    /// Sums over the ended threads of a process that lives on.
    pub fn ended_of(&self, role: usize, pid: u32) -> Sums {
        self.roles[role].open.get(&pid).copied().unwrap_or_default()
    }

    /// The counters' sum over the whole tree is exact even where some threads' own counts were
    /// lost: what it has more than the accounts is theirs, in equal parts.
    pub fn share_rest(&mut self, role: usize, tree_cpu_ns: u64) {
        let ledger = &mut self.roles[role];
        let uncounted = std::mem::take(&mut ledger.uncounted);
        let rest_ns = tree_cpu_ns.saturating_sub(ledger.closed.cpu_ns);
        let Some(share_ns) = rest_ns.checked_div(uncounted.len() as u64) else {
            return;
        };
        if share_ns > LAG_NS_MAX {
            return;
        }
        ledger.closed.cpu_ns += share_ns * uncounted.len() as u64;
        for thread in &mut ledger.listed {
            if uncounted.contains(&thread.tid) && thread.usage.migrations.is_none() {
                thread.usage.cpu_ns = thread.usage.cpu_ns.map(|cpu_ns| cpu_ns + share_ns);
            }
        }
    }

    /// The threads with most CPU time, most first.
    pub fn take_listed(&mut self, role: usize) -> Vec<ThreadRecord> {
        let mut listed = std::mem::take(&mut self.roles[role].listed);
        rank(&mut listed, self.listed_max);
        listed
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

    /// Books an exit whose role is known.
    fn book_exit(&mut self, account: ExitAccount) {
        let Some(role) = self.belongs(&account) else {
            return;
        };
        if self.role_of.insert(account.pid, role).is_none() {
            self.roles[role].processes.insert(account.pid);
            self.roles[role].processes_total += 1;
        }
        let ledger = &mut self.roles[role];
        ledger.rss_bytes_max = ledger.rss_bytes_max.max(account.rss_bytes_max);
        let seen = ledger.living.remove(&account.tid).unwrap_or_default();
        let mut sums = Sums::of(&account);
        let reading = match account.tid == account.pid {
            true => self.finals.remove(&account.pid),
            false => None,
        };
        let reads = self.reads.remove(&account.tid);
        let zombie_to_come = account.tid == account.pid && reading.is_none();
        let mut migrations = None;
        let mut counted = false;
        if let Some(reading) = reading {
            sums.cpu_ns = reading.schedstat.cpu_ns;
            migrations = reading.migrations;
            counted = true;
        } else if let Some(reads) = reads
            && let Some(cpu_ns) = reads.refine(account.cpu_ns)
        {
            sums.cpu_ns = cpu_ns;
            counted = reads.complete();
            migrations = reads.sum().migrations.filter(|_| counted);
        }
        if !zombie_to_come && !counted {
            self.roles[role].uncounted.push(account.tid);
        }
        if zombie_to_come {
            self.booked_leaders.insert(account.pid, sums.cpu_ns);
        }
        let record = ThreadRecord {
            tid: account.tid,
            pid: account.pid,
            name: account.name,
            source: ThreadSource::Exit,
            nice: Some(account.nice),
            policy: static_priority(account.policy, seen.policy),
            cpus: seen.cpus,
            lived_ns: Some(account.elapsed_ns),
            usage: usage(sums, true, migrations),
            waits: seen.waits.finish(),
            absent: Absent::new(),
        };
        self.book(role, record, sums);
        if account.last {
            self.close(role, account.pid);
        }
    }

    fn note_end(&mut self, tid: u32) {
        let now = clock::monotonic_ns();
        if self.ended_ns.len() > PENDING_MAX {
            self.ended_ns.retain(|_, at| now - *at < MOMENT_NS);
        }
        self.ended_ns.insert(tid, now);
    }

    fn end_by_zombie(&mut self, role: usize, pid: u32, seen: Seen, reading: Final) {
        let (voluntary_switches, involuntary_switches) = reading.switches.unwrap_or_default();
        let sums = Sums {
            threads: 1,
            cpu_ns: reading.schedstat.cpu_ns,
            run_queue_ns: reading.schedstat.run_queue_ns,
            slices: reading.schedstat.slices,
            voluntary_switches,
            involuntary_switches,
        };
        let record = ThreadRecord {
            tid: pid,
            pid,
            name: reading.name,
            source: ThreadSource::Exit,
            nice: Some(reading.nice),
            policy: reading.policy,
            cpus: seen.cpus,
            lived_ns: self.lives.of(pid),
            usage: usage(sums, reading.switches.is_some(), reading.migrations),
            waits: seen.waits.finish(),
            absent: Absent::new(),
        };
        self.book(role, record, sums);
    }

    /// A zombie says more exactly what was booked at its exit.
    fn correct(&mut self, role: usize, pid: u32, booked_ns: u64, reading: &Final) {
        let ledger = &mut self.roles[role];
        let sums = match ledger.open.get_mut(&pid) {
            Some(sums) => sums,
            None => &mut ledger.closed,
        };
        sums.cpu_ns = sums.cpu_ns.saturating_sub(booked_ns) + reading.schedstat.cpu_ns;
        let listed = ledger.listed.iter_mut().rev();
        if let Some(record) = listed.into_iter().find(|record| record.tid == pid) {
            record.usage.cpu_ns = Some(reading.schedstat.cpu_ns);
            record.usage.migrations = reading.migrations;
        }
    }

    fn end_by_sample(&mut self, role: usize, tid: u32, seen: Seen) {
        let (voluntary_switches, involuntary_switches) = seen.switches.unwrap_or_default();
        let mut sums = Sums {
            threads: 1,
            cpu_ns: seen.schedstat.cpu_ns,
            run_queue_ns: seen.schedstat.run_queue_ns,
            slices: seen.schedstat.slices,
            voluntary_switches,
            involuntary_switches,
        };
        let mut migrations = None;
        if let Some(reads) = self.reads.remove(&tid).filter(Reads::complete)
            && reads.sum().cpu_ns >= sums.cpu_ns
        {
            sums.cpu_ns = reads.sum().cpu_ns;
            migrations = reads.sum().migrations;
        }
        self.roles[role].sampled_only += 1;
        let record = ThreadRecord {
            tid,
            pid: seen.pid,
            name: seen.name,
            source: ThreadSource::Sample,
            nice: seen.nice,
            policy: seen.policy,
            cpus: seen.cpus,
            lived_ns: self.lives.of(tid),
            usage: usage(sums, seen.switches.is_some(), migrations),
            waits: seen.waits.finish(),
            absent: Absent::new(),
        };
        self.book(role, record, sums);
    }

    fn book(&mut self, role: usize, mut record: ThreadRecord, sums: Sums) {
        if record.lived_ns.is_none() {
            let reason =
                "neither an exit account (taskstats) nor both its birth and its death came";
            record.absent.insert("lived_ns".into(), reason.into());
        }
        let ledger = &mut self.roles[role];
        match ledger.processes.contains(&record.pid) {
            true => ledger.open.entry(record.pid).or_default().add(sums),
            false => ledger.closed.add(sums),
        }
        ledger.listed.push(record);
        if ledger.listed.len() > 2 * self.listed_max + 64 {
            rank(&mut ledger.listed, self.listed_max);
        }
    }

    fn close(&mut self, role: usize, pid: u32) {
        let ledger = &mut self.roles[role];
        ledger.processes.remove(&pid);
        if let Some(sums) = ledger.open.remove(&pid) {
            ledger.closed.add(sums);
        }
    }
}

fn rank(listed: &mut Vec<ThreadRecord>, keep: usize) {
    listed.sort_by_key(|thread| (std::cmp::Reverse(thread.usage.cpu_ns), thread.tid));
    listed.truncate(keep);
}

/// Exit accounts lack the static priority; the last sample has it, if the class is the same.
fn static_priority(at_exit: Option<Policy>, sampled: Option<Policy>) -> Option<Policy> {
    let at_exit = at_exit?;
    match sampled {
        Some(sampled) if sampled.class == at_exit.class => Some(sampled),
        _ => Some(at_exit),
    }
}

fn usage(sums: Sums, switches: bool, migrations: Option<u64>) -> Usage {
    Usage {
        cpu_ns: Some(sums.cpu_ns),
        run_queue_ns: Some(sums.run_queue_ns),
        slices: Some(sums.slices),
        voluntary_switches: switches.then_some(sums.voluntary_switches),
        involuntary_switches: switches.then_some(sums.involuntary_switches),
        migrations,
        ..Usage::default()
    }
}
