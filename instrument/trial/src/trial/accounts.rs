//! What the kernel has counted: the accounts of threads as they exit, and a reading of a whole
//! role at the edge of a phase.

use std::collections::HashSet;

use concurve_clock as clock;
use concurve_probe::perf::{TreeCounter, TreeSamples};
use concurve_probe::proc_fs::ProcFs;
use concurve_probe::process;
use concurve_probe::taskstats::{Query, Received};
use concurve_probe::unless_gone;

use super::Trial;
use crate::census::BirthWatch;
use crate::hot_pace::HotPace;
use crate::ledger::{LAG_NS_MAX, RoleLedger, Sums};
use crate::phases::{Reading, SUMMED, Unbooked, UnbookedProcesses};
use crate::role::{self, Role};

/// How often the perf rings are emptied while threads come and go: they hold many times what all CPUs can
/// produce in that time.
const RINGS_INTERVAL_NS: u64 = 10_000_000;
/// And how often at least: to wake up costs much more than to look. Where many threads then begin to exit at
/// once, the rings still hold 50,000 exits a second and CPU.
const RINGS_INTERVAL_NS_MAX: u64 = 40_000_000;
/// Fewer new records than this in all rings are few.
const RECORDS_FEW: usize = 64;
/// So often the kernel is asked about a process of which it counts a thread twice.
const ASKED_MAX: u32 = 8;
const TWICE: &str = "a thread that was exiting is counted twice";

impl Trial {
    /// Receives pending exit accounts, the counts of exiting threads, and births and deaths. With
    /// `now_or_never`, exits are entered in the ledger without waiting for counts.
    pub fn take_exits(&mut self, now_or_never: bool) {
        let loaded = role::loaded(&self.roles);
        self.sampler.collect_waits(&mut self.ledger, &loaded);
        self.receive_exits();
        self.take_rings(clock::monotonic_ns());
        self.ledger.settle(now_or_never);
    }

    /// When the rings must be emptied next, if there are any.
    pub fn rings_due_ns(&self) -> Option<u64> {
        let mut roles = self.roles.iter();
        let any = roles
            .any(|role| role.counter.is_some() || role.lives.is_some() || role.samples.is_some());
        any.then_some(self.rings_taken_ns + self.rings_interval_ns.max(RINGS_INTERVAL_NS))
    }

