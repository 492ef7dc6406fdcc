//! The one place where the runner waits: signals, streams, reports, limits and samples.

use std::os::fd::AsFd;
use std::time::Duration;

use concurve_clock as clock;
use concurve_wire::record::OutcomeKind;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeSpec;

use crate::error::{OnHost, Result};
use crate::role::Role;
use crate::trial::{Ending, Trial};

/// How soon after a kill its effect is checked.
const KILL_INTERVAL_NS: u64 = 5_000_000;

/// Signals as a descriptor.
#[derive(Debug)]
pub struct Signals(SignalFd);

impl Signals {
    /// Blocks SIGCHLD, SIGINT, SIGTERM and SIGHUP and reads them instead.
    pub fn open() -> Result<Self> {
        let mut set = SigSet::empty();
        for signal in [
            Signal::SIGCHLD,
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
        ] {
            set.add(signal);
        }
        set.thread_block().on_host("block signals")?;
        let flags = SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC;
        SignalFd::with_flags(&set, flags)
            .on_host("open a signal descriptor")
            .map(Self)
    }

    /// The signal that asks the runner to stop, if one came.
    fn stop_request(&self) -> Option<Signal> {
        let mut stop = None;
        while let Ok(Some(info)) = self.0.read_signal() {
            match Signal::try_from(info.ssi_signo as i32) {
                Ok(Signal::SIGCHLD) | Err(_) => {}
                Ok(signal) => stop = Some(signal),
            }
        }
        stop
    }
}

/// What woke the loop.
#[derive(Debug, Clone, Copy)]
enum Source {
    Signals,
    Exec(usize),
    Output(usize),
    Report(usize),
    Attached,
}

/// Runs a trial until its last process is reaped.
pub fn run(trial: &mut Trial, signals: &Signals) -> Result<()> {
    trial.start_due_roles();
    trial.advance_end(clock::monotonic_ns());
    while !trial.over() {
        let ready = wait(trial, signals)?;
        // Taken before any other work: it is the time at which an exit was noticed.
        let now = clock::monotonic_ns();
        for source in ready {
            match source {
                Source::Signals => {
                    let stop = signals.stop_request();
                    trial.reap(now);
                    if let Some(signal) = stop {
                        let message = format!("the runner got {}", signal.as_str());
                        trial.abort(OutcomeKind::Interrupted, message);
                    }
                }
                Source::Exec(index) => trial.check_exec(index),
                Source::Output(index) => trial.roles[index].drain_output(),
                Source::Report(index) => trial.receive_report(index, now),
                Source::Attached => trial.check_attached(),
            }
        }
        if trial.rings_due_ns().is_some_and(|due_ns| due_ns <= now) {
            trial.take_rings(now);
        }
        if is_sample_due(trial, now) && !trial.sampler.is_under_way() {
            trial.check_attached_by_sample();
        }
        trial.probe_readiness(now);
        check_ready_limits(trial, now);
        check_limit(trial, now);
        trial.start_due_roles();
        trial.advance_end(now);
        if trial.ending == Ending::Killing {
            // No signal tells that there are no children, as where the first fork failed.
            trial.reap(now);
        }
        if is_sample_due(trial, now) {
            trial.take_exits(false);
            trial
                .sampler
                .step(&mut trial.ledger, &trial.host.proc_fs, now);
        }
    }
    finish(trial);
    Ok(())
}

fn is_sample_due(trial: &Trial, now: u64) -> bool {
    trial.ending == Ending::NotYet && trial.sampler.due_ns() <= now
}

