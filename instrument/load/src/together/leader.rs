//! The loads that follow, as the one sees them that leads.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

use concurve_clock::monotonic_ns;

use super::link::{Introduction, Link, Peer};
use super::meeting::{Meeting, Token};
use super::messages::{FromFollower, FromLeader, Share, TaskCounts, plain};
use crate::counts::window::WindowCounts;
use crate::error::{Error, Refusal, TogetherError};
use crate::plan::{Among, Plan, Task};
use crate::stop::Stop;
use crate::units::time;

/// A load that is at work answers within this time: after the end of a task, or at once.
const ANSWER_NS: u64 = 30_000_000_000;
/// The sessions of a load are connected within this time, each with a limit of its own.
const CONNECT_NS: u64 = 300_000_000_000;
/// So long a load may take to end, when all is measured.
const END_NS: u64 = 5_000_000_000;
/// How often the clocks are compared before a task; the shortest round trip counts. More often if that is too
/// long.
const COMPARISONS: usize = 5;
const MORE_COMPARISONS: usize = 20;
/// Half of a round trip may be this share of a window: by so much the begin of the loads may differ.
const CLOCK_SHARE_MAX: f64 = 0.02;
/// Clocks that both run evenly differ by less than this from one window to the next.
const JUMP_NS: u64 = 10_000_000;
/// A task is sent so many round trips before its begin.
const LEAD_ROUND_TRIPS: u64 = 4;
/// So many strangers are named, and so many kinds of transactions.
const NAMED_MAX: usize = 3;
const KINDS_NAMED_MAX: usize = 8;
/// How often a wait looks whether to stop.
const MOMENT: Duration = Duration::from_millis(100);

/// A load that waits for those that follow it.
#[derive(Debug)]
pub struct Leader {
    arrivals: Receiver<Arrival>,
    meeting: Meeting,
    awaited: u64,
    /// Nobody else is let in.
    is_full: Arc<AtomicBool>,
}

/// A process that has connected: a load of this search, or why it is none.
type Arrival = (SocketAddr, Result<(Link, Introduction), Error>);

impl Leader {
    /// Listens for so many loads, until the process ends. Each is admitted by itself and at once: one that
    /// says nothing keeps nobody waiting, and one that comes too late is told.
    pub fn listen(meeting: Meeting, awaited: u64, stop: &Stop) -> Result<Self, Error> {
        let bound = TcpListener::bind(&meeting.addresses[..]);
        let listener = bound.map_err(|source| TogetherError::Listen {
            address: meeting.text.clone(),
            source,
        })?;
        let (sender, arrivals) = channel();
        let is_full = Arc::new(AtomicBool::new(false));
        let admission = Admission {
            token: meeting.token.clone(),
            stop: stop.clone(),
            awaited,
            is_full: is_full.clone(),
            arrivals: sender,
        };
        thread::Builder::new()
            .name("admission".to_owned())
            .spawn(move || {
                for stream in listener.incoming() {
                    match stream {
                        Ok(stream) => admission.begin(stream),
                        // There are too many of them just now.
                        Err(_) => thread::sleep(MOMENT),
                    }
                }
            })
            .map_err(|error| Error::Thread(0, error))?;
        Ok(Self {
            arrivals,
            meeting,
            awaited,
            is_full,
        })
    }

