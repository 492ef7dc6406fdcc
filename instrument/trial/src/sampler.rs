//! Samples the threads of all roles in small steps, within its share of CPU time.

use std::collections::HashMap;

use concurve_clock as clock;
use concurve_probe::proc_fs::{LastPidFile, ProcFs, SchedstatFile};
use concurve_probe::schedstat::Schedstat;
use concurve_probe::{ProbeError, control, open_files, process, unless_gone};
use concurve_wire::spec::Sampling;

use crate::census::BirthWatch;
use crate::convert;
use crate::frequency::FrequencyWatch;
use crate::hot_pace::HotPace;
use crate::ledger::{Ledger, Seen};
use crate::orphans;
use crate::quota::QuotaWatch;
use crate::thread_timelines::Following;
use crate::timeline::Timeline;
use crate::waits::sampling::WaitSampling;
use crate::waits::thread::SampledThread;

/// Threads read before the event loop runs again: this bounds how late an exit, or the edge of a phase, is
/// noticed.
const STEP: usize = 16;
/// A thread's name, nice value, policy and CPUs are read again every so many readings.
const REFRESH: u32 = 16;
/// A thread whose account was the same in so many readings rests: it waits as it did. Where a runtime has
/// many such threads, samples of the others can come much more often.
const RESTING: u32 = 2;
/// What a thread that rests waits for is read again at every so many readings.
const LOOK_AGAIN: u32 = 8;
/// Share of the descriptors that the runner may have, for the accounts of threads that are kept open here. Those
/// of further threads are opened for each reading.
const SHARE_OF_DESCRIPTORS: u64 = 4;

/// A sampler over all roles.
#[derive(Debug)]
pub struct Sampler {
    pub pace: Pace,
    files: HashMap<(usize, u32), ThreadFile>,
    files_max: usize,
    births: Vec<BirthWatch>,
    last_pid_file: Option<LastPidFile>,
    last_pid: Option<u32>,
    work: Vec<Work>,
    counts: Vec<u64>,
    pub waits: WaitSampling,
    pub timeline: Timeline,
    pub following: Following,
    pub quotas: Vec<QuotaWatch>,
    pub hot_paces: Vec<HotPace>,
    pub frequency: FrequencyWatch,
    running: bool,
}

#[derive(Debug)]
struct ThreadFile {
    pid: u32,
    /// None of a thread whose account is opened for each reading.
    file: Option<SchedstatFile>,
    readings: u32,
    last: Schedstat,
    /// So many readings were the same as the one before them.
    unchanged: u32,
}

impl ThreadFile {
    /// Its account now; none if it has ended. The error says why it is not known.
    fn read(&self, proc_fs: &ProcFs, tid: u32) -> concurve_probe::Result<Option<Schedstat>> {
        match &self.file {
            Some(file) => Ok(file.read()),
            None => unless_gone(proc_fs.thread_schedstat(self.pid, tid)),
        }
    }

    /// Has it not run since some time? Its account also stays the same while it was woken and waits for a CPU,
    /// so this is said of threads that have not run for longer, and not of every sample.
    fn rests(&self) -> bool {
        self.unchanged >= RESTING && !self.readings.is_multiple_of(LOOK_AGAIN)
    }
}

#[derive(Debug)]
enum Work {
    Orphans,
    Process {
        role: usize,
        pid: u32,
        may_have_children: bool,
    },
    /// A thread of a process that has no file yet.
    NewThread {
        role: usize,
        pid: u32,
        tid: u32,
    },
    Thread(usize, u32),
}

impl Work {
    /// A process that is new itself.
    fn new_process(role: usize, pid: u32) -> Self {
        Self::Process {
            role,
            pid,
            may_have_children: true,
        }
    }
}