fn wait(trial: &Trial, signals: &Signals) -> Result<Vec<Source>> {
    let mut sources = vec![Source::Signals];
    let mut polled = vec![PollFd::new(signals.0.as_fd(), PollFlags::POLLIN)];
    let mut add = |source, descriptor| {
        sources.push(source);
        polled.push(PollFd::new(descriptor, PollFlags::POLLIN));
    };
    for (index, role) in trial.roles.iter().enumerate() {
        if let Some(news) = &role.exec_news {
            add(Source::Exec(index), news.as_fd());
        }
        if let Some(pipe) = &role.stdout.pipe {
            add(Source::Output(index), pipe.as_fd());
        }
        if let Some(pipe) = &role.stderr.pipe {
            add(Source::Output(index), pipe.as_fd());
        }
        if let Some(pipe) = &role.report {
            add(Source::Report(index), pipe.as_fd());
        }
        if let Some(attached) = role.attached.as_ref().filter(|_| role.running())
            && let Some(handle) = &attached.handle
        {
            add(Source::Attached, handle.as_fd());
        }
    }
    let timeout = next_deadline(trial).map(|at| {
        TimeSpec::from(Duration::from_nanos(
            at.saturating_sub(clock::monotonic_ns()),
        ))
    });
    match ppoll(&mut polled, timeout, None) {
        Ok(_) | Err(nix::errno::Errno::EINTR) => {}
        Err(errno) => return Err(errno).on_host("wait for events"),
    }
    Ok(sources
        .into_iter()
        .zip(polled)
        .filter(|(_, polled)| polled.any().unwrap_or(false))
        .map(|(source, _)| source)
        .collect())
}

fn next_deadline(trial: &Trial) -> Option<u64> {
    let limit = trial.spec.time_limit_ns.zip(trial.first_release_ns);
    let limit = limit.filter(|_| trial.ending == Ending::NotYet);
    let sample = (trial.ending == Ending::NotYet).then(|| trial.sampler.due_ns());
    let grace = match trial.ending {
        Ending::Stopping { until_ns } => Some(until_ns),
        _ => None,
    };
    let kill = trial
        .killing()
        .then(|| clock::monotonic_ns() + KILL_INTERVAL_NS);
    [
        limit.map(|(limit, begin)| begin.saturating_add(limit)),
        trial.readiness_due_ns(),
        trial.rings_due_ns(),
        sample,
        grace,
        kill,
    ]
    .into_iter()
    .flatten()
    .min()
}

fn check_limit(trial: &mut Trial, now: u64) {
    let Some((limit_ns, begin_ns)) = trial.spec.time_limit_ns.zip(trial.first_release_ns) else {
        return;
    };
    if trial.ending != Ending::NotYet || now < begin_ns.saturating_add(limit_ns) {
        return;
    }
    let seconds = limit_ns as f64 / 1e9;
    let unready = trial
        .roles
        .iter()
        .find(|role| role.running() && !role.ready());
    let (kind, role, message) = match unready {
        Some(role) => (
            OutcomeKind::NotReady,
            Some(role.spec.name.clone()),
            format!(
                "{} within the time limit of {seconds} s{}",
                role.awaited(),
                role.elsewhere(&trial.host.proc_fs)
            ),
        ),
        None => (
            OutcomeKind::TimedOut,
            None,
            format!("the time limit of {seconds} s passed"),
        ),
    };
    trial.abort(kind, message);
    if let Some(outcome) = &mut trial.outcome {
        outcome.role = role;
    }
}

/// Ends the trial if a role is not ready within its limit.
fn check_ready_limits(trial: &mut Trial, now: u64) {
    if trial.ending != Ending::NotYet {
        return;
    }
    let late = |role: &Role| {
        role.ready_until_ns()
            .is_some_and(|until_ns| until_ns <= now)
    };
    if let Some(index) = trial.roles.iter().position(late) {
        let role = &trial.roles[index];
        let seconds = role.spec.ready_limit_ns.unwrap_or_default() as f64 / 1e9;
        let said = match role.stderr.excerpt.telling_line() {
            Some(line) => format!("; its standard error: {line}"),
            None => String::new(),
        };
        let elsewhere = role.elsewhere(&trial.host.proc_fs);
        let message = format!("{} within {seconds} s{elsewhere}{said}", role.awaited());
        trial.fail(OutcomeKind::NotReady, index, message);
    }
}

/// When every process is dead or given up: reads what is left in the pipes.
fn finish(trial: &mut Trial) {
    let now = clock::monotonic_ns();
    trial.take_exits(true);
    for index in 0..trial.roles.len() {
        trial.receive_report(index, now);
        let role = &mut trial.roles[index];
        if trial.survivors.given_up() {
            // What lives on may write without end.
            role.drain_output();
        } else {
            role.stdout.drain_all();
            role.stderr.drain_all();
        }
    }
    trial.read_attached_to_the_end();
    trial.ledger.close_all();
}
