//! Phases of a role, which its program or a client of it marks: a reading at each edge, and the
//! difference between the two.

use std::collections::BTreeSet;

use concurve_reporter::line::{Edge, PhaseLine};
use concurve_wire::record::{Absent, PhaseRecord, Usage, Waits};

use crate::ledger::{LAG_NS_MAX, Sums};
use crate::waits::Tally;

/// The readings of the probes of a role at one time; none where a source is missing.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub at_ns: u64,
    /// When the probes had been read: on a busy machine, later than `at_ns`.
    pub read_ns: u64,
    /// When nothing more was read for it.
    pub taken_ns: u64,
    /// How many CPUs the role can have used since the reading before, if nothing was used earlier.
    pub cpus: Option<usize>,
    pub cpu_ns: Option<u64>,
    /// Whether that is of a counter of the whole tree, which has what ended in it, too.
    pub cpu_counted: bool,
    pub run_queue_ns: Option<u64>,
    pub slices: Option<u64>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub migrations: Option<u64>,
    pub cache_misses: Option<u64>,
    /// What its threads were doing in the samples so far.
    pub tally: Tally,
    /// What ended without an account; none where each thread has one.
    pub unbooked: Option<Unbooked>,
    /// Why values are missing.
    pub absent: Absent,
}

/// Ends so far of which no account says what was used at last, and why there is none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Unbooked {
    pub threads: u64,
    /// CPU time that the clocks of processes have, or had at their end, and no thread that is known.
    pub unseen_ns: u64,
    /// So much of it may be of threads that run now: their accounts are as of the last tick before they were read.
    pub lag_ns: u64,
    pub processes: UnbookedProcesses,
    pub why: &'static str,
}

/// Ends of processes so far of which no account says what they used: their clocks have ended with them. A counter
/// of the whole tree has their CPU time, and nothing else of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UnbookedProcesses {
    pub ended: u64,
    /// What ended children have used, as their parents know it: some of them were perhaps never seen.
    pub children_ns: u64,
}

/// What is added up over threads.
pub const SUMMED: [&str; 5] = [
    "cpu_ns",
    "run_queue_ns",
    "slices",
    "voluntary_switches",
    "involuntary_switches",
];

/// The phases of a role.
#[derive(Debug, Default)]
pub struct Phases {
    open: Vec<Open>,
    closed: Vec<Closed>,
}

/// A phase that has begun.
#[derive(Debug)]
struct Open {
    name: String,
    /// The role that marked it, if not this one.
    marked_by: Option<String>,
    begin: Reading,
}

/// A phase that has ended.
#[derive(Debug)]
struct Closed {
    name: String,
    marked_by: Option<String>,
    begin_ns: u64,
    end_ns: u64,
    late_ns: Option<u64>,
    usage: Usage,
    waits: Option<Waits>,
    open: bool,
}

impl Reading {
    /// Takes sums over threads; of their switches, if those of all are known.
    pub fn take_sums(&mut self, sums: Sums, switches_known: bool) {
        self.cpu_ns = Some(sums.cpu_ns);
        self.run_queue_ns = Some(sums.run_queue_ns);
        self.slices = Some(sums.slices);
        if switches_known {
            self.voluntary_switches = Some(sums.voluntary_switches);
            self.involuntary_switches = Some(sums.involuntary_switches);
        } else {
            let names = ["voluntary_switches", "involuntary_switches"];
            self.miss(&names, "a thread's status could not be read");
        }
    }

    /// Leaves out the sums over threads, but for the CPU time.
    pub fn lose_sums(&mut self, reason: &str) {
        let [_cpu, others @ ..] = SUMMED;
        self.miss(&others, reason);
        self.run_queue_ns = None;
        self.slices = None;
        self.voluntary_switches = None;
        self.involuntary_switches = None;
    }

    /// Takes the CPU time by the counter of the whole tree. It is exact now; the threads' accounts are as of their
    /// last tick.
    pub fn take_counter(&mut self, cpu_ns: u64) {
        self.cpu_ns = Some(cpu_ns);
        self.cpu_counted = true;
        self.absent.remove("cpu_ns");
    }