    /// Receives the counts of exiting threads, births and deaths, and samples of where threads run, and says whether
    /// these go on.
    pub fn take_rings(&mut self, now: u64) {
        self.rings_taken_ns = now;
        let mut records = 0;
        for (index, role) in self.roles.iter_mut().enumerate() {
            if let Some(counter) = &mut role.counter {
                let per_thread = counter.reads_per_thread();
                let reads = counter.take_reads();
                records += reads.len();
                self.ledger.reads(reads, per_thread);
            }
            // Before what was mapped, so that no sample is younger.
            let cpu_before = clock::thread_cpu_ns();
            let sampled = role.samples.as_mut().map(TreeSamples::take);
            let mut samples_ns = clock::thread_cpu_ns() - cpu_before;
            let mut texts = Vec::new();
            if let Some(lives) = &mut role.lives {
                let mut lives = lives.take();
                texts = std::mem::take(&mut lives.texts);
                records += lives.lives.len();
                for life in lives.lives.iter().filter(|it| it.is_process_birth()) {
                    role.hot.forked(life.parent, life.pid);
                }
                self.ledger.live(&lives.lives);
                role.census.add(lives);
                self.ledger.roles[index].processes_born = role.census.processes_so_far();
            }
            if let Some(sampled) = sampled {
                let cpu_before = clock::thread_cpu_ns();
                role.hot.add(texts, sampled);
                samples_ns += clock::thread_cpu_ns() - cpu_before;
                // What this takes has a share of its own, by the length of windows.
                let threads = self.ledger.roles[index].living.len();
                pace_samples(role, &mut self.sampler.hot_paces[index], threads, now);
            }
            self.sampler.pace.cpu_ns += samples_ns;
        }
        let in_windows = self.sampler.hot_paces.iter().any(HotPace::is_in_part);
        self.rings_interval_ns = match records < RECORDS_FEW && !in_windows {
            true => (2 * self.rings_interval_ns).clamp(RINGS_INTERVAL_NS, RINGS_INTERVAL_NS_MAX),
            false => RINGS_INTERVAL_NS,
        };
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

/// Halves the part of the time in which a role is sampled, if its threads switch so often, and begins or ends a window
/// of it. Whatever the rings had is counted.
fn pace_samples(role: &mut Role, pace: &mut HotPace, threads: usize, now: u64) {
    let Some(samples) = &role.samples else {
        return;
    };
    let events = (threads * samples.cpus()) as u64;
    let elapsed_ns = now.saturating_sub(role.released_ns.unwrap_or(now));
    while pace.is_to_halve(elapsed_ns, events) {
        role.hot.halve(pace.halve());
    }
    if let Some(is_paused) = pace.turn(now, events) {
        // Where that is refused, samples go on as they did.
        let _ = samples.pause(is_paused);
    }
}

/// Reads the probes of one role, for the edges of its phases.
impl Trial {
    /// What a role has used so far. `now` is the time that the reading stands for.
    pub fn reading(&mut self, index: usize, now: u64) -> Reading {
        self.take_exits(true);
        let mut reading = Reading {
            at_ns: now,
            tally: self.sampler.waits.tally(index).clone(),
            ..Reading::default()
        };
        let found = self.sums_so_far(index).map_err(|error| error.to_string());
        match &found {
            Ok(found) => {
                reading.take_sums(found.sums, found.switches_known);
                if found.any_twice {
                    reading.lose_sums(TWICE);
                }
                // What children of an attached role had used before is perhaps booked later only.
                let is_attached = self.roles[index].attached.is_some();
                reading.cpus = (!is_attached).then_some(found.cpus);
            }
            Err(reason) => reading.miss(&SUMMED, reason),
        }
        reading.unbooked = self.unbooked(index, &found.unwrap_or_default());
        let role = &mut self.roles[index];
        match role.counter.as_mut().map(|counter| counter.read()) {
            Some(Ok(counts)) => {
                reading.migrations = counts.migrations;
                if counts.migrations.is_none() {
                    let reason = TreeCounter::NO_MIGRATIONS.to_owned();
                    reading.absent.insert("migrations".into(), reason);
                }
                reading.take_counter(counts.cpu_ns);
            }
            Some(Err(error)) => {
                reading
                    .absent
                    .insert("migrations".into(), error.to_string());
            }
            None => {
                let reason = role.counter_refusal.clone();
                let reason = reason.unwrap_or_else(|| "the role never started".into());
                reading.absent.insert("migrations".into(), reason);
            }
        }
        match role.cache_misses_so_far() {
            Some(Ok(misses)) => reading.cache_misses = Some(misses),
            Some(Err(reason)) => {
                reading.absent.insert("cache_misses".into(), reason);
            }
            None => {}
        }
        for name in [
            "user_ns",
            "system_ns",
            "minor_faults",
            "major_faults",
            "rss_bytes_max",
            "block_inputs",
            "block_outputs",
        ] {
            let reason = "read for whole lives only";
            reading.absent.insert(name.into(), reason.into());
        }
        reading.taken_ns = clock::monotonic_ns();
        reading
    }

    /// Sums over ended and living threads. The error says why processes or threads may be missing.
    fn sums_so_far(&mut self, index: usize) -> concurve_probe::Result<SumsSoFar> {
        self.find_processes(index)?;
        self.sums_of_known(index)
    }

    /// Reads once more what the known processes of attached roles have used: those that ended with the last client
    /// were taken apart meanwhile.
    pub fn read_attached_to_the_end(&mut self) {
        for index in 0..self.roles.len() {
            if self.roles[index].attached.is_none() {
                continue;
            }
            let found = self.sums_of_known(index).ok();
            if let Some(attached) = &mut self.roles[index].attached {
                attached.last_cpu_ns = found.map(|found| found.sums.cpu_ns);
            }
        }
    }

    /// The same of the processes that are known.
    fn sums_of_known(&mut self, index: usize) -> concurve_probe::Result<SumsSoFar> {
        let processes: Vec<u32> = self.ledger.roles[index].processes.iter().copied().collect();
        // Before the accounts: who ends meanwhile is in these alone.
        let whole = self.whole_so_far(index, &processes);
        let mut found = SumsSoFar::of(&self.host.proc_fs);
        let mut living = Vec::new();
        for pid in processes {
            let process = match self.ask_about(pid) {
                Some(Asked::Once(process)) => Some(process),
                Some(Asked::Twice(process)) => {
                    found.any_twice = true;
                    Some(process)
                }
                None => self.threads_so_far(index, pid, &mut found)?,
            };
            match process {
                Some(process) => living.push((pid, process)),
                None => self.end_gone(index, pid),
            }
        }
        if self.roles[index].attached.is_some() {
            // The kernel has nothing more of a process that exited meanwhile: its account says what it used.
            self.take_exits(true);
        }
        let roster = &mut self.ledger.roles[index];
        let closed = roster.closed();
        let mut sums = closed;
        // One whose account has come meanwhile is among the closed ones.
        let living = living.iter().filter(|it| roster.processes.contains(&it.0));
        living.for_each(|it| sums.add(it.1));
        found.sums = sums.minus(roster.before);
        if let Some(whole) = whole {
            let beyond_ns = match whole {
                Whole::Ended(cpu_ns) => cpu_ns.saturating_sub(closed.cpu_ns),
                Whole::All(cpu_ns) => cpu_ns.saturating_sub(found.sums.cpu_ns),
            };
            found.sums.cpu_ns += roster.raise_beyond_accounts(beyond_ns);
        }
        Ok(found)
    }

    /// CPU time of an attached role to the very end of its processes: by those that waited for them, or by their clocks
    /// until then, or by its cgroup.
    fn whole_so_far(&self, index: usize, processes: &[u32]) -> Option<Whole> {
        let attached = self.roles[index].attached.as_ref()?;
        if !attached.is_tree() {
            return attached.group_since_ns().map(Whole::All);
        }
        let stat = |pid: &u32| self.host.proc_fs.stat(*pid).ok();
        let now = processes.iter().filter_map(stat);
        let now: Vec<(u32, u64)> = now.map(|stat| (stat.pid, stat.children_ticks)).collect();
        let ticks = self.ledger.roles[index].waited_since(&now);
        // Asked last: who is waited for meanwhile is in neither.
        let present = self.host.proc_fs.descendants(attached.pid).found;
        let ended = present
            .into_iter()
            .filter(|pid| self.ledger.role_of(*pid) == Some(index) && !processes.contains(pid));
        let unwaited_ns: u64 = ended.filter_map(process::cpu_ns).sum();
        Some(Whole::Ended(ticks * process::tick_ns() + unwaited_ns))
    }

    /// Sums over the threads of a process that lives, or is a zombie that its parent will reap; none if it is
    /// gone. Also notes in `found` what these sums lack.
    fn threads_so_far(
        &mut self,
        index: usize,
        pid: u32,
        found: &mut SumsSoFar,
    ) -> concurve_probe::Result<Option<Sums>> {
        let begun_ns = clock::monotonic_ns();
        let threads = unless_gone(self.host.proc_fs.threads(pid))?;
        let threads: HashSet<u32> = threads.into_iter().flatten().collect();
        if threads.is_empty() {
            return Ok(None);
        }
        self.end_vanished(index, pid, &threads);
        let mut process = self.ledger.roles[index].ended_of(pid);
        found.switches_known &= self.add_threads(pid, &threads, &mut process)?;
        // It has counted threads too that ended between two samples.
        let clock_ns = process::cpu_ns(pid).unwrap_or(0);
        let took_ns = clock::monotonic_ns() - begun_ns;
        found.note_unseen(clock_ns, process.cpu_ns, threads.len(), took_ns);
        process.cpu_ns = process.cpu_ns.max(clock_ns);
        let stat = unless_gone(self.host.proc_fs.stat(pid))?;
        let children_ticks = stat.map_or(0, |stat| stat.children_ticks);
        found.children_ns += children_ticks * process::tick_ns();
        Ok(Some(process))
    }

    /// Ends a process that its own parent has waited for. Its exit account may have come since they were received.
    fn end_gone(&mut self, index: usize, pid: u32) {
        self.receive_exits();
        self.ledger.settle(true);
        if self.ledger.roles[index].processes.contains(&pid) {
            self.ledger.end_unreaped(index, pid);
        }
    }

    /// Ends the threads of a process that have ended since they were sampled, where no account says so.
    fn end_vanished(&mut self, index: usize, pid: u32, threads: &HashSet<u32>) {
        let living = self.ledger.roles[index].living.iter();
        let vanished = living.filter(|(tid, seen)| seen.pid == pid && !threads.contains(tid));
        let vanished: Vec<u32> = vanished.map(|(tid, _)| *tid).collect();
        for tid in vanished {
            self.ledger.vanished(index, tid);
        }
    }

    /// What a living process has used so far, its ended threads included, if the kernel says it.
    pub fn process_so_far(&mut self, pid: u32) -> Option<Sums> {
        match self.ask_about(pid)? {
            Asked::Once(sums) => Some(sums),
            Asked::Twice(_) => None,
        }
    }

    fn ask_about(&mut self, pid: u32) -> Option<Asked> {
        let (_, query) = self.host.taskstats.as_mut()?;
        Asked::of(|| ask(query, pid), || process::cpu_ns(pid))
    }

    /// Finds the role's present processes, if there may be new ones. The error says why some may be missing.
    fn find_processes(&mut self, index: usize) -> concurve_probe::Result<()> {
        self.find_attached(index)?;
        let born = self.ledger.roles[index].processes_born;
        let role = &mut self.roles[index];
        let Some(pid) = role.pid.filter(|_| role.births.has_news(born)) else {
            return Ok(());
        };
        let descendants = self.host.proc_fs.descendants(pid);
        for descendant in &descendants.found {
            if self.ledger.role_of(*descendant).is_none() {
                self.ledger.adopt(*descendant, index);
            }
        }
        let complete = descendants.complete();
        if complete.is_err() {
            // The next reading looks again.
            self.roles[index].births = BirthWatch::default();
        }
        complete.map(drop)
    }

    /// Adds what these threads of a process have used; whether the switches of all are known.
    fn add_threads(
        &self,
        pid: u32,
        threads: &HashSet<u32>,
        sums: &mut Sums,
    ) -> concurve_probe::Result<bool> {
        let proc_fs = &self.host.proc_fs;
        let mut switches = true;
        for tid in threads {
            let Some(schedstat) = unless_gone(proc_fs.thread_schedstat(pid, *tid))? else {
                continue;
            };
            let status = proc_fs.thread_status(pid, *tid).unwrap_or_default();
            let counts = status.voluntary_switches.zip(status.involuntary_switches);
            switches &= counts.is_some();
            sums.add(Sums::read(&schedstat, counts));
        }
        Ok(switches)
    }

    /// What has ended so far in a role of which no account says what it used at last, and why there is none;
    /// nothing where the kernel sends an account of each.
    fn unbooked(&self, index: usize, found: &SumsSoFar) -> Option<Unbooked> {
        let why = self.ledger.exits_missing()?;
        let role = &self.roles[index];
        let deaths = role.lives.is_some().then(|| role.census.deaths());
        Some(found.unbooked(&self.ledger.roles[index], deaths, why))
    }
}

/// What the kernel says of a living process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Once(Sums),
    /// A thread that exits is in the sums twice, and keeps being so; the CPU time is that of the process's clock.
    Twice(Sums),
}

impl Asked {
    /// Asks until no thread is counted twice: the kernel adds an exiting thread to the ended ones of its process a while
    /// before it no longer takes it for a living one. The clock of the process has each thread once, so what is read of
    /// it later is no less than right sums. What is counted twice and unnoticed is less than what the process has used
    /// since its last tick.
    fn of(
        mut ask: impl FnMut() -> Option<Sums>,
        mut clock_ns: impl FnMut() -> Option<u64>,
    ) -> Option<Self> {
        let mut asked = 0;
        loop {
            let sums = ask()?;
            asked += 1;
            match clock_ns().filter(|ns| sums.cpu_ns > *ns) {
                None => return Some(Self::Once(sums)),
                Some(cpu_ns) if asked == ASKED_MAX => {
                    return Some(Self::Twice(Sums { cpu_ns, ..sums }));
                }
                Some(_) => std::thread::yield_now(),
            }
        }
    }
}

/// CPU time of an attached role that counts what its processes used after they had sent their accounts.
enum Whole {
    /// Of those that have ended, in their whole lives.
    Ended(u64),
    /// Of all, since the role was attached.
    All(u64),
}

/// What a role has used so far.
#[derive(Debug, Default)]
struct SumsSoFar {
    sums: Sums,
    /// Whether the switches of all its threads are known.
    switches_known: bool,
    /// Whether a thread is in the sums twice.
    any_twice: bool,
    /// CPU time that the clocks of its processes have and no known thread, and how much of it may be that of
    /// threads which run now.
    unseen_ns: u64,
    lag_ns: u64,
    /// CPU time of ended children, as their parents know it that live.
    children_ns: u64,
    cpus: usize,
}

impl SumsSoFar {
    fn of(proc_fs: &ProcFs) -> Self {
        let cpus = proc_fs.cpus_online().map_or(usize::MAX, |cpus| cpus.len());
        Self {
            switches_known: true,
            cpus,
            ..Self::default()
        }
    }

