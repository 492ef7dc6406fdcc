//! Receives what roles report: that the exec failed, and the lines of their report channels.

use concurve_clock as clock;
use concurve_reporter::line::{PhaseLine, ReportLine};
use concurve_wire::spec::End;

use super::Trial;
use crate::launch;
use crate::phases::Reading;
use crate::role;

impl Trial {
    /// Checks whether the exec failed.
    pub fn check_exec(&mut self, index: usize) {
        let role = &mut self.roles[index];
        let Some(mut news) = role.exec_news.take() else {
            return;
        };
        if let Some(failure) = news.read() {
            role.exec_failed = true;
            let problem = launch::not_executed(role, &failure);
            self.fail(problem.kind, index, problem.message);
        }
    }

    /// Receives what a role has written to its report channel.
    pub fn receive_report(&mut self, index: usize, now: u64) {
        let role = &mut self.roles[index];
        let mut lines = Vec::new();
        let channel = &mut role.channel;
        role::drain(&mut role.report, |chunk| lines.extend(channel.push(chunk)));
        if role.report.is_none() {
            lines.extend(role.channel.finish());
        }
        for (number, line) in lines {
            self.take_line(index, number, line, now);
        }
    }

    fn take_line(&mut self, index: usize, number: u64, line: ReportLine, now: u64) {
        match line {
            ReportLine::Phase(line) => self.take_edge(index, number, &line, now),
            ReportLine::Ready(line) => self.roles[index].reported_ready |= line.ready,
            ReportLine::Indicator(line) => self.roles[index].indicators.push(line),
            ReportLine::Histogram(line) => self.roles[index].histograms.push(line),
            ReportLine::Fact(line) => {
                self.roles[index].facts.insert(line.fact, line.value);
            }
        }
    }

    /// Takes an edge of a phase. If the role ends by itself, the phase counts for the serving roles as
    /// well: what they used during it is what its work has cost them.
    fn take_edge(&mut self, index: usize, number: u64, line: &PhaseLine, now: u64) {
        if self.roles[index].spec.end == End::Exit {
            let client = self.roles[index].spec.name.clone();
            self.events.tell(&client, line, now);
            for server in 0..self.roles.len() {
                if self.roles[server].spec.end == End::Serve && self.roles[server].running() {
                    let reading = self.timed_reading(server, now);
                    self.roles[server].phases.edge_of(&client, line, reading);
                }
            }
        }
        let reading = self.timed_reading(index, now);
        let role = &mut self.roles[index];
        if let Err(message) = role.phases.edge(line, reading) {
            role.channel.refuse(number, message, &line.phase);
        }
    }

    /// A reading with the time at which the probes had been read.
    pub fn timed_reading(&mut self, index: usize, now: u64) -> Reading {
        let mut reading = self.reading(index, now);
        reading.read_ns = clock::monotonic_ns();
        reading
    }
}
