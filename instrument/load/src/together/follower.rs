//! A load that follows another one: it does what that one asks for, and tells what it counted.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpStream;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use concurve_clock::monotonic_ns;
use concurve_reporter::line::Edge;
use concurve_reporter::{Reporter, role};

use super::link::{Introduction, Link, Peer};
use super::meeting::Meeting;
use super::messages::{FromFollower, FromLeader, Share, TaskCounts, plain};
use crate::counts::tally::add_counts;
use crate::counts::window::WindowCounts;
use crate::drive::{Workers, report_edge};
use crate::error::{Error, Refusal, TogetherError};
use crate::failures::Failures;
use crate::figures::busiest_share;
use crate::figures::machine::MachineBefore;
use crate::plan::{Pace, Plan, Task};
use crate::stop::Stop;

/// How often a load that leads is looked for.
const RETRY: Duration = Duration::from_millis(100);
/// The part of a seed that the number of a load changes: no thread's or role's.
const SEED_SHIFT: u32 = 48;

/// What a load did that followed another one.
#[derive(Debug, Default)]
pub struct Followed {
    /// Where it found the load that led.
    pub leader: String,
    /// Its share in the search, as the leader counted it.
    pub share: Share,
    /// Whether it was given a task at all.
    has_begun: bool,
    pub busiest_share: f64,
    /// Its sessions that lost their connection, by reason.
    pub lost: BTreeMap<String, u64>,
    /// What the search does not depend on: an engine could not be closed.
    pub failures: Failures,
}

/// Finds the load that leads, connects the sessions when it says so, and does its tasks until it ends the
/// search.
pub fn follow(
    mut plan: Plan,
    meeting: &Meeting,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<(Arc<Plan>, Followed), Error> {
    let mut link = find(meeting, stop)?;
    let own = Introduction {
        role: role(),
        sessions: plan.sessions,
        kinds: plan.kind_names(),
    };
    link.join(&meeting.token, &own, stop)?;
    let mut leader = Peer {
        link,
        name: format!("the load that leads at {}", meeting.text),
    };
    match leader.receive(u64::MAX, Some(stop))? {
        FromLeader::Connect {
            number,
            first_session,
        } => {
            plan.seed ^= number << SEED_SHIFT;
            plan.first_session = first_session;
        }
        FromLeader::Refused { why } => return Err(Refusal::Told(plain(&why)).into()),
        _ => return Err(leader.malformed()),
    }
    let plan = Arc::new(plan);
    let mut followed = connected(&plan, &mut leader, reporter, stop).map_err(|error| {
        let (error, why) = match error {
            Error::Stopped => (TogetherError::Stopped.into(), "it was stopped".to_owned()),
            other => {
                let why = other.to_string();
                (other, why)
            }
        };
        // The leader tells its user why, and not only that this load is gone.
        let _ = leader.send(&FromFollower::Failed { why });
        error
    })?;
    followed.leader.clone_from(&meeting.text);
    Ok((plan, followed))
}

/// The load that leads may be started later than this one.
fn find(meeting: &Meeting, stop: &Stop) -> Result<Link, Error> {
    let until_ns = monotonic_ns() + meeting.limit_ns;
    loop {
        let left = Duration::from_nanos(until_ns.saturating_sub(monotonic_ns()));
        match connect(meeting, left) {
            Ok(link) => return Ok(link),
            Err(source) if monotonic_ns() >= until_ns => {
                let address = meeting.text.clone();
                return Err(TogetherError::NoLeader { address, source }.into());
            }
            Err(_) => thread::sleep(RETRY.min(left)),
        }
        if stop.is_set() {
            return Err(Error::Stopped);
        }
    }
}

fn connect(meeting: &Meeting, limit: Duration) -> io::Result<Link> {
    let mut failed = io::Error::from(io::ErrorKind::TimedOut);
    for address in &meeting.addresses {
        // A firewall that drops packets must not keep Ctrl-C from ending this.
        let tried = TcpStream::connect_timeout(address, limit.clamp(RETRY, Duration::from_secs(1)));
        match tried.and_then(Link::new) {
            Ok(link) => return Ok(link),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// Connects the sessions, and does one task after the other.
fn connected(
    plan: &Arc<Plan>,
    leader: &mut Peer,
    reporter: &Reporter,
    stop: &Stop,
) -> Result<Followed, Error> {
    let mut workers = Workers::connect(plan, stop)?;
    leader.send(&FromFollower::Connected)?;
    reporter.ready()?;
    let machine = MachineBefore::outside_studies(reporter);
    let mut followed = Followed::default();
    loop {
        match leader.receive(u64::MAX, Some(stop))? {
            FromLeader::Clock => {
                let now_ns = monotonic_ns();
                leader.send(&FromFollower::Clock { now_ns })?;
            }
            FromLeader::Begin(task) if task.is_sound(plan.sessions) => {
                if !followed.has_begun {
                    report_edge(reporter, "measure", Edge::Begin, Some(task.begin_ns))?;
                }
                let counts = counted(&task, &mut workers)?;
                if stop.is_set() {
                    return Err(Error::Stopped);
                }
                followed.add(&task, &counts.window);
                leader.send(&FromFollower::Ended(Box::new(counts)))?;
            }
            FromLeader::End(share) => {
                if followed.has_begun {
                    report_edge(reporter, "measure", Edge::End, Some(monotonic_ns()))?;
                }
                followed.share = share;
                followed.failures.note(workers.end());
                let has_server = plan.target.is_server_here();
                let machine_busy = machine.and_then(|it| it.busy_since(has_server));
                // All is done, whether the leader still hears it or not.
                let _ = leader.send(&FromFollower::Left { machine_busy });
                return Ok(followed);
            }
            _ => return Err(leader.malformed()),
        }
    }
}

fn counted(task: &Task, workers: &mut Workers) -> Result<TaskCounts, Error> {
    let late_ns = monotonic_ns().saturating_sub(task.begin_ns);
    workers.begin(task)?;
    let tallies = workers.finish(&mut |_, _| {})?;
    let busiest = busiest_share(&tallies);
    Ok(TaskCounts {
        window: WindowCounts::of(tallies, busiest),
        late_ns,
    })
}

impl Followed {
    fn add(&mut self, task: &Task, counts: &WindowCounts) {
        self.has_begun = true;
        // In a closed loop without pauses a client is to be busy.
        if let Pace::Open { .. } = task.pace {
            self.busiest_share = self.busiest_share.max(counts.busiest_share);
        }
        add_counts(&mut self.lost, &counts.lost);
    }
}