    /// Waits until all of them have come, and lets them connect their sessions. Who is no load of this
    /// search is sent away, and does not end the wait.
    pub fn gather(self, plan: &Plan, stop: &Stop) -> Result<Followers, Error> {
        let until_ns = monotonic_ns() + self.meeting.limit_ns;
        let (mut found, mut strangers) = (Vec::new(), Vec::new());
        while (found.len() as u64) < self.awaited {
            match self.arrivals.recv_timeout(MOMENT) {
                Ok((from, Ok((link, introduction)))) => {
                    found.push(Follower::new(from, link, introduction, plan)?);
                }
                Ok((from, Err(Error::Together(TogetherError::Unmet(why))))) => {
                    strangers.push(format!("{} is {why}", from.ip()));
                }
                Ok((_, Err(error))) => return Err(error),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Error::ThreadFailed),
            }
            if stop.is_set() {
                return Err(Error::Stopped);
            }
            if (found.len() as u64) < self.awaited && monotonic_ns() >= until_ns {
                return Err(self.too_few(found.len() as u64, &strangers).into());
            }
        }
        self.is_full.store(true, Ordering::SeqCst);
        for (_, surplus) in self.arrivals.try_iter() {
            if let Ok((mut link, _)) = surplus {
                link.refuse(&Refusal::Full(self.awaited + 1));
            }
        }
        // The same order in each trial, in whatever order they came.
        found.sort_by(|a, b| a.peer.name.cmp(&b.peer.name));
        let mut all = Followers {
            all: found,
            own_sessions: plan.sessions,
            task_end_ns: 0,
            stop: stop.clone(),
        };
        all.connect()?;
        Ok(all)
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

/// Lets in the processes that connect to a leader.
struct Admission {
    token: Token,
    stop: Stop,
    awaited: u64,
    is_full: Arc<AtomicBool>,
    arrivals: Sender<Arrival>,
}

impl Admission {
    /// Has a process admitted in a thread of its own. Where there are too many of them it is left.
    fn begin(&self, stream: TcpStream) {
        let Ok(from) = stream.peer_addr() else {
            return;
        };
        let (token, stop, arrivals) =
            (self.token.clone(), self.stop.clone(), self.arrivals.clone());
        let (is_full, full) = (self.is_full.clone(), Refusal::Full(self.awaited + 1));
        let admission = move || {
            if is_full.load(Ordering::SeqCst) {
                let _ = Link::new(stream).map(|mut it| it.refuse(&full));
                return;
            }
            let arrived = admitted(stream, &token, &stop);
            // Of the last ones that were let in, some come too late.
            if let Err(unread) = arrivals.send((from, arrived))
                && let Ok((mut link, _)) = unread.0.1
            {
                link.refuse(&full);
            }
        };
        let named = thread::Builder::new().name("admission".to_owned());
        let _ = named.spawn(admission);
    }
}

fn admitted(stream: TcpStream, token: &Token, stop: &Stop) -> Result<(Link, Introduction), Error> {
    let opened = Link::new(stream);
    let mut link = opened.map_err(|error| Refusal::Stranger(error.to_string()))?;
    let introduction = link.admit(token, stop)?;
    Ok((link, introduction))
}

/// The loads that follow, all of them connected to the server.
#[derive(Debug)]
pub struct Followers {
    all: Vec<Follower>,
    own_sessions: u64,
    /// When the last task ends.
    task_end_ns: u64,
    stop: Stop,
}

#[derive(Debug)]
struct Follower {
    peer: Peer,
    sessions: u64,
    /// Its CLOCK_MONOTONIC less ours; `None` before they were compared.
    offset_ns: Option<i64>,
}

/// What a load counted in a task; or that it heard of it too late, and how much.
#[derive(Debug)]
pub enum Counted {
    Window(Box<WindowCounts>),
    Late {
        name: String,
        late_ns: u64,
        counts: Box<WindowCounts>,
    },
}

impl Followers {
    /// None: a search by one process with so many sessions.
    pub fn none(own_sessions: u64, stop: &Stop) -> Self {
        Self {
            all: Vec::new(),
            own_sessions,
            task_end_ns: 0,
            stop: stop.clone(),
        }
    }

    /// Their names and numbers of sessions.
    pub fn each(&self) -> impl Iterator<Item = (&str, u64)> {
        self.all
            .iter()
            .map(|it| (it.peer.name.as_str(), it.sessions))
    }

    /// Number of sessions of all loads, that of the leader among them.
    pub fn all_sessions(&self) -> u64 {
        self.own_sessions + self.all.iter().map(|it| it.sessions).sum::<u64>()
    }

    fn connect(&mut self) -> Result<(), Error> {
        let mut first_session = self.own_sessions;
        for (number, follower) in (1..).zip(&mut self.all) {
            follower.peer.send(&FromLeader::Connect {
                number,
                first_session,
            })?;
            first_session += follower.sessions;
        }
        let until_ns = monotonic_ns() + CONNECT_NS;
        for follower in &mut self.all {
            match follower.receive(until_ns, Some(&self.stop))? {
                FromFollower::Connected => (),
                _ => return Err(follower.peer.malformed()),
            }
        }
        Ok(())
    }

    /// Compares the clocks, and tells how long before its begin a task has to be sent that has a window of
    /// this length.
    pub fn lead_ns(&mut self, window_ns: u64) -> Result<u64, Error> {
        let mut longest_ns = 0;
        for follower in &mut self.all {
            longest_ns = longest_ns.max(follower.compare_clocks(window_ns, &self.stop)?);
        }
        Ok(LEAD_ROUND_TRIPS * longest_ns)
    }