    /// Notes why readings are missing.
    pub fn miss(&mut self, names: &[&str], reason: &str) {
        for name in names {
            self.absent.insert((*name).into(), reason.into());
        }
    }

    /// How much later than `at_ns` the probes were read.
    fn late_ns(&self) -> Option<u64> {
        let known = self.read_ns > 0;
        known.then(|| self.read_ns.saturating_sub(self.at_ns))
    }
}

impl Closed {
    fn new(phase: Open, end: &Reading, open: bool) -> Self {
        let begin = &phase.begin;
        Self {
            begin_ns: begin.at_ns,
            end_ns: end.at_ns.max(begin.at_ns),
            late_ns: match phase.marked_by {
                None => begin.late_ns().max(end.late_ns()),
                // A server is idle when its clients have ended, so a late end changes nothing.
                Some(_) => begin.late_ns(),
            },
            usage: difference(begin, end),
            waits: end.tally.since(&begin.tally).finish(),
            open,
            name: phase.name,
            marked_by: phase.marked_by,
        }
    }
}

impl Phases {
    /// Takes an edge. The error says why it makes no sense.
    pub fn edge(&mut self, line: &PhaseLine, reading: Reading) -> Result<(), String> {
        self.take(line, None, reading)
    }

    /// Takes an edge that a client of this role has marked. Of several clients' phases of one name
    /// that overlap, the first counts.
    pub fn edge_of(&mut self, client: &str, line: &PhaseLine, reading: Reading) {
        let other = self.open.iter().any(|phase| {
            let marked_by = phase.marked_by.as_deref();
            phase.name == line.phase && marked_by.is_some_and(|name| name != client)
        });
        if !other {
            // The client's own phases report an edge that makes no sense.
            let _ = self.take(line, Some(client), reading);
        }
    }

    fn take(
        &mut self,
        line: &PhaseLine,
        marked_by: Option<&str>,
        mut reading: Reading,
    ) -> Result<(), String> {
        let position = self
            .open
            .iter()
            .rposition(|phase| phase.name == line.phase && phase.marked_by.as_deref() == marked_by);
        if let Some(at_ns) = line.at_ns {
            reading.at_ns = at_ns;
        }
        match (line.edge, position) {
            (Edge::Begin, Some(_)) => Err(format!("phase {:?} is open already", line.phase)),
            (Edge::Begin, None) => {
                self.open.push(Open {
                    name: line.phase.clone(),
                    marked_by: marked_by.map(str::to_owned),
                    begin: reading,
                });
                Ok(())
            }
            (Edge::End, None) => Err(format!("phase {:?} ends without a begin", line.phase)),
            (Edge::End, Some(position)) => {
                let phase = self.open.remove(position);
                if reading.at_ns < phase.begin.at_ns {
                    return Err(format!(
                        "phase {:?} ends before its begin; give CLOCK_MONOTONIC as at_ns at both edges or at none",
                        phase.name
                    ));
                }
                self.closed.push(Closed::new(phase, &reading, false));
                Ok(())
            }
        }
    }

    pub fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The role has ended: closes what is still open.
    pub fn end(&mut self, reading: &Reading) {
        for phase in self.open.drain(..) {
            self.closed.push(Closed::new(phase, reading, true));
        }
    }

    /// The wire form, in the order of their begins. Clients' phases are left out if the role itself
    /// marks phases of that name. `threads_peak` gives the greatest number of threads alive at once
    /// within an interval, if it is known.
    pub fn finish(
        mut self,
        first_release_ns: u64,
        mut threads_peak: impl FnMut(u64, u64) -> Option<u64>,
    ) -> Vec<PhaseRecord> {
        let own = self.closed.iter().filter(|it| it.marked_by.is_none());
        let own: BTreeSet<String> = own.map(|it| it.name.clone()).collect();
        self.closed
            .retain(|it| it.marked_by.is_none() || !own.contains(&it.name));
        self.closed.sort_by_key(|phase| phase.begin_ns);
        self.closed
            .into_iter()
            .map(|phase| PhaseRecord {
                name: phase.name,
                marked_by: phase.marked_by,
                begin_ns: phase.begin_ns.saturating_sub(first_release_ns),
                wall_ns: phase.end_ns - phase.begin_ns,
                usage: phase.usage,
                late_ns: phase.late_ns,
                threads_peak: threads_peak(phase.begin_ns, phase.end_ns),
                waits: phase.waits,
                open: phase.open,
                absent: Absent::new(),
            })
            .collect()
    }
}

