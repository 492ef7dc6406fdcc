//! The process that stays: it forks generations, and touches no shared memory.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::WaitStatus;
use nix::unistd::Pid;
use std::os::fd::AsFd;

use crate::processes::QUICK;
use crate::processes::child::{self, DONE, FAILED, LOST};
use crate::processes::generation;
use crate::processes::news::{self, News, Receiver};
use crate::service::{Event, Plan, Service, Start};
use crate::signals::Signals;
use crate::{EnginesError, While, memory};

/// Forks a generation after the other until one ends in order or for a reason of the service.
pub fn serve<S: Service>(plan: &Plan, service: &S) -> Result<(), EnginesError> {
    if memory::is_open() {
        let text = "the shared memory is open already: each generation opens its own";
        return Err(EnginesError::Unfit(text.to_owned()));
    }
    let signals = Signals::block(&[Signal::SIGTERM, Signal::SIGINT, Signal::SIGCHLD])?;
    // Engines whose generation was killed become children of the keeper, which waits for them: the
    // next generation opens logs that nobody else may write any more.
    prctl::set_child_subreaper(true).when("wait for the children of children")?;
    let ended = keep(plan, service, &signals);
    let _ = prctl::set_child_subreaper(false);
    ended
}

fn keep<S: Service>(plan: &Plan, service: &S, signals: &Signals) -> Result<(), EnginesError> {
    let mut quick = 0;
    for generation in 1.. {
        let start = Start { generation };
        match Generation::start(plan, service, start)?.attend(plan, service, signals)? {
            End::Done => break,
            End::Died { why, was_quick } => {
                quick = if was_quick { quick + 1 } else { 0 };
                if quick >= plan.quick_deaths_max {
                    return Err(EnginesError::KeepsDying { count: quick, why });
                }
                service.tell(&Event::Lost { why });
            }
        }
    }
    Ok(())
}

enum End {
    Done,
    Died { why: String, was_quick: bool },
}

/// A generation, as its keeper sees it.
struct Generation {
    pid: Pid,
    number: u32,
    news: Receiver,
    ready_at: Option<Instant>,
    /// When it is to have stopped.
    stop_by: Option<Instant>,
    failed: Option<String>,
    lost: Option<String>,
}

impl Generation {
    fn start<S: Service>(plan: &Plan, service: &S, start: Start) -> Result<Self, EnginesError> {
        let (sender, news) = news::channel()?;
        let pid = child::start(|| generation::run(plan, service, start, &sender))?;
        Ok(Self {
            pid,
            number: start.generation,
            news,
            ready_at: None,
            stop_by: None,
            failed: None,
            lost: None,
        })
    }

    /// Waits for its end, and for those of all its engines.
    fn attend<S: Service>(
        mut self,
        plan: &Plan,
        service: &S,
        signals: &Signals,
    ) -> Result<End, EnginesError> {
        let status = loop {
            self.hear(service);
            if let Some(status) = self.ended()? {
                break status;
            }
            let left = self
                .stop_by
                .map(|it| it.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                child::kill_now(self.pid);
                child::wait_for_all();
                return Err(EnginesError::Stuck(plan.stop_within.as_secs()));
            }
            signals.wait(Some(self.news.as_fd()), left)?;
            if signals.asks_to_end()? {
                self.stop_by
                    .get_or_insert_with(|| Instant::now() + plan.stop_within);
                // It has not been waited for: the number is its own.
                kill(self.pid, Signal::SIGTERM).when("stop the engines")?;
            }
        };
        child::wait_for_all();
        self.hear(service);
        self.judge(status)
    }

    fn hear<S: Service>(&mut self, service: &S) {
        while let Some(news) = self.news.next() {
            match news {
                News::Ready => {
                    self.ready_at = Some(Instant::now());
                    let generation = self.number;
                    service.tell(&Event::Ready { generation });
                }
                News::Replaced { engine, why } => service.tell(&Event::Replaced { engine, why }),
                News::Lost(why) => self.lost = Some(why),
                // The first reason is the cause of the others.
                News::Failed(why) => drop(self.failed.get_or_insert(why)),
            }
        }
    }

    /// Waits for children that have ended; how the generation did, if it is one of them.
    fn ended(&self) -> Result<Option<WaitStatus>, EnginesError> {
        loop {
            match child::ended() {
                Ok(Some((pid, status))) if pid == self.pid => return Ok(Some(status)),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(None),
                Err(Errno::ECHILD) => {
                    let text = "its processes are waited for by somebody else in this program";
                    return Err(EnginesError::Unfit(text.to_owned()));
                }
                Err(error) => return Err(error).when("wait for the engines"),
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
            other => format!("the process that had forked them {}", child::words(other)),
        };
        if self.stop_by.is_some() {
            return Err(EnginesError::DiedStopping(why));
        }
        let was_quick = self.ready_at.is_none_or(|it| it.elapsed() < QUICK);
        Ok(End::Died { why, was_quick })
    }
}
