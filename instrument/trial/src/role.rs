//! One role of a running trial: its process, its streams, and what it has reported so far.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::net::SocketAddr;

use concurve_probe::perf::{CacheMisses, TreeCounter, TreeLives, TreeSamples};
use concurve_probe::proc_fs::ProcFs;
use concurve_probe::process::ReapedUsage;
use concurve_probe::spawn::ExecNews;
use concurve_reporter::line::{HistogramLine, IndicatorLine};
use concurve_sites::Hot;
use concurve_wire::record::{EndedBy, Exit, GrantedControls};
use concurve_wire::spec::{End, Ready, RoleSpec};

use crate::attached::Attached;
use crate::census::{BirthWatch, Census};
use crate::channel::Channel;
use crate::output::Excerpt;
use crate::phases::Phases;
use crate::ready::Prober;

/// Most bytes read from one stream before the others are read.
const CHUNK_BYTES: usize = 1 << 18;
/// So many addresses at which a role listens are named.
const ADDRESSES_MAX: usize = 3;

/// A role, from the spec to the end of its processes.
#[derive(Debug)]
pub struct Role {
    pub spec: RoleSpec,
    /// The first process that the runner started for it. What is signalled is found from here, so it
    /// is never a process of an attached role.
    pub pid: Option<u32>,
    /// Its processes, if it is attached.
    pub attached: Option<Attached>,
    pub controls: GrantedControls,
    pub released_ns: Option<u64>,
    pub exited_ns: Option<u64>,
    pub exit: Option<Exit>,
    pub ended_by: Option<EndedBy>,
    pub exec_news: Option<ExecNews>,
    pub exec_failed: bool,
    pub stdout: Stream,
    pub stderr: Stream,
    pub report: Option<File>,
    pub channel: Channel,
    /// Whether it is as ready as `spec.ready` asks.
    pub reported_ready: bool,
    /// What must be seen of it from outside before it is ready.
    pub prober: Option<Prober>,
    pub phases: Phases,
    pub indicators: Vec<IndicatorLine>,
    pub histograms: Vec<HistogramLine>,
    pub facts: BTreeMap<String, serde_json::Value>,
    /// Sums over the children that the runner itself has reaped.
    pub reaped: ReapedUsage,
    pub counter: Option<TreeCounter>,
    pub counter_refusal: Option<String>,
    /// The counter of cache misses, or why there is none; nothing if none was asked for.
    pub cache_misses: Option<Result<CacheMisses, String>>,
    pub lives: Option<TreeLives>,
    /// For the edges of phases, which look for its processes.
    pub births: BirthWatch,
    pub lives_refusal: Option<String>,
    pub samples: Option<TreeSamples>,
    pub samples_refusal: Option<String>,
    /// Where its threads ran, by these samples.
    pub hot: Hot,
    pub census: Census,
    pub stragglers_killed: u64,
}

/// Which roles have work: not those that serve while no role runs that ends by itself, where there are such roles.
pub fn loaded(roles: &[Role]) -> Vec<bool> {
    let mut loads = roles
        .iter()
        .filter(|role| role.spec.end == End::Exit)
        .peekable();
    let is_load_known = loads.peek().is_some();
    let is_loaded =
        !is_load_known || loads.any(|role| role.running() && role.released_ns.is_some());
    let has_work = |role: &Role| is_loaded || role.spec.end == End::Exit;
    roles.iter().map(has_work).collect()
}

impl Role {
    pub fn new(spec: RoleSpec, output_bytes_max: u64) -> Self {
        Self {
            controls: GrantedControls {
                requested: spec.controls.clone(),
                cpus: None,
                nice: None,
                policy: None,
            },
            spec,
            pid: None,
            attached: None,
            released_ns: None,
            exited_ns: None,
            exit: None,
            ended_by: None,
            exec_news: None,
            exec_failed: false,
            stdout: Stream::new(output_bytes_max),
            stderr: Stream::new(output_bytes_max),
            report: None,
            channel: Channel::default(),
            reported_ready: false,
            prober: None,
            phases: Phases::default(),
            indicators: Vec::new(),
            histograms: Vec::new(),
            facts: BTreeMap::new(),
            reaped: ReapedUsage::default(),
            counter: None,
            counter_refusal: None,
            cache_misses: None,
            lives: None,
            births: BirthWatch::default(),
            lives_refusal: None,
            samples: None,
            samples_refusal: None,
            hot: Hot::default(),
            census: Census::default(),
            stragglers_killed: 0,
        }
    }

    /// Whether its first process was started, or attached.
    pub fn started(&self) -> bool {
        self.pid.is_some() || self.attached.is_some()
    }

    /// Whether its first process is running; an attached role is, until the trial ends.
    pub fn running(&self) -> bool {
        self.started() && self.exited_ns.is_none()
    }

    /// Whether roles that come later may start.
    pub fn ready(&self) -> bool {
        self.reported_ready && self.prober.is_none()
    }