/// Why figures lack what ended between two readings, if they do.
#[derive(Debug, Default)]
struct Lacking {
    /// Of sums over threads.
    sums: Option<String>,
    /// Of the CPU time.
    cpu: Option<String>,
}

impl Lacking {
    fn between(begin: &Reading, end: &Reading) -> Self {
        let Some(now) = end.unbooked else {
            return Self::default();
        };
        let before = begin.unbooked.unwrap_or_default();
        let grown = |of: fn(&Unbooked) -> u64| of(&now).saturating_sub(of(&before));
        let why = now.why;
        let unseen = "that no sample saw";
        let children_ns = grown(|it| it.processes.children_ns);
        let processes = match grown(|it| it.processes.ended) {
            0 if children_ns > 0 => Some(format!("{why}: processes ended meanwhile {unseen}")),
            0 => None,
            ended => Some(format!("{why}: {ended} processes ended meanwhile")),
        };
        let sums = match grown(|it| it.threads) {
            0 if grown(|it| it.unseen_ns) > now.lag_ns => {
                Some(format!("{why}: threads ended meanwhile {unseen}"))
            }
            0 => processes.clone(),
            ended => Some(format!("{why}: {ended} threads ended meanwhile")),
        };
        // The counter of the tree has the CPU time of the processes, and none of the sums.
        let counted = begin.cpu_counted && end.cpu_counted;
        let cpu = processes.filter(|_| !counted);
        Self { sums, cpu }
    }
}

/// Why the CPU time of two readings cannot be true, if it cannot.
fn impossible(begin: &Reading, end: &Reading) -> Option<&'static str> {
    let (from_ns, to_ns) = begin.cpu_ns.zip(end.cpu_ns)?;
    if to_ns + LAG_NS_MAX < from_ns {
        return Some("the reading at its end was less than that at its begin");
    }
    // Accounts of threads that ran at the begin were as of the tick before.
    let elapsed_ns = end.taken_ns.max(end.at_ns).saturating_sub(begin.at_ns) + LAG_NS_MAX;
    let most_ns = |cpus| elapsed_ns.saturating_mul(cpus as u64);
    let used_ns = to_ns.saturating_sub(from_ns);
    let is_too_much = end.cpus.is_some_and(|cpus| used_ns > most_ns(cpus));
    is_too_much
        .then_some("the reading at its end was more than all CPUs can have done since its begin")
}

/// Leaves out a CPU time that is more than the role used in its whole life.
pub fn withhold_beyond(whole_ns: u64, usage: &mut Usage) {
    if usage
        .cpu_ns
        .take_if(|ns| *ns > whole_ns + LAG_NS_MAX)
        .is_some()
    {
        let reason = "the reading at its end was more than the role used in its whole life";
        usage.absent.insert("cpu_ns".into(), reason.into());
    }
}

