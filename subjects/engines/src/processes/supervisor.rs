//! The process that outlives the engines: it forks generations, and never touches shared memory.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use std::os::fd::AsFd;

use crate::error::EnginesError;
use crate::memory;
use crate::processes::child::QUICK_DEATH;
use crate::processes::child::{self, DONE, FAILED, LOST};
use crate::processes::generation;
use crate::processes::messages::{self, Message, Receiver};
use crate::service::{Event, Plan, Service, Start};
use crate::signals::Signals;

/// Forks one generation after another, until one ends in order or the service fails.
pub fn serve<S: Service>(plan: &Plan, service: &S) -> Result<(), EnginesError> {
    if memory::is_open() {
        let text = "the shared memory is open already: each generation opens its own";
        return Err(EnginesError::Unfit(text.to_owned()));
    }
    let signals = Signals::block(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD])?;
    // Engines whose generation was killed become children of the supervisor, which waits for them:
    // the next generation opens logs that no other process may write any more.
    prctl::set_child_subreaper(true)
        .map_err(EnginesError::system("wait for the children of children"))?;
    let ended = run_generations(plan, service, &signals);
    let _ = prctl::set_child_subreaper(false);
    ended
}

fn run_generations<S: Service>(
    plan: &Plan,
    service: &S,
    signals: &Signals,
) -> Result<(), EnginesError> {
    let mut quick = 0;
    for generation in 1.. {
        let start = Start { generation };
        match Generation::start(plan, service, start)?.supervise(plan, service, signals)? {
            End::Done => break,
            End::Died { why, was_quick } => {
                quick = if was_quick { quick + 1 } else { 0 };
                if quick >= plan.quick_deaths_max {
                    return Err(EnginesError::KeepsDying { count: quick, why });
                }
                service.on_event(&Event::Lost { why });
            }
        }
    }
    Ok(())
}

fn stopped(why: String) -> Event {
    Event::Stopped {
        why,
        within: child::STOPPED_MAX,
    }
}

enum End {
    Done,
    Died { why: String, was_quick: bool },
}

/// A generation, as the supervisor sees it.
struct Generation {
    pid: Pid,
    number: u32,
    messages: Receiver,
    ready_at: Option<Instant>,
    /// The deadline for its stop.
    stop_by: Option<Instant>,
    /// Its process was stopped, and is killed then.
    kill_at: Option<Instant>,
    failed: Option<String>,
    lost: Option<String>,
}

impl Generation {
    fn start<S: Service>(plan: &Plan, service: &S, start: Start) -> Result<Self, EnginesError> {
        let (sender, messages) = messages::channel()?;
        let pid = child::start(|| generation::run(plan, service, start, &sender))?;
        Ok(Self {
            pid,
            number: start.generation,
            messages,
            ready_at: None,
            stop_by: None,
            kill_at: None,
            failed: None,
            lost: None,
        })
    }

    /// Waits until the generation and all its engines have ended.
    fn supervise<S: Service>(
        mut self,
        plan: &Plan,
        service: &S,
        signals: &Signals,
    ) -> Result<End, EnginesError> {
        let status = loop {
            self.receive(service);
            if let Some(status) = self.ended(service)? {
                break status;
            }
            let now = Instant::now();
            if self.kill_at.is_some_and(|it| it <= now) {
                self.kill_at = None;
                child::kill_now(self.pid);
            }
            let left = |by: Option<Instant>| by.map(|it| it.saturating_duration_since(now));
            if left(self.stop_by) == Some(Duration::ZERO) {
                child::kill_now(self.pid);
                child::wait_for_all();
                return Err(EnginesError::Stuck(plan.stop_within.as_secs()));
            }
            let next = [self.stop_by, self.kill_at].into_iter().flatten().min();
            signals.wait(Some(self.messages.as_fd()), left(next))?;
            if signals.take_end_request()? {
                self.stop_by
                    .get_or_insert_with(|| Instant::now() + plan.stop_within);
                // It has not been waited for, so its number is still its own.
                kill(self.pid, Signal::SIGTERM)
                    .map_err(EnginesError::system("stop the engines"))?;
            }
        };
        child::wait_for_all();
        self.receive(service);
        self.judge(status)
    }

    fn receive<S: Service>(&mut self, service: &S) {
        while let Some(messages) = self.messages.next() {
            match messages {
                Message::Ready => {
                    self.ready_at = Some(Instant::now());
                    let generation = self.number;
                    service.on_event(&Event::Ready { generation });
                }
                Message::Replaced { engine, why } => {
                    service.on_event(&Event::Replaced { engine, why })
                }
                Message::Lost(why) => self.lost = Some(why),
                Message::Stopped(why) => service.on_event(&stopped(why)),
                // The first reason is the cause of the others.
                Message::Failed(why) => drop(self.failed.get_or_insert(why)),
            }
        }
    }

    /// Waits for children that have ended; the status of the generation, if it is one of them.
    fn ended<S: Service>(&mut self, service: &S) -> Result<Option<WaitStatus>, EnginesError> {
        loop {
            match child::changed() {
                Ok(Some((pid, status @ (WaitStatus::Stopped(..) | WaitStatus::Continued(_))))) => {
                    if pid == self.pid {
                        self.kill_at = child::kill_at(status);
                        if self.kill_at.is_some() {
                            let how = child::describe(status);
                            service.on_event(&stopped(format!("the keeper of the engines {how}")));
                        }
                    }
                }
                Ok(Some((pid, status))) if pid == self.pid => return Ok(Some(status)),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(Errno::ECHILD) => {
                    let text = "another part of this program waits for its processes";
                    return Err(EnginesError::Unfit(text.to_owned()));
                }
                Err(error) => {
                    return Err(error).map_err(EnginesError::system("wait for the engines"));
                }
            }
        }
    }

    fn judge(self, status: WaitStatus) -> Result<End, EnginesError> {
        if let Some(why) = self.failed {
            return Err(EnginesError::Service(why));
        }
        let why = match status {
            WaitStatus::Exited(_, DONE) => return Ok(End::Done),
            WaitStatus::Exited(_, LOST | FAILED) if self.lost.is_some() => {
                self.lost.unwrap_or_default()
            }
            other => format!(
                "the process that had forked them {}",
                child::describe(other)
            ),
        };
        if self.stop_by.is_some() {
            return Err(EnginesError::DiedStopping(why));
        }
        let was_quick = self.ready_at.is_none_or(|it| it.elapsed() < QUICK_DEATH);
        Ok(End::Died { why, was_quick })
    }
}