    /// Takes the clock of a process, and what its known threads have used, so many of which live. Both were read
    /// within `took_ns`, the clock last: of many threads, the first have run on by then.
    fn note_unseen(&mut self, clock_ns: u64, known_ns: u64, threads: usize, took_ns: u64) {
        self.unseen_ns += clock_ns.saturating_sub(known_ns);
        self.lag_ns += threads.min(self.cpus) as u64 * (LAG_NS_MAX + took_ns);
    }

    /// What has ended without an account, where the ledger of the role has the ended processes and these sums have
    /// the living ones. `deaths` counts all threads that ended, where deaths are reported.
    fn unbooked(&self, roster: &RoleLedger, deaths: Option<u64>, why: &'static str) -> Unbooked {
        Unbooked {
            threads: match deaths {
                Some(deaths) => deaths.saturating_sub(roster.booked_exactly),
                None => roster.sampled_only + roster.unsampled_processes,
            },
            // Births and deaths are complete: then no thread was unseen.
            unseen_ns: match deaths {
                Some(_) => 0,
                None => roster.unseen_ns + self.unseen_ns,
            },
            lag_ns: self.lag_ns,
            processes: UnbookedProcesses {
                ended: roster.unbooked_processes,
                children_ns: roster.children_ns + self.children_ns,
            },
            why,
        }
    }
}

fn ask(query: &mut Query, pid: u32) -> Option<Sums> {
    query.process(pid).ok().map(|account| Sums::of(&account))
}

#[cfg(test)]
mod tests {
    //! Threads that ended unseen, by the clocks of their processes, and children that were waited for.