/// What was used between two readings.
pub fn difference(begin: &Reading, end: &Reading) -> Usage {
    let minus = |end: Option<u64>, begin: Option<u64>| Some(end?.saturating_sub(begin?));
    let mut absent = begin.absent.clone();
    absent.extend(end.absent.clone());
    let Lacking { sums, cpu } = Lacking::between(begin, end);
    let cpu = cpu.or_else(|| impossible(begin, end).map(str::to_owned));
    for name in SUMMED {
        // The clock of each process that lives, and the counter of the tree, have the CPU time of ended threads.
        let reason = if name == "cpu_ns" { &cpu } else { &sums };
        if let Some(reason) = reason {
            absent.insert(name.into(), reason.clone());
        }
    }
    let summed = |end, begin| minus(end, begin).filter(|_| sums.is_none());
    Usage {
        cpu_ns: minus(end.cpu_ns, begin.cpu_ns).filter(|_| cpu.is_none()),
        run_queue_ns: summed(end.run_queue_ns, begin.run_queue_ns),
        slices: summed(end.slices, begin.slices),
        voluntary_switches: summed(end.voluntary_switches, begin.voluntary_switches),
        involuntary_switches: summed(end.involuntary_switches, begin.involuntary_switches),
        migrations: minus(end.migrations, begin.migrations),
        cache_misses: minus(end.cache_misses, begin.cache_misses),
        absent,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    //! Edges of phases, in order and out of order.

    use super::*;

    fn line(phase: &str, edge: Edge) -> PhaseLine {
        PhaseLine {
            phase: phase.into(),
            edge,
            at_ns: None,
        }
    }

    fn reading(at_ns: u64, cpu_ns: u64) -> Reading {
        Reading {
            at_ns,
            cpu_ns: Some(cpu_ns),
            ..Reading::default()
        }
    }

    #[test]
    fn repeated_and_nested_phases_are_entries_of_their_own() {
        let mut phases = Phases::default();
        phases
            .edge(&line("a", Edge::Begin), reading(10, 1))
            .unwrap();
        phases
            .edge(&line("b", Edge::Begin), reading(20, 2))
            .unwrap();
        phases.edge(&line("a", Edge::End), reading(30, 4)).unwrap();
        phases
            .edge(&line("a", Edge::Begin), reading(40, 5))
            .unwrap();
        phases.edge(&line("b", Edge::End), reading(50, 7)).unwrap();
        phases.end(&reading(60, 9));
        let records = phases.finish(5, |_, _| None);
        let found: Vec<_> = records
            .iter()
            .map(|phase| {
                (
                    phase.name.as_str(),
                    phase.begin_ns,
                    phase.wall_ns,
                    phase.usage.cpu_ns,
                    phase.open,
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                ("a", 5, 20, Some(3), false),
                ("b", 15, 30, Some(5), false),
                ("a", 35, 20, Some(4), true),
            ]
        );
    }

    #[test]
    fn how_late_the_probes_were_read_is_reported() {
        let mut phases = Phases::default();
        for (edge, at_ns, read_ns) in [(Edge::Begin, 100, 107), (Edge::End, 200, 203)] {
            let mut line = line("a", edge);
            line.at_ns = Some(at_ns);
            let mut reading = reading(read_ns, 1);
            reading.read_ns = read_ns;
            phases.edge(&line, reading).unwrap();
        }
        assert_eq!(phases.finish(0, |_, _| None)[0].late_ns, Some(7));
    }

    #[test]
    fn a_client_marks_a_phase_of_its_server() {
        let mut phases = Phases::default();
        let (begin, end) = (line("a", Edge::Begin), line("a", Edge::End));
        phases.edge_of("load-1", &begin, reading(10, 1));
        phases.edge_of("load-2", &begin, reading(20, 2));
        phases.edge_of("load-1", &end, reading(30, 4));
        phases.edge_of("load-2", &end, reading(40, 8));
        let records = phases.finish(0, |_, _| None);
        assert_eq!(records.len(), 1, "the first of those that overlap");
        assert_eq!(records[0].marked_by.as_deref(), Some("load-1"));
        assert_eq!((records[0].wall_ns, records[0].usage.cpu_ns), (20, Some(3)));
    }

    #[test]
    fn a_phase_of_its_own_stands_before_a_clients() {
        let mut phases = Phases::default();
        let (begin, end) = (line("a", Edge::Begin), line("a", Edge::End));
        phases.edge(&begin, reading(10, 1)).unwrap();
        phases.edge_of("load", &begin, reading(20, 2));
        phases.edge_of("load", &line("b", Edge::Begin), reading(20, 2));
        phases.edge_of("load", &end, reading(30, 4));
        phases.edge(&end, reading(40, 8)).unwrap();
        phases.end(&reading(50, 9));
        let records = phases.finish(0, |_, _| None);
        let found: Vec<_> = records
            .iter()
            .map(|it| (it.name.as_str(), it.marked_by.as_deref(), it.wall_ns))
            .collect();
        assert_eq!(found, [("a", None, 30), ("b", Some("load"), 30)]);
    }

    #[test]
    fn edges_that_make_no_sense() {
        let mut phases = Phases::default();
        assert!(phases.edge(&line("a", Edge::End), reading(1, 0)).is_err());
        phases.edge(&line("a", Edge::Begin), reading(2, 0)).unwrap();
        assert!(phases.edge(&line("a", Edge::Begin), reading(3, 0)).is_err());
        assert!(phases.edge(&line("a", Edge::End), reading(1, 0)).is_err());
    }

    #[test]
    fn sums_that_lack_threads_are_missing() {
        let unbooked = |threads| {
            let why = "no exit accounts (taskstats)";
            Some(Unbooked {
                threads,
                why,
                ..Unbooked::default()
            })
        };
        let at = |at_ns, unbooked| Reading {
            run_queue_ns: Some(at_ns),
            voluntary_switches: Some(at_ns),
            unbooked,
            ..reading(at_ns, at_ns)
        };
        let usage = difference(&at(10, unbooked(3)), &at(30, unbooked(5)));
        assert_eq!(usage.cpu_ns, Some(20), "the process's clock has it");
        assert_eq!(usage.run_queue_ns, None);
        assert_eq!(usage.voluntary_switches, None);
        assert!(usage.absent["run_queue_ns"].contains("2 threads ended"));
        for same in [unbooked(3), None] {
            let usage = difference(&at(10, same), &at(30, same));
            assert_eq!(usage.run_queue_ns, Some(20));
            assert!(usage.absent.is_empty());
        }
    }

    /// Two readings, of which the second has these ends beside those of the first.
    fn edges_of(ended: Unbooked) -> [Reading; 2] {
        let at = |at_ns, unbooked| Reading {
            run_queue_ns: Some(at_ns),
            unbooked: Some(unbooked),
            ..reading(at_ns, at_ns)
        };
        let begin = Unbooked {
            unseen_ns: 5_000,
            processes: UnbookedProcesses {
                ended: 2,
                children_ns: 700,
            },
            ..Unbooked::default()
        };
        let end = Unbooked {
            unseen_ns: begin.unseen_ns + ended.unseen_ns,
            processes: UnbookedProcesses {
                ended: begin.processes.ended + ended.processes.ended,
                children_ns: begin.processes.children_ns + ended.processes.children_ns,
            },
            ..ended
        };
        [at(10, begin), at(30, end)]
    }

    /// What was used between them.
    fn used_while(ended: Unbooked) -> Usage {
        let [begin, end] = edges_of(ended);
        difference(&begin, &end)
    }

    #[test]
    fn the_cpu_time_of_processes_that_ended_with_their_clocks_is_missing() {
        let processes = |ended, children_ns| Unbooked {
            processes: UnbookedProcesses { ended, children_ns },
            ..Unbooked::default()
        };
        for (unbooked, said) in [
            (processes(4, 900), "4 processes ended meanwhile"),
            (processes(0, 900), "that no sample saw"),
        ] {
            let usage = used_while(unbooked);
            assert_eq!((usage.cpu_ns, usage.run_queue_ns), (None, None));
            for name in ["cpu_ns", "run_queue_ns"] {
                assert!(usage.absent[name].contains(said), "{usage:?}");
            }
        }
        let usage = used_while(processes(0, 0));
        assert_eq!((usage.cpu_ns, usage.run_queue_ns), (Some(20), Some(20)));
        assert!(usage.absent.is_empty());
    }

    #[test]
    fn a_counter_of_the_tree_has_the_cpu_time_of_ended_processes_and_no_sums() {
        for (ended, children_ns) in [(4, 900), (0, 900)] {
            let [mut begin, mut end] = edges_of(Unbooked {
                processes: UnbookedProcesses { ended, children_ns },
                ..Unbooked::default()
            });
            begin.take_counter(100);
            end.take_counter(175);
            let usage = difference(&begin, &end);
            assert_eq!((usage.cpu_ns, usage.run_queue_ns), (Some(75), None));
            assert!(!usage.absent.contains_key("cpu_ns"));
            assert!(usage.absent["run_queue_ns"].contains("processes ended meanwhile"));
        }
    }

    #[test]
    fn sums_lack_threads_that_the_clock_of_their_process_alone_has() {
        let unseen = |unseen_ns| Unbooked {
            unseen_ns,
            lag_ns: 1_000,
            ..Unbooked::default()
        };
        let usage = used_while(unseen(1_001));
        assert_eq!((usage.cpu_ns, usage.run_queue_ns), (Some(20), None));
        let reason = &usage.absent["run_queue_ns"];
        assert!(reason.contains("threads ended meanwhile that no sample saw"));
        assert_eq!(
            used_while(unseen(1_000)).run_queue_ns,
            Some(20),
            "they may run"
        );
    }

    #[test]
    fn a_cpu_time_that_cannot_be_true_is_no_number() {
        const SECOND: u64 = 1_000_000_000;
        let at = |at_ns, cpu_ns| Reading {
            taken_ns: at_ns + 1_000_000,
            cpus: Some(2),
            slices: Some(cpu_ns),
            ..reading(at_ns, cpu_ns)
        };
        for (cpu_ns, reason) in [
            (448_637_418 + 2 * SECOND, None),
            (
                448_637_418 + 2 * SECOND + 50_000_000,
                Some("more than all CPUs can have done"),
            ),
            (0, Some("less than that at its begin")),
            // As of the tick before.
            (448_637_418 - LAG_NS_MAX, None),
        ] {
            let usage = difference(&at(SECOND, 448_637_418), &at(2 * SECOND, cpu_ns));
            assert_eq!(usage.cpu_ns.is_none(), reason.is_some(), "{usage:?}");
            assert!(usage.slices.is_some());
            if let Some(reason) = reason {
                assert!(usage.absent["cpu_ns"].contains(reason), "{usage:?}");
            }
        }
    }

    #[test]
    fn a_phase_has_no_more_cpu_time_than_the_whole_life_of_its_role() {
        for (cpu_ns, is_absent) in [(1_514_509_000, false), (2_021_908_673, true)] {
            let mut usage = Usage {
                cpu_ns: Some(cpu_ns),
                ..Usage::default()
            };
            withhold_beyond(1_514_509_000, &mut usage);
            assert_eq!(usage.cpu_ns.is_none(), is_absent);
            assert_eq!(usage.absent.contains_key("cpu_ns"), is_absent);
        }
    }

    #[test]
    fn sums_that_have_a_thread_twice_are_missing_but_for_the_cpu_time() {
        let mut end = reading(30, 9);
        end.slices = Some(5);
        end.lose_sums("twice");
        let mut begin = reading(10, 1);
        begin.slices = Some(2);
        let usage = difference(&begin, &end);
        assert_eq!((usage.cpu_ns, usage.slices), (Some(8), None));
        assert_eq!(usage.absent["slices"], "twice");
    }

    #[test]
    fn a_missing_source_stays_missing() {
        let mut phases = Phases::default();
        phases.edge(&line("a", Edge::Begin), reading(1, 0)).unwrap();
        let mut end = Reading {
            at_ns: 2,
            ..Reading::default()
        };
        end.absent.insert("cpu_ns".into(), "gone".into());
        phases.edge(&line("a", Edge::End), end).unwrap();
        let usage = &phases.finish(0, |_, _| None)[0].usage;
        assert_eq!(usage.cpu_ns, None);
        assert_eq!(usage.absent["cpu_ns"], "gone");
    }
}
