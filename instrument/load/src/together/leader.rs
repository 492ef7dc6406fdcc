//! The loads that follow, as the one sees them that leads.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use concurve_clock::monotonic_ns;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::error::{Refusal, TogetherError};
use super::link::{Introduction, Link, LinkError};
use super::meeting::{Meeting, Token};
use super::messages::{FromFollower, FromLeader, Part, TaskCounts};
use crate::counts::tally::Tally;
use crate::error::Error;
use crate::plan::{Pace, Plan, Task};
use crate::stop::Stop;
use crate::units::time;

/// So long a process may take that has connected to show that it is a load.
const ADMISSION_NS: u64 = 5_000_000_000;
/// A load that is at work answers within this time: after the end of a task, or at once.
const ANSWER_NS: u64 = 30_000_000_000;
/// How often the clocks are compared before a task; the shortest round trip counts.
const COMPARISONS: usize = 5;
/// A task is sent so many round trips before its begin.
const LEAD_ROUND_TRIPS: u64 = 4;
/// So many strangers are named.
const NAMED_MAX: usize = 3;

/// A load that waits for those that follow it.
#[derive(Debug)]
pub struct Leader {
    listener: TcpListener,
    meeting: Meeting,
    awaited: u64,
}

/// A process that has connected: a load of this search, or why it is none.
type Arrival = (SocketAddr, Result<(Link, Introduction), Error>);

impl Leader {
    /// Listens for so many loads.
    pub fn listen(meeting: Meeting, awaited: u64) -> Result<Self, Error> {
        let bound = TcpListener::bind(&meeting.addresses[..]).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        let listener = bound.map_err(|source| TogetherError::Listen {
            address: meeting.text.clone(),
            source,
        })?;
        Ok(Self {
            listener,
            meeting,
            awaited,
        })
    }

    /// Waits until all of them have come, and lets them connect their sessions. Who is no load of this
    /// search is sent away, and does not end the wait.
    pub fn gather(self, plan: &Plan, stop: &Stop) -> Result<Followers, Error> {
        let until_ns = monotonic_ns() + self.meeting.limit_ns;
        let (sender, arrivals) = channel();
        let (mut found, mut strangers) = (Vec::new(), Vec::new());
        while (found.len() as u64) < self.awaited {
            self.accept(&sender, stop)?;
            while let Ok((from, arrived)) = arrivals.try_recv() {
                match arrived {
                    Ok((link, introduction)) => {
                        found.push(Follower::new(from, link, introduction, plan)?);
                    }
                    Err(Error::Together(TogetherError::Unmet(why))) => {
                        strangers.push(format!("{} is {why}", from.ip()));
                    }
                    Err(error) => return Err(error),
                }
            }
            if monotonic_ns() >= until_ns {
                return Err(self.too_few(found.len() as u64, &strangers).into());
            }
        }
        // The same order in each trial, in whatever order they came.
        found.sort_by(|a, b| a.name.cmp(&b.name));
        let mut all = Followers {
            all: found,
            stop: stop.clone(),
        };
        all.connect()?;
        Ok(all)
    }

    /// Waits a moment for the next process, and has it admitted meanwhile: one that says nothing keeps
    /// nobody waiting.
    fn accept(&self, arrivals: &Sender<Arrival>, stop: &Stop) -> Result<(), Error> {
        let moment = Timespec {
            tv_sec: 0,
            tv_nsec: 20_000_000,
        };
        let mut waits = [
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(stop, PollFlags::IN),
        ];
        // A wait that is interrupted is a short one.
        let _ = poll(&mut waits, Some(&moment));
        if stop.is_set() {
            return Err(Error::Stopped);
        }
        let Ok((stream, from)) = self.listener.accept() else {
            return Ok(());
        };
        let (token, stop, arrivals) = (self.meeting.token.clone(), stop.clone(), arrivals.clone());
        thread::Builder::new()
            .name("admission".to_owned())
            .spawn(move || {
                let _ = arrivals.send((from, admitted(stream, &token, &stop)));
            })
            .map_err(|error| Error::Thread(0, error))?;
        Ok(())
    }

    fn too_few(&self, came: u64, strangers: &[String]) -> TogetherError {
        let named = strangers.iter().take(NAMED_MAX).cloned();
        let refused = match strangers.len() {
            0 => String::new(),
            _ => format!(" ({})", Vec::from_iter(named).join("; ")),
        };
        TogetherError::TooFew {
            awaited: self.awaited,
            came,
            address: self.meeting.text.clone(),
            limit: time(self.meeting.limit_ns as f64),
            refused,
        }
    }
}