    use super::*;
    use crate::ledger::{Final, Ledger, Seen};
    use crate::phases::difference;

    const MS: u64 = 1_000_000;
    const WHY: &str = "no exit accounts (taskstats)";

    fn sums_of(cpu_ns: u64) -> Option<Sums> {
        let sums = Sums {
            cpu_ns,
            slices: 7,
            ..Sums::default()
        };
        Some(sums)
    }

    /// What is said of a process whose clock is at 30 ms, if the kernel answers with each of these in turn.
    fn asked(answers_ms: &[u64], times: &mut usize) -> Option<Asked> {
        let mut answers = answers_ms.iter().cycle();
        let ask = || {
            *times += 1;
            sums_of(answers.next()? * MS)
        };
        Asked::of(ask, || Some(30 * MS))
    }

    #[test]
    fn a_process_of_which_a_thread_is_counted_twice_is_asked_about_again() {
        let mut times = 0;
        let found = asked(&[55, 55, 29], &mut times);
        assert_eq!((found, times), (sums_of(29 * MS).map(Asked::Once), 3));
        let always = asked(&[55], &mut times);
        assert_eq!(always, sums_of(30 * MS).map(Asked::Twice));
        // A process that is gone has no clock.
        let gone = Asked::of(|| sums_of(55 * MS), || None);
        assert_eq!(gone, sums_of(55 * MS).map(Asked::Once));
        assert_eq!(Asked::of(|| None, || Some(1)), None);
    }

