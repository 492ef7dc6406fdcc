//! A client thread of an embedded engine: one session, which calls and waits.

use std::sync::mpsc::Receiver;

use concurve_clock::monotonic_ns;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use crate::counting::{Counting, Moved};
use crate::crew::Said;
use crate::embedded::{Engine, EngineError, EngineSession};
use crate::open_loop::{Due, OpenLoop};
use crate::plan::{End, Pace, Plan};
use crate::session::Order;
use crate::stop::Stop;
use crate::task::Task;
use crate::workload::{Actor, Ending, draw};

/// The life of a session: opens it, then does one task after the other.
pub fn run(
    plan: &Plan,
    engine: &dyn Engine,
    number: u64,
    stop: &Stop,
    tasks: &Receiver<Task>,
    say: &mut dyn FnMut(Said),
) -> Result<(), EngineError> {
    let begin_ns = monotonic_ns();
    engine.session(number, &mut |session| {
        let mut client = Client {
            plan,
            number,
            stop,
            session,
            actor: plan.workload.actor(number),
            random: SmallRng::seed_from_u64(plan.seed ^ (number << 32)),
            counting: Counting::new(plan, &[monotonic_ns() - begin_ns]),
        };
        say(Said::Ready);
        while let Ok(task) = tasks.recv() {
            client.serve(task, say);
        }
    })
}

struct Client<'a> {
    plan: &'a Plan,
    number: u64,
    stop: &'a Stop,
    session: &'a mut dyn EngineSession,
    actor: Box<dyn Actor>,
    random: SmallRng,
    counting: Counting,
}

/// When transactions begin.
enum Turn {
    /// At this time; then again so long after the answer.
    Closed { due_ns: u64, think_ns: u64 },
    /// By a schedule; the one that is due, if one is.
    Open {
        schedule: OpenLoop,
        due_ns: Option<u64>,
    },
}

impl Client<'_> {
    fn serve(&mut self, task: Task, say: &mut dyn FnMut(Said)) {
        self.counting.begin(task);
        let mut turn = self.first(&task);
        let mut remaining = match task.end {
            End::Transactions(total) => self.plan.transactions_of(self.number, total),
            End::After { .. } => u64::MAX,
        };
        let mut now = monotonic_ns();
        loop {
            self.counting.turn(now, || moved(self.session), say);
            if remaining == 0 || self.stop.is_set() || now >= task.end_ns() {
                break;
            }
            match self.next(&mut turn, now) {
                Some(due_ns) if due_ns <= now => {
                    // Those of the warm-up come on top of the number asked for.
                    remaining -= u64::from(due_ns >= task.measure_ns());
                    now = self.transact(due_ns, now);
                    turn.answered(now);
                }
                due_ns => {
                    let due_ns = due_ns.unwrap_or(u64::MAX);
                    self.stop.by(due_ns.min(self.counting.due_ns()));
                    now = monotonic_ns();
                }
            }
        }
        let tally = self.counting.finish(now, 0, moved(self.session), say);
        say(Said::Ended(Box::new(tally)));
    }

    fn first(&mut self, task: &Task) -> Turn {
        let own = 1.0 / self.plan.sessions as f64;
        let open = OpenLoop::of(task, self.number, own, [0].into(), &mut self.random);
        match (open, task.pace) {
            (Some(schedule), _) => Turn::Open {
                schedule,
                due_ns: None,
            },
            (None, Pace::Closed { think_ns }) => Turn::Closed {
                due_ns: task.begin_ns + task.ramp_ns * self.number / self.plan.sessions,
                think_ns,
            },
            (None, Pace::Open { .. }) => unreachable!("an open loop has a schedule"),
        }
    }

    /// When the next transaction is due, or the schedule must be looked at again.
    fn next(&mut self, turn: &mut Turn, now: u64) -> Option<u64> {
        match turn {
            Turn::Closed { due_ns, .. } => Some(*due_ns),
            Turn::Open { schedule, due_ns } => {
                while let Some(due) = schedule.next(now, &mut self.random) {
                    self.counting.due(due == Due::Skipped);
                    if let Due::Begin { due_ns: begin, .. } = due {
                        *due_ns = Some(begin);
                    }
                }
                due_ns.or(Some(schedule.schedule.due_ns()))
            }
        }
    }

    /// Does a transaction; when it was answered.
    fn transact(&mut self, due_ns: u64, now: u64) -> u64 {
        self.counting.begun(due_ns, now);
        let kind = draw(self.plan.workload.kinds(), &mut self.random);
        let ending = self.play(kind);
        let now = monotonic_ns();
        self.counting.ended(0, Order { kind, due_ns }, now, ending);
        now
    }

    fn play(&mut self, kind: usize) -> Ending {
        let mut numbers = self.actor.begin(kind, &mut self.random);
        let trips = &self.plan.workload.kinds()[kind].trips;
        for (trip, statements) in trips.iter().enumerate() {
            let answer = self.session.execute(statements.clone(), &numbers);
            if let Some(ending) = self.actor.heard(kind, trip, &mut numbers, &answer) {
                return ending;
            }
        }
        Ending::Ok
    }
}

impl Turn {
    /// A transaction was answered.
    fn answered(&mut self, now: u64) {
        match self {
            Self::Closed { due_ns, think_ns } => *due_ns = now + *think_ns,
            Self::Open { schedule, due_ns } => *due_ns = schedule.free(0),
        }
    }
}

fn moved(session: &dyn EngineSession) -> Moved {
    Moved {
        waits: session.waits(),
        ..Moved::default()
    }
}