impl Sampler {
    pub fn new(limits: Sampling, proc_fs: &ProcFs, roles: usize) -> Self {
        Self {
            pace: Pace::new(limits),
            files: HashMap::new(),
            files_max: (open_files::limit() / SHARE_OF_DESCRIPTORS) as usize,
            births: vec![BirthWatch::default(); roles],
            last_pid_file: proc_fs.open_last_pid().ok(),
            last_pid: None,
            work: Vec::new(),
            counts: vec![0; roles],
            waits: WaitSampling::new(roles),
            timeline: Timeline::default(),
            following: Following::new(limits.thread_timelines),
            frequency: FrequencyWatch::default(),
            hot_paces: (0..roles as u64)
                .map(|role| HotPace::new(clock::monotonic_ns() + role))
                .collect(),
            quotas: std::iter::repeat_with(QuotaWatch::default)
                .take(roles)
                .collect(),
            running: false,
        }
    }

    /// Starts the schedule, at the first release and again at each later one.
    pub fn start(&mut self, now: u64) {
        self.pace.start(now);
        self.following.begin(now);
    }

    /// When there is something to do: at once inside a sample.
    pub fn due_ns(&self) -> u64 {
        if self.running { 0 } else { self.pace.next_ns() }
    }

    /// Does the next part of a sample.
    pub fn step(&mut self, ledger: &mut Ledger, proc_fs: &ProcFs, now: u64) {
        let cpu_before = clock::thread_cpu_ns();
        if !self.running {
            self.begin(ledger);
        }
        for _ in 0..STEP {
            match self.work.pop() {
                Some(Work::Orphans) => self.find_orphans(ledger, proc_fs),
                Some(Work::Process {
                    role,
                    pid,
                    may_have_children,
                }) => {
                    self.list(ledger, proc_fs, role, pid);
                    if may_have_children {
                        self.find_children(ledger, proc_fs, role, pid);
                    }
                }
                Some(Work::NewThread { role, pid, tid }) => {
                    if self.open(ledger, proc_fs, role, pid, tid) {
                        self.read(ledger, proc_fs, role, tid);
                    }
                }
                Some(Work::Thread(role, tid)) => self.read(ledger, proc_fs, role, tid),
                None => break,
            }
        }
        let done = self.work.is_empty();
        if done {
            self.finish(ledger, proc_fs, now);
            // They say nothing of a trial that ends at once, and cost one more than its own readings.
            if self.pace.samples > 0 {
                self.read_surroundings(ledger, proc_fs, now);
            }
        }
        let once = self.quotas.iter_mut().map(QuotaWatch::take_looking_cpu_ns);
        self.pace.cpu_ns += clock::thread_cpu_ns() - cpu_before - once.sum::<u64>();
        if done {
            self.pace.sampled(now);
        }
    }

    /// Closes what is kept open of threads: there will be no more samples, and the end of the trial needs
    /// descriptors.
    pub fn release(&mut self) {
        self.files.clear();
        self.work.clear();
        self.waits.release();
    }

    /// Whether a sample has begun that is not complete.
    pub fn is_under_way(&self) -> bool {
        self.running
    }

    /// Counts the wait samples that have arrived; goroutines of those roles alone that have work (`loaded`).
    pub fn collect_waits(&mut self, ledger: &mut Ledger, loaded: &[bool]) {
        self.pace.cpu_ns += self.waits.collect(ledger, &mut self.following, loaded);
    }

    fn begin(&mut self, ledger: &Ledger) {
        self.running = true;
        self.counts.fill(0);
        // An exit that is accounted for ends a thread without its file.
        let is_alive = |(role, tid): &(usize, u32)| ledger.roles[*role].living.contains_key(tid);
        self.files.retain(|thread, _| is_alive(thread));
        let last_pid = self.last_pid_file.as_ref().and_then(LastPidFile::read);
        // If no task was created on this machine since, none was in the roles.
        let quiet = last_pid.is_some() && last_pid == self.last_pid;
        self.last_pid = last_pid;
        for (role, roster) in ledger.roles.iter().enumerate() {
            let threads = roster.living.keys().map(|tid| Work::Thread(role, *tid));
            self.work.extend(threads);
            if !quiet {
                let may_have_children = self.births[role].is_to_look(roster.processes_born);
                let processes = roster.processes.iter().map(|pid| Work::Process {
                    role,
                    pid: *pid,
                    may_have_children,
                });
                self.work.extend(processes);
            }
        }
        if !quiet {
            self.work.push(Work::Orphans);
        }
    }