    /// The ledger of a role of these processes, of which each first thread has been seen.
    fn ledger_of(pids: &[u32]) -> Ledger {
        let mut ledger = Ledger::new(vec!["server".into()], 10, false);
        for pid in pids {
            ledger.adopt(*pid, 0);
            let seen = Seen {
                pid: *pid,
                ..Seen::default()
            };
            ledger.see(0, *pid, seen);
        }
        ledger
    }

    /// Reaps a process whose clock has so much beyond its first thread.
    fn reap(ledger: &mut Ledger, pid: u32, unseen_ns: u64) {
        let zombie = Final {
            name: "server".into(),
            nice: 0,
            policy: None,
            schedstat: Default::default(),
            switches: None,
            migrations: None,
            process_ns: Some(unseen_ns),
            children_ns: 0,
        };
        ledger.read_final(pid, zombie);
        ledger.reap(pid);
    }

    /// What is known of living processes of one thread each, whose clocks have so much beyond these.
    fn living(unseen_ns: &[u64]) -> SumsSoFar {
        let mut found = SumsSoFar {
            cpus: 4,
            ..SumsSoFar::default()
        };
        for unseen_ns in unseen_ns {
            found.note_unseen(*unseen_ns, 0, 1, 0);
        }
        found
    }

    /// A reading without counts of deaths.
    fn reading(ledger: &Ledger, found: &SumsSoFar) -> Reading {
        Reading {
            cpu_ns: Some(0),
            slices: Some(0),
            unbooked: Some(found.unbooked(&ledger.roles[0], None, WHY)),
            ..Reading::default()
        }
    }