fn admitted(stream: TcpStream, token: &Token, stop: &Stop) -> Result<(Link, Introduction), Error> {
    // Of the listener a connection may inherit that it does not wait.
    let blocks = stream.set_nonblocking(false);
    let opened = blocks.and_then(|()| Link::new(stream));
    let mut link = opened.map_err(|error| Refusal::Stranger(error.to_string()))?;
    let introduction = link.admit(token, monotonic_ns() + ADMISSION_NS, stop)?;
    Ok((link, introduction))
}

/// The loads that follow, all of them connected to the server.
#[derive(Debug)]
pub struct Followers {
    all: Vec<Follower>,
    stop: Stop,
}

#[derive(Debug)]
struct Follower {
    name: String,
    link: Link,
    sessions: u64,
    /// Its CLOCK_MONOTONIC less ours.
    offset_ns: i64,
}

/// What a load counted in a task, by the clock of the leader.
#[derive(Debug)]
pub struct Counted {
    pub tally: Tally,
    pub busiest_share: f64,
}

impl Followers {
    /// None: a search by one process.
    pub fn none(stop: &Stop) -> Self {
        Self {
            all: Vec::new(),
            stop: stop.clone(),
        }
    }

    /// Their names and numbers of sessions.
    pub fn each(&self) -> impl Iterator<Item = (&str, u64)> {
        self.all.iter().map(|it| (it.name.as_str(), it.sessions))
    }

    /// Number of sessions of all of them.
    pub fn sessions(&self) -> u64 {
        self.all.iter().map(|it| it.sessions).sum()
    }

    fn connect(&mut self) -> Result<(), Error> {
        for (number, follower) in (1..).zip(&mut self.all) {
            follower.send(&FromLeader::Connect { number })?;
        }
        for follower in &mut self.all {
            // Each session has a time limit of its own.
            match follower.receive(u64::MAX, Some(&self.stop))? {
                FromFollower::Connected => (),
                other => return Err(follower.unexpected(other)),
            }
        }
        Ok(())
    }

    /// Compares the clocks, and tells how long before its begin a task has to be sent.
    pub fn lead_ns(&mut self) -> Result<u64, Error> {
        let mut longest_ns = 0;
        for follower in &mut self.all {
            longest_ns = longest_ns.max(follower.compare_clocks(&self.stop)?);
        }
        Ok(LEAD_ROUND_TRIPS * longest_ns)
    }

    /// Gives each its share of a load, by its sessions among all; `own` are those of the leader. Returns
    /// the leader's share.
    pub fn begin(&mut self, task: &Task, own: u64) -> Result<Task, Error> {
        let all = (own + self.sessions()) as f64;
        for (turn, follower) in (1..).zip(&mut self.all) {
            let mut part = part_of(task, follower.sessions as f64 / all, turn);
            part.begin_ns = follower.there(part.begin_ns);
            follower.send(&FromLeader::Begin(part))?;
        }
        Ok(part_of(task, own as f64 / all, 0))
    }

    /// Waits until all have ended a task; what each counted.
    pub fn finish(&mut self, task: &Task) -> Result<Vec<Counted>, Error> {
        let until_ns = task.end_ns().saturating_add(ANSWER_NS);
        let stop = &self.stop;
        let counted = self
            .all
            .iter_mut()
            .map(|it| it.finish(task, until_ns, stop));
        counted.collect()
    }

    /// Ends them, with the part that each had in the search. Returns who had the CPUs of their machines, if
    /// they were busy.
    pub fn end(mut self, parts: &[Part]) -> Result<Vec<String>, Error> {
        let mut busy = Vec::new();
        for (follower, part) in self.all.iter_mut().zip(parts) {
            follower.send(&FromLeader::End(part.clone()))?;
            // What has been measured is told also where the run was stopped.
            let mut answer = follower.receive(monotonic_ns() + ANSWER_NS, None)?;
            if let FromFollower::Ended(_) = answer {
                // Of the task in which the run was stopped.
                answer = follower.receive(monotonic_ns() + ANSWER_NS, None)?;
            }
            match answer {
                FromFollower::Left { machine_busy } => {
                    busy.extend(machine_busy.map(|it| format!("{}: {it}", follower.name)));
                }
                other => return Err(follower.unexpected(other)),
            }
        }
        Ok(busy)
    }
}

/// A load's part of a task. Where transactions are due at constant intervals, the loads take turns.
fn part_of(task: &Task, share: f64, turn: u64) -> Task {
    let pace = match task.pace {
        Pace::Open {
            rate_per_second,
            spread,
            backlog_max,
            ..
        } => Pace::Open {
            rate_per_second: rate_per_second * share,
            spread,
            backlog_max: (backlog_max as f64 * share).ceil() as usize,
            first_ns: Some(((turn + 1) as f64 * 1e9 / rate_per_second) as u64),
        },
        closed => closed,
    };
    Task { pace, ..*task }
}