    /// What it has not done yet to be ready.
    pub fn awaited(&self) -> String {
        match &self.prober {
            Some(prober) if self.reported_ready || self.spec.ready == Ready::Launch => {
                prober.awaited()
            }
            _ => "wrote no {\"ready\":true} to its report channel".into(),
        }
    }

    /// Where its processes listen instead, if it accepts no connection at the port that is awaited: `; it listens
    /// at 127.0.0.1:6379`. Empty if they listen nowhere, or something else is awaited.
    pub fn elsewhere(&self, proc_fs: &ProcFs) -> String {
        let Some(pid) = self
            .pid
            .filter(|_| self.prober.as_ref().is_some_and(Prober::is_of_port))
        else {
            return String::new();
        };
        let mut processes = proc_fs.descendants(pid).found;
        processes.push(pid);
        let found: BTreeSet<SocketAddr> = processes
            .iter()
            .flat_map(|it| proc_fs.listening(*it))
            .collect();
        if found.is_empty() {
            return String::new();
        }
        let shown: Vec<String> = found
            .iter()
            .take(ADDRESSES_MAX)
            .map(ToString::to_string)
            .collect();
        let more = match found.len() - shown.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("; it listens at {}{more}", shown.join(", "))
    }

    /// Until when it must be ready, if it is not and there is a limit.
    pub fn ready_until_ns(&self) -> Option<u64> {
        let waiting = self.running() && !self.ready();
        let (released_ns, limit_ns) = self.released_ns.zip(self.spec.ready_limit_ns)?;
        waiting.then(|| released_ns.saturating_add(limit_ns))
    }

    /// Reads what is available of its standard output and standard error.
    pub fn drain_output(&mut self) {
        let streams = [&mut self.stdout, &mut self.stderr];
        for (number, stream) in streams.into_iter().enumerate() {
            stream.drain(number, &mut self.prober);
        }
    }

    /// Its cache misses so far, or why they are not known; nothing if nobody asked for them.
    pub fn cache_misses_so_far(&self) -> Option<Result<u64, String>> {
        let counter = self.cache_misses.as_ref()?;
        let counted = counter.as_ref().map_err(String::clone);
        Some(counted.and_then(|counter| counter.read().map_err(|error| error.to_string())))
    }

    /// Whether its program was executed.
    pub fn ran(&self) -> bool {
        self.released_ns.is_some() && !self.exec_failed
    }

    pub fn exited(&self) -> bool {
        self.exited_ns.is_some()
    }
}

/// An output stream of a role: its pipe, until it closes, and what is kept of it.
#[derive(Debug)]
pub struct Stream {
    pub pipe: Option<File>,
    pub excerpt: Excerpt,
}

impl Stream {
    fn new(bytes_max: u64) -> Self {
        Self {
            pipe: None,
            excerpt: Excerpt::new(bytes_max),
        }
    }

    /// Reads what is available, up to a bound; closes the pipe at its end. A prober reads it too.
    fn drain(&mut self, number: usize, prober: &mut Option<Prober>) {
        let excerpt = &mut self.excerpt;
        drain(&mut self.pipe, |chunk| {
            excerpt.push(chunk);
            if prober.as_mut().is_some_and(|it| it.read(number, chunk)) {
                *prober = None;
            }
        });
    }

    /// Reads all that is left. To be called only when all writers are dead.
    pub fn drain_all(&mut self) {
        let mut before = None;
        while self.pipe.is_some() && before != Some(self.excerpt.bytes()) {
            before = Some(self.excerpt.bytes());
            self.drain(0, &mut None);
        }
    }
}

/// Reads a non-blocking pipe, up to a bound; closes it at its end.
pub fn drain(pipe: &mut Option<File>, mut take: impl FnMut(&[u8])) {
    let mut buffer = [0; 1 << 16];
    let mut total = 0;
    while let Some(file) = pipe
        && total < CHUNK_BYTES
    {
        match file.read(&mut buffer) {
            Ok(0) => *pipe = None,
            Ok(length) => {
                total += length;
                take(&buffer[..length]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return,
            Err(_) => *pipe = None,
        }
    }
}

#[cfg(test)]
mod load_tests {
    //! When a server has work.

    use super::*;

    fn role(end: &str) -> Role {
        let spec = format!(r#"{{"name":"{end}","argv":["true"],"end":"{end}"}}"#);
        Role::new(serde_json::from_str(&spec).unwrap(), 1)
    }

    #[test]
    fn a_server_has_work_while_a_role_runs_that_ends_by_itself() {
        let mut roles = [role("serve"), role("exit")];
        assert_eq!(loaded(&roles), [false, true]);
        roles[1].pid = Some(7);
        assert_eq!(loaded(&roles), [false, true], "it waits for its release");
        roles[1].released_ns = Some(1);
        assert_eq!(loaded(&roles), [true, true]);
        roles[1].exited_ns = Some(2);
        assert_eq!(loaded(&roles), [false, true]);
        assert_eq!(loaded(&roles[..1]), [true], "nothing is known of its load");
    }
}