    /// Assigns new orphans, which are children of the runner, to their roles.
    fn find_orphans(&mut self, ledger: &mut Ledger, proc_fs: &ProcFs) {
        for (pid, role) in orphans::unclaimed_children(ledger, proc_fs) {
            ledger.adopt(pid, role);
            self.work.push(Work::new_process(role, pid));
        }
    }

    /// Looks for new threads of a process.
    fn list(&mut self, ledger: &mut Ledger, proc_fs: &ProcFs, role: usize, pid: u32) {
        let Ok(threads) = proc_fs.threads(pid) else {
            return;
        };
        let is_new = |tid: &u32| !ledger.roles[role].living.contains_key(tid);
        let threads = threads.into_iter().filter(is_new);
        self.work
            .extend(threads.map(|tid| Work::NewThread { role, pid, tid }));
    }

    /// Opens the account of a thread; false if it has ended.
    fn open(&mut self, ledger: &Ledger, proc_fs: &ProcFs, role: usize, pid: u32, tid: u32) -> bool {
        if ledger.just_ended(tid) {
            return false;
        }
        let file = match self.files.len() < self.files_max {
            true => proc_fs.open_schedstat(pid, tid),
            false => Err(ProbeError::Unavailable("enough are open".into())),
        };
        let file = match unless_gone(file) {
            Ok(None) => return false,
            Ok(file) => file,
            Err(_) => None,
        };
        let file = ThreadFile {
            pid,
            file,
            readings: 0,
            last: Schedstat::default(),
            unchanged: 0,
        };
        self.files.insert((role, tid), file);
        true
    }

    /// Looks for new children of a process, in a file of each of its threads.
    fn find_children(&mut self, ledger: &mut Ledger, proc_fs: &ProcFs, role: usize, pid: u32) {
        for child in proc_fs.children(pid).unwrap_or_default() {
            if ledger.role_of(child).is_none() {
                ledger.adopt(child, role);
                self.work.push(Work::new_process(role, child));
            }
        }
    }

    fn read(&mut self, ledger: &mut Ledger, proc_fs: &ProcFs, role: usize, tid: u32) {
        let Some(thread) = self.files.get_mut(&(role, tid)) else {
            return;
        };
        let schedstat = match thread.read(proc_fs, tid) {
            Ok(Some(schedstat)) => schedstat,
            Ok(None) => {
                self.files.remove(&(role, tid));
                ledger.vanished(role, tid);
                return;
            }
            // Nothing is known of it now; the next sample asks again.
            Err(_) => return,
        };
        self.counts[role] += 1;
        let pid = thread.pid;
        let refresh = thread.readings % REFRESH == 0;
        thread.readings += 1;
        thread.unchanged = match thread.last == schedstat {
            true => thread.unchanged + 1,
            false => 0,
        };
        if thread.readings == 1 {
            self.following.begins(role, tid);
        }
        self.following.ran(role, tid, thread.last, schedstat);
        self.hot_paces[role].ran(thread.last, schedstat);
        thread.last = schedstat;
        let mut seen = match ledger.roles[role].living.remove(&tid) {
            Some(seen) => seen,
            None if thread.readings == 1 && !ledger.just_ended(tid) => Seen::default(),
            // Its exit is accounted for; the file of a zombie can still be read.
            None => return,
        };
        seen.pid = pid;
        seen.schedstat = schedstat;
        if refresh {
            if let Ok(stat) = proc_fs.thread_stat(pid, tid) {
                if thread.readings == 1 && matches!(stat.state, 'Z' | 'X') {
                    self.files.remove(&(role, tid));
                    return;
                }
                seen.name = stat.name;
                seen.nice = Some(stat.nice);
                seen.policy = stat.policy.map(convert::policy);
            }
            seen.cpus = control::affinity(tid).ok().or(seen.cpus);
        }
        if !ledger.exits_granted
            && let Ok(status) = proc_fs.thread_status(pid, tid)
        {
            seen.switches = status.voluntary_switches.zip(status.involuntary_switches);
        }
        ledger.see(role, tid, seen);
    }