impl Follower {
    /// A load that was admitted, if it sends the same transactions.
    fn new(
        from: SocketAddr,
        mut link: Link,
        introduction: Introduction,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let name = introduction.role.unwrap_or_else(|| from.to_string());
        let own = plan.kind_names();
        if introduction.kinds != own {
            let why = Refusal::Transactions {
                theirs: introduction.kinds.join(", "),
                ours: own.join(", "),
            };
            link.refuse(&why);
            return Err(TogetherError::Refused { with: name, why }.into());
        }
        Ok(Self {
            name,
            link,
            sessions: introduction.sessions,
            offset_ns: 0,
        })
    }

    fn send(&mut self, message: &FromLeader) -> Result<(), Error> {
        let sent = self.link.send(message);
        sent.map_err(|error| self.lost(&error))
    }

    fn receive(&mut self, until_ns: u64, stop: Option<&Stop>) -> Result<FromFollower, Error> {
        match self.link.receive(until_ns, stop) {
            Ok(FromFollower::Failed { why }) => Err(TogetherError::Failed {
                name: self.name.clone(),
                why,
            }
            .into()),
            Ok(message) => Ok(message),
            Err(LinkError::Stopped) => Err(Error::Stopped),
            Err(error) => Err(self.lost(&error)),
        }
    }

    fn lost(&self, error: &LinkError) -> Error {
        let (name, why) = (self.name.clone(), error.to_string());
        TogetherError::Lost { name, why }.into()
    }

    fn unexpected(&self, _: FromFollower) -> Error {
        self.lost(&LinkError::Malformed)
    }

    /// Reads its clock in the middle of a round trip, several times. Returns the shortest round trip.
    fn compare_clocks(&mut self, stop: &Stop) -> Result<u64, Error> {
        let mut shortest_ns = u64::MAX;
        for _ in 0..COMPARISONS {
            let asked_ns = monotonic_ns();
            self.send(&FromLeader::Clock)?;
            let answer = self.receive(asked_ns + ANSWER_NS, Some(stop))?;
            let FromFollower::Clock { now_ns } = answer else {
                return Err(self.unexpected(answer));
            };
            let answered_ns = monotonic_ns();
            if answered_ns - asked_ns < shortest_ns {
                shortest_ns = answered_ns - asked_ns;
                self.offset_ns = now_ns as i64 - (asked_ns + shortest_ns / 2) as i64;
            }
        }
        Ok(shortest_ns)
    }

    /// A time on our clock, on its clock.
    fn there(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.offset_ns)
    }

    fn finish(&mut self, task: &Task, until_ns: u64, stop: &Stop) -> Result<Counted, Error> {
        let answer = self.receive(until_ns, Some(stop))?;
        let FromFollower::Ended(counts) = answer else {
            return Err(self.unexpected(answer));
        };
        let TaskCounts {
            mut tally,
            busiest_share,
            late_ns,
        } = *counts;
        if late_ns > task.measure_ns() - task.begin_ns {
            return Err(TogetherError::Late {
                name: self.name.clone(),
                late: time(late_ns as f64),
            }
            .into());
        }
        for at_ns in [&mut tally.begin_ns, &mut tally.end_ns] {
            *at_ns = at_ns.saturating_add_signed(-self.offset_ns);
        }
        Ok(Counted {
            tally,
            busiest_share,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{End, Spread};

    #[test]
    fn the_parts_of_a_load_are_the_load() {
        let task = Task {
            begin_ns: 50,
            pace: Pace::Open {
                rate_per_second: 1e3,
                spread: Spread::Constant,
                backlog_max: 10,
                first_ns: None,
            },
            end: End::After { ns: 1_000_000 },
            ..Task::NONE
        };
        let parts = [(0, 0.5), (1, 0.25), (2, 0.25)].map(|(turn, it)| part_of(&task, it, turn));
        let (mut rate, mut firsts) = (0.0, Vec::new());
        for part in parts {
            let Pace::Open {
                rate_per_second,
                first_ns,
                ..
            } = part.pace
            else {
                panic!("an open loop stays one");
            };
            rate += rate_per_second;
            firsts.push(first_ns.unwrap());
            assert_eq!((part.begin_ns, part.end), (task.begin_ns, task.end));
        }
        assert_eq!(rate, 1e3);
        // They take turns: none sends at the same time as another.
        assert_eq!(firsts, [1_000_000, 2_000_000, 3_000_000]);
        let closed = Task {
            pace: Pace::Closed { think_ns: 0 },
            ..task
        };
        assert_eq!(part_of(&closed, 0.5, 1), closed);
    }
}