    /// Gives each a load, of which it sends its share by its sessions. Returns the task of the leader.
    pub fn begin(&mut self, task: &Task) -> Result<Task, Error> {
        let (mut first, all) = (self.own_sessions, self.all_sessions());
        self.task_end_ns = task.end_ns();
        for follower in &mut self.all {
            let part = Task {
                begin_ns: follower.there(task.begin_ns),
                among: Some(Among { first, all }),
                ..*task
            };
            follower.peer.send(&FromLeader::Begin(part))?;
            first += follower.sessions;
        }
        Ok(Task {
            among: Some(Among { first: 0, all }),
            ..*task
        })
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

    /// Ends them, with the share that each had in the search. Returns who had the CPUs of their machines, if
    /// they were busy. All is measured by now, so a load that is gone takes nothing away.
    pub fn end(mut self, shares: &[Share]) -> Vec<String> {
        for (follower, share) in self.all.iter_mut().zip(shares) {
            let _ = follower.peer.send(&FromLeader::End(*share));
        }
        // Where the run was stopped in a task, they hear of it after that.
        let until_ns = monotonic_ns().max(self.task_end_ns) + END_NS;
        let busy = self.all.iter_mut().filter_map(|follower| {
            loop {
                match follower.receive(until_ns, None) {
                    // Of the task in which the run was stopped.
                    Ok(FromFollower::Ended(_) | FromFollower::Clock { .. }) => (),
                    Ok(FromFollower::Left { machine_busy }) => {
                        return machine_busy
                            .map(|it| format!("{}: {}", follower.peer.name, plain(&it)));
                    }
                    _ => return None,
                }
            }
        });
        busy.collect()
    }
}

impl Follower {
    /// A load that was admitted, if it sends the same transactions.
    fn new(
        from: SocketAddr,
        mut link: Link,
        introduction: Introduction,
        plan: &Plan,
    ) -> Result<Self, Error> {
        let role = introduction.role.map(|it| plain(&it));
        let name = role.unwrap_or_else(|| from.to_string());
        let own = plan.kind_names();
        if introduction.kinds != own {
            let why = Refusal::Transactions {
                theirs: listed(&introduction.kinds),
                ours: listed(&own),
            };
            link.refuse(&why);
            return Err(TogetherError::Refused { with: name, why }.into());
        }
        Ok(Self {
            peer: Peer { name, link },
            sessions: introduction.sessions,
            offset_ns: None,
        })
    }

    fn receive(&mut self, until_ns: u64, stop: Option<&Stop>) -> Result<FromFollower, Error> {
        match self.peer.receive(until_ns, stop)? {
            FromFollower::Failed { why } => Err(TogetherError::Failed {
                name: self.peer.name.clone(),
                why: plain(&why),
            }
            .into()),
            message => Ok(message),
        }
    }

    /// Reads its clock in the middle of a round trip, several times. Returns the shortest round trip.
    fn compare_clocks(&mut self, window_ns: u64, stop: &Stop) -> Result<u64, Error> {
        let most_ns = (2.0 * CLOCK_SHARE_MAX * window_ns as f64) as u64;
        let (mut shortest_ns, mut offset_ns) = (u64::MAX, 0);
        for count in 0..MORE_COMPARISONS {
            if count >= COMPARISONS && shortest_ns <= most_ns {
                break;
            }
            let asked_ns = monotonic_ns();
            self.peer.send(&FromLeader::Clock)?;
            let answer = self.receive(asked_ns + ANSWER_NS, Some(stop))?;
            let FromFollower::Clock { now_ns } = answer else {
                return Err(self.peer.malformed());
            };
            let round_trip_ns = monotonic_ns() - asked_ns;
            if round_trip_ns < shortest_ns {
                shortest_ns = round_trip_ns;
                offset_ns = now_ns.wrapping_sub(asked_ns + shortest_ns / 2) as i64;
            }
        }
        if shortest_ns > most_ns {
            return Err(TogetherError::Far {
                name: self.peer.name.clone(),
                round_trip: time(shortest_ns as f64),
                window: time(window_ns as f64),
            }
            .into());
        }
        let by_ns = offset_ns.abs_diff(self.offset_ns.unwrap_or(offset_ns));
        if by_ns > JUMP_NS + shortest_ns {
            return Err(TogetherError::Jumped {
                name: self.peer.name.clone(),
                by: time(by_ns as f64),
            }
            .into());
        }
        self.offset_ns = Some(offset_ns);
        Ok(shortest_ns)
    }