    fn finish(&mut self, ledger: &mut Ledger, proc_fs: &ProcFs, now: u64) {
        self.running = false;
        self.following.sampled(now);
        let spent_ns = self.waits.sites_cpu_ns().unwrap_or_default();
        let granted_ns = self.pace.for_sites_ns(now, spent_ns);
        self.waits
            .request(self.known_threads(), granted_ns, proc_fs);
        for (roster, count) in ledger.roles.iter_mut().zip(&self.counts) {
            roster.threads_peak = roster.threads_peak.max(*count);
            if roster.processes.len() > 1 {
                let pages: u64 = roster
                    .processes
                    .iter()
                    .filter_map(|pid| Some(proc_fs.stat(*pid).ok()?.rss_pages))
                    .sum();
                let bytes = pages * process::page_bytes();
                roster.rss_bytes_tree_max = roster.rss_bytes_tree_max.max(Some(bytes));
            }
        }
    }

    /// Reads how busy the CPUs are, how fast they run, and how the quotas of the roles hold them back.
    fn read_surroundings(&mut self, ledger: &Ledger, proc_fs: &ProcFs, now: u64) {
        self.timeline.read_if_due(proc_fs);
        for (roster, quota) in ledger.roles.iter().zip(&mut self.quotas) {
            quota.sample(roster.processes.iter().copied(), proc_fs);
        }
        self.frequency.sample(now);
    }

    /// Threads that an earlier sample has seen. For a thread that is seen only once, the cost of
    /// opening its file would not be justified.
    fn known_threads(&self) -> Vec<SampledThread> {
        let known = self.files.iter().filter(|(_, thread)| thread.readings > 1);
        let thread = |((role, tid), thread): (&(usize, u32), &ThreadFile)| SampledThread {
            role: *role,
            pid: thread.pid,
            tid: *tid,
            rests: thread.rests(),
        };
        known.map(thread).collect()
    }
}

/// CPU time that may be spent in advance of the share, so that short programs are sampled too: so much at
/// once, and this share of the first time on top.
const ALLOWANCE_NS: u64 = 300_000;
const EARLY_SHARE: f64 = 0.01;
const EARLY_NS: u64 = 170_000_000;
const FIRST_INTERVAL_NS: u64 = 1_000_000;
/// Copies of stacks have this part of the share, however much other samples take.
const LEAST_PART_FOR_SITES: u64 = 8;
/// CPU time that they may take at once.
const SITES_NS_MAX: u64 = 1_000_000;

/// When samples are due, and how much CPU time they took.
#[derive(Debug)]
pub struct Pace {
    limits: Sampling,
    started_ns: u64,
    next_ns: u64,
    interval_ns: u64,
    /// Samples that were completed.
    pub samples: u64,
    pub cpu_ns: u64,
    first_ns: u64,
    last_ns: u64,
}

impl Pace {
    pub fn new(limits: Sampling) -> Self {
        Self {
            limits,
            started_ns: 0,
            next_ns: u64::MAX,
            interval_ns: FIRST_INTERVAL_NS,
            samples: 0,
            cpu_ns: 0,
            first_ns: 0,
            last_ns: 0,
        }
    }

