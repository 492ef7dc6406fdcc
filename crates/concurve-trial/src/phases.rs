//! Stretches of a role's life that its program marks: a reading at each edge, the difference
//! between them.

use concurve_wire::record::{Absent, PhaseRecord, Usage, Waits};
use concurve_wire::report::{Edge, PhaseLine};

use crate::waits::Tally;

/// What the probes say of a role at one moment; none where a source is missing.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    pub at_ns: u64,
    /// When the probes had been read: later than the moment itself on a busy machine.
    pub read_ns: u64,
    pub cpu_ns: Option<u64>,
    pub run_queue_ns: Option<u64>,
    pub slices: Option<u64>,
    pub voluntary_switches: Option<u64>,
    pub involuntary_switches: Option<u64>,
    pub migrations: Option<u64>,
    /// What its threads have been seen doing.
    pub tally: Tally,
    /// Why the missing ones are.
    pub absent: Absent,
}

/// The phases of a role.
#[derive(Debug, Default)]
pub struct Phases {
    open: Vec<(String, Reading)>,
    closed: Vec<Closed>,
}

/// A phase that has ended.
#[derive(Debug)]
struct Closed {
    name: String,
    begin_ns: u64,
    end_ns: u64,
    late_ns: Option<u64>,
    usage: Usage,
    waits: Option<Waits>,
    open: bool,
}

impl Reading {
    /// How much later the probes were read than the moment that they are to tell of.
    fn late_ns(&self) -> Option<u64> {
        let known = self.read_ns > 0;
        known.then(|| self.read_ns.saturating_sub(self.at_ns))
    }
}

impl Closed {
    fn new(name: String, begin: &Reading, end: &Reading, open: bool) -> Self {
        Self {
            name,
            begin_ns: begin.at_ns,
            end_ns: end.at_ns.max(begin.at_ns),
            late_ns: begin.late_ns().max(end.late_ns()),
            usage: difference(begin, end),
            waits: end.tally.since(&begin.tally).finish(),
            open,
        }
    }
}

impl Phases {
    /// Takes an edge. The error says why it makes no sense.
    pub fn edge(&mut self, line: &PhaseLine, mut reading: Reading) -> Result<(), String> {
        let position = self.open.iter().rposition(|(name, _)| *name == line.phase);
        if let Some(at_ns) = line.at_ns {
            reading.at_ns = at_ns;
        }
        match (line.edge, position) {
            (Edge::Begin, Some(_)) => Err(format!("phase {:?} is open already", line.phase)),
            (Edge::Begin, None) => {
                self.open.push((line.phase.clone(), reading));
                Ok(())
            }
            (Edge::End, None) => Err(format!("phase {:?} ends without a begin", line.phase)),
            (Edge::End, Some(position)) => {
                let (name, begin) = self.open.remove(position);
                if reading.at_ns < begin.at_ns {
                    return Err(format!(
                        "phase {name:?} ends before its begin; give CLOCK_MONOTONIC as at_ns at both edges or at none"
                    ));
                }
                self.closed.push(Closed::new(name, &begin, &reading, false));
                Ok(())
            }
        }
    }

    pub fn any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// The role has ended: closes what is still open.
    pub fn end(&mut self, reading: &Reading) {
        for (name, begin) in self.open.drain(..) {
            self.closed.push(Closed::new(name, &begin, reading, true));
        }
    }

    /// The wire form, in the order of their begins. `threads_peak` knows how many threads were
    /// alive at once from one moment to another, if anybody does.
    pub fn finish(
        mut self,
        first_release_ns: u64,
        mut threads_peak: impl FnMut(u64, u64) -> Option<u64>,
    ) -> Vec<PhaseRecord> {
        self.closed.sort_by_key(|phase| phase.begin_ns);
        self.closed
            .into_iter()
            .map(|phase| PhaseRecord {
                name: phase.name,
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

fn difference(begin: &Reading, end: &Reading) -> Usage {
    let minus = |end: Option<u64>, begin: Option<u64>| Some(end?.saturating_sub(begin?));
    let mut absent = begin.absent.clone();
    absent.extend(end.absent.clone());
    Usage {
        cpu_ns: minus(end.cpu_ns, begin.cpu_ns),
        run_queue_ns: minus(end.run_queue_ns, begin.run_queue_ns),
        slices: minus(end.slices, begin.slices),
        voluntary_switches: minus(end.voluntary_switches, begin.voluntary_switches),
        involuntary_switches: minus(end.involuntary_switches, begin.involuntary_switches),
        migrations: minus(end.migrations, begin.migrations),
        absent,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
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
    fn how_late_the_probes_were_read_is_told() {
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
    fn edges_that_make_no_sense() {
        let mut phases = Phases::default();
        assert!(phases.edge(&line("a", Edge::End), reading(1, 0)).is_err());
        phases.edge(&line("a", Edge::Begin), reading(2, 0)).unwrap();
        assert!(phases.edge(&line("a", Edge::Begin), reading(3, 0)).is_err());
        assert!(phases.edge(&line("a", Edge::End), reading(1, 0)).is_err());
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