    /// A time on our clock, on its clock.
    fn there(&self, ns: u64) -> u64 {
        ns.saturating_add_signed(self.offset_ns.unwrap_or(0))
    }

    fn finish(&mut self, task: &Task, until_ns: u64, stop: &Stop) -> Result<Counted, Error> {
        let answer = self.receive(until_ns, Some(stop))?;
        let FromFollower::Ended(counts) = answer else {
            return Err(self.peer.malformed());
        };
        let TaskCounts {
            mut window,
            late_ns,
        } = *counts;
        if !window.is_sound(self.sessions) {
            return Err(self.peer.malformed());
        }
        for texts in [&mut window.lost, &mut window.ended.errors] {
            for (text, count) in std::mem::take(texts) {
                *texts.entry(plain(&text)).or_default() += count;
            }
        }
        let counts = Box::new(window);
        if late_ns > task.measure_ns() - task.begin_ns {
            let name = self.peer.name.clone();
            return Ok(Counted::Late {
                name,
                late_ns,
                counts,
            });
        }
        Ok(Counted::Window(counts))
    }
}

/// Names, as far as they fit into a message.
fn listed(names: &[String]) -> String {
    let shown = names.iter().take(KINDS_NAMED_MAX).map(|it| plain(it));
    let mut shown = Vec::from_iter(shown);
    if names.len() > KINDS_NAMED_MAX {
        shown.push(format!("and {} more", names.len() - KINDS_NAMED_MAX));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::command_line::Arguments;
    use crate::counts::tally::Tally;
    use crate::plan::{End, Pace, Spread};

    const WINDOW_NS: u64 = 1_000_000_000;

    fn plan() -> Plan {
        let called = ["concurve-load", "redis://127.0.0.1:1", "--workload", "ping"];
        Arguments::parse_from([&called[..], &["--sessions", "2"]].concat())
            .plan()
            .unwrap()
    }

    fn task() -> Task {
        Task {
            begin_ns: monotonic_ns() + 20_000_000,
            warm_up_ns: 1_000_000_000,
            pace: Pace::Open {
                rate_per_second: 10.0,
                spread: Spread::Poisson,
                backlog_max: 1,
            },
            end: End::After { ns: 1_000_000 },
            ..Task::NONE
        }
    }

    fn window() -> Box<TaskCounts> {
        Box::new(TaskCounts {
            window: WindowCounts::of(vec![Tally::new(1, 2)], 0.1),
            late_ns: 0,
        })
    }

    /// A leader with as many followers as scripts: each gets the messages of the leader, from `Connect` on,
    /// and answers.
    fn gathered<const N: usize>(
        scripts: [fn(&mut Link, FromLeader); N],
    ) -> Result<Followers, Error> {
        let meeting = Meeting::at("--listen", "127.0.0.1:1", None, 10_000_000_000).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let meeting = Meeting {
            addresses: vec![address],
            ..meeting
        };
        let stop = Stop::new().unwrap();
        let leader = Leader::listen(meeting, N as u64, &stop).unwrap();
        let plan = plan();
        for (number, script) in scripts.into_iter().enumerate() {
            let introduction = Introduction {
                role: Some(format!("load-{number}\n")),
                sessions: 2,
                kinds: plan.kind_names(),
            };
            thread::spawn(move || {
                let stop = Stop::new().unwrap();
                let mut link = Link::new(TcpStream::connect(address).unwrap()).unwrap();
                link.join(&Token::default(), &introduction, &stop).unwrap();
                while let Ok(message) = link.receive(u64::MAX, None) {
                    script(&mut link, message);
                }
            });
        }
        leader.gather(&plan, &stop)
    }

    fn answer(link: &mut Link, asked: FromLeader) {
        let answer = match asked {
            FromLeader::Connect { .. } => FromFollower::Connected,
            FromLeader::Clock => FromFollower::Clock {
                now_ns: monotonic_ns(),
            },
            FromLeader::Begin(_) => FromFollower::Ended(window()),
            FromLeader::End(_) => FromFollower::Left { machine_busy: None },
            _ => return,
        };
        let _ = link.send(&answer);
    }

    /// What a leader says of a follower that answers as it should, but for one message.
    fn said_of(script: fn(&mut Link, FromLeader)) -> String {
        let measured = || -> Result<(), Error> {
            let mut followers = gathered([script])?;
            for _ in 0..2 {
                followers.lead_ns(WINDOW_NS)?;
                let task = task();
                followers.begin(&task)?;
                followers.finish(&task)?;
            }
            Ok(())
        };
        match measured() {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn each_load_has_sessions_of_its_own_among_all() {
        let mut followers = gathered([answer, answer]).unwrap();
        assert_eq!(followers.all_sessions(), 6);
        // A name is a line, whatever the other process says.
        let names = Vec::from_iter(followers.each().map(|it| it.0.to_owned()));
        assert_eq!(names, ["load-0\u{fffd}", "load-1\u{fffd}"]);
        followers.lead_ns(WINDOW_NS).unwrap();
        let task = task();
        let own = followers.begin(&task).unwrap();
        assert_eq!(own.among, Some(Among { first: 0, all: 6 }));
        let counted = followers.finish(&task).unwrap();
        assert!(matches!(
            counted[..],
            [Counted::Window(_), Counted::Window(_)]
        ));
        assert!(followers.end(&[Share::default(); 2]).is_empty());
    }

    #[test]
    fn a_follower_that_breaks_the_rules_is_named() {
        assert_eq!(said_of(answer), "");
        let said = said_of(|link, asked| match asked {
            FromLeader::Begin(_) => {
                let mut counts = window();
                counts.window.ended.ok = u64::MAX;
                let _ = link.send(&FromFollower::Ended(counts));
            }
            other => answer(link, other),
        });
        assert!(
            said.contains("load-0\u{fffd} was lost: it sent what no load sends"),
            "{said}"
        );
        let said = said_of(|link, asked| match asked {
            FromLeader::Clock => {
                let _ = link.send(&FromFollower::Connected);
            }
            other => answer(link, other),
        });
        assert!(said.contains("what no load sends"), "{said}");
        let said = said_of(|link, asked| match asked {
            FromLeader::Begin(_) => {
                let why = "no\u{1b}[31m disk".to_owned();
                let _ = link.send(&FromFollower::Failed { why });
            }
            other => answer(link, other),
        });
        assert!(said.contains("failed: no\u{fffd}[31m disk"), "{said}");
    }

    #[test]
    fn clocks_that_jump_and_ways_that_are_long_are_named() {
        let said = said_of(|link, asked| match asked {
            FromLeader::Clock => {
                use std::sync::atomic::AtomicU64;
                static ASKED: AtomicU64 = AtomicU64::new(0);
                let jumped = ASKED.fetch_add(1, Ordering::SeqCst) >= COMPARISONS as u64;
                let now_ns = monotonic_ns() + 1_000_000_000_000 * u64::from(jumped);
                let _ = link.send(&FromFollower::Clock { now_ns });
            }
            other => answer(link, other),
        });
        assert!(said.contains("its clock jumped by"), "{said}");
        let said = said_of(|link, asked| {
            if matches!(asked, FromLeader::Clock) {
                thread::sleep(Duration::from_millis(60));
            }
            answer(link, asked);
        });
        assert!(said.contains("a round trip takes"), "{said}");
    }

    #[test]
    fn a_load_that_is_gone_at_the_end_takes_nothing_away() {
        let mut followers = gathered([answer, |link, asked| match asked {
            FromLeader::End(_) => {}
            other => answer(link, other),
        }])
        .unwrap();
        followers.lead_ns(WINDOW_NS).unwrap();
        assert!(followers.end(&[Share::default(); 2]).is_empty());
    }

    #[test]
    fn a_late_load_says_how_late() {
        let mut followers = gathered([|link, asked| match asked {
            FromLeader::Begin(task) => {
                let mut counts = window();
                counts.late_ns = task.measure_ns() - task.begin_ns + 1;
                let _ = link.send(&FromFollower::Ended(counts));
            }
            other => answer(link, other),
        }])
        .unwrap();
        followers.lead_ns(WINDOW_NS).unwrap();
        let task = task();
        followers.begin(&task).unwrap();
        let counted = followers.finish(&task).unwrap();
        assert!(matches!(
            counted[..],
            [Counted::Late {
                late_ns: 1_000_000_001,
                ..
            }]
        ));
    }
}