    /// A role was released: the first sample follows soon.
    pub fn start(&mut self, now: u64) {
        if self.started_ns == 0 {
            self.started_ns = now;
        }
        self.interval_ns = FIRST_INTERVAL_NS.min(self.limits.interval_ns_min);
        self.next_ns = now + self.interval_ns;
    }

    /// When the next sample is due.
    pub fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// Mean time between samples, if there were two.
    pub fn mean_interval_ns(&self) -> Option<u64> {
        let intervals = self.samples.checked_sub(1).filter(|count| *count > 0)?;
        Some((self.last_ns - self.first_ns) / intervals)
    }

    /// CPU time that copying stacks may take in the next sample, by what it took so far: half of what other
    /// samples left of the share, and at least a part of the share in the long run.
    pub fn for_sites_ns(&self, now: u64, spent_ns: u64) -> u64 {
        let elapsed_ns = now.saturating_sub(self.started_ns);
        let earned_ns = (elapsed_ns as f64 * self.limits.cpu_share_max) as u64;
        let left_ns = earned_ns.saturating_sub(self.cpu_ns) / 2;
        let least_ns = (earned_ns / LEAST_PART_FOR_SITES).saturating_sub(spent_ns);
        left_ns.max(least_ns).min(SITES_NS_MAX)
    }

    /// A sample was completed. The next comes after twice the last interval until the shortest
    /// allowed is reached, and not before the CPU time spent so far is within the share.
    pub fn sampled(&mut self, now: u64) {
        self.samples += 1;
        self.last_ns = now;
        if self.samples == 1 {
            self.first_ns = now;
        }
        self.interval_ns = (self.interval_ns * 2).min(self.limits.interval_ns_min);
        let earned_ns = self.started_ns + self.earned_after_ns();
        self.next_ns = (now + self.interval_ns).max(earned_ns);
    }

    /// After which time the CPU time spent so far is within what may be spent until then.
    fn earned_after_ns(&self) -> u64 {
        let over_ns = self.cpu_ns.saturating_sub(ALLOWANCE_NS) as f64;
        let share = self.limits.cpu_share_max;
        let early_ns = over_ns / (share + EARLY_SHARE);
        match early_ns <= EARLY_NS as f64 {
            true => early_ns as u64,
            false => ((over_ns - EARLY_SHARE * EARLY_NS as f64) / share) as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEGIN_NS: u64 = 1_000_000_000;

    /// After a second the share is 10 ms.
    fn pace(cpu_ns: u64) -> Pace {
        let mut pace = Pace::new(Sampling {
            interval_ns_min: 10_000_000,
            cpu_share_max: 0.01,
            thread_timelines: false,
        });
        pace.start(BEGIN_NS);
        pace.cpu_ns = cpu_ns;
        pace
    }

    #[test]
    fn short_trials_may_be_sampled_for_more_of_their_time() {
        let after_ms = |cpu_us: u64| pace(cpu_us * 1000).earned_after_ns() as f64 / 1e6;
        assert_eq!(after_ms(300), 0.0);
        // 1 % of the share, and 1 % on top, until 170 ms.
        assert!((after_ms(1300) - 50.0).abs() < 1e-3);
        assert!((after_ms(3700) - 170.0).abs() < 1e-3);
        assert!((after_ms(4700) - 270.0).abs() < 1e-3);
        assert!((after_ms(12_000) - 1000.0).abs() < 1e-3);
    }

    #[test]
    fn copies_of_stacks_get_half_of_what_is_left_and_a_part_in_any_case() {
        let after = |cpu_ns, spent_ns| pace(cpu_ns).for_sites_ns(2 * BEGIN_NS, spent_ns);
        assert_eq!(after(9_000_000, 1_000_000), 500_000);
        assert_eq!(after(10_500_000, 1_100_000), 150_000);
        assert_eq!(after(10_500_000, 2_000_000), 0);
        assert_eq!(after(0, 0), SITES_NS_MAX);
        assert_eq!(pace(0).for_sites_ns(BEGIN_NS, 0), 0);
    }
}