    #[test]
    fn a_thread_that_ended_unseen_is_missing_after_its_process_was_reaped() {
        let mut ledger = ledger_of(&[10]);
        let begin = reading(&ledger, &living(&[0]));
        reap(&mut ledger, 10, 60 * MS);
        let usage = difference(&begin, &reading(&ledger, &living(&[])));
        assert_eq!((usage.cpu_ns, usage.slices), (Some(0), None));
        assert!(usage.absent["slices"].contains("threads ended meanwhile"));
    }

    #[test]
    fn a_process_that_is_reaped_hides_no_unseen_thread_of_another() {
        let mut ledger = ledger_of(&[10, 20]);
        let begin = reading(&ledger, &living(&[60 * MS, 0]));
        reap(&mut ledger, 10, 60 * MS);
        // What was unseen before the phase is none of it.
        let usage = difference(&begin, &reading(&ledger, &living(&[0])));
        assert_eq!(usage.slices, Some(0));
        let usage = difference(&begin, &reading(&ledger, &living(&[60 * MS])));
        assert_eq!(usage.slices, None);
    }

    #[test]
    fn threads_that_run_while_others_are_read_have_not_ended() {
        let ledger = ledger_of(&[]);
        let begin = reading(&ledger, &living(&[]));
        // Of 1500 threads, which took 35 ms to read, four ran all the time; their accounts are a tick old, too.
        let used_ns = 4 * (35 + 10) * MS;
        for (took_ns, slices) in [(35 * MS, Some(0)), (0, None)] {
            let mut found = living(&[]);
            found.note_unseen(used_ns, 0, 1500, took_ns);
            let usage = difference(&begin, &reading(&ledger, &found));
            assert_eq!(usage.slices, slices);
        }
    }

    #[test]
    fn children_that_were_waited_for_count_at_least_as_far_as_ticks_show_it() {
        let mut ledger = ledger_of(&[10, 20, 30]);
        let roster = &mut ledger.roles[0];
        for (pid, ticks) in [(10, 500), (20, 7), (30, 0)] {
            roster.waited_before(pid, ticks);
        }
        let all = |first| [(10, first), (20, 7), (30, 0)];
        assert_eq!(roster.waited_since(&all(500)), 0);
        assert_eq!(roster.waited_since(&all(502)), 0, "a part of a tick each");
        assert_eq!(roster.waited_since(&all(530)), 28);
        let born = [(10, 530), (20, 7), (30, 0), (40, 3)];
        assert_eq!(roster.waited_since(&born), 28 + 3);
        // The first one has waited for the second: what that had waited for before is in its counter now.
        assert_eq!(roster.waited_since(&[(10, 530), (30, 0)]), 28 - 9);
        assert_eq!(roster.raise_beyond_accounts(28), 28);
        assert_eq!(
            roster.raise_beyond_accounts(20),
            28,
            "what was used stays used"
        );
    }
}
