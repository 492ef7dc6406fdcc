//! Stretches of a role's life that its program marks, or a client of it: a reading at each edge,
//! the difference between them.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use concurve_reporter::line::{Edge, PhaseLine};
use concurve_wire::record::{Absent, PhaseRecord, Usage, Waits};

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
    /// How much later the probes were read than the moment that they are to tell of.
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
                // When its clients have ended, a server has nothing to do.
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
            // What makes no sense is told to the client.
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

    /// The wire form, in the order of their begins; a phase that the role marks itself is its own
    /// affair, and clients' phases of that name are left out. `threads_peak` knows how many threads were
    /// alive at once from one moment to another, if anybody does.
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
