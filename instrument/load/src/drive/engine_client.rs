//! A client thread of an embedded engine: one session, which calls the engine and waits.

use std::sync::mpsc::Receiver;

use concurve_clock::monotonic_ns;
use rand::SeedableRng;
use rand::rngs::SmallRng;

use super::open_loop::{Due, OpenLoop};
use super::recorder::{Outstanding, Recorder, Traffic, WorkerMessage};
use super::session::ScheduledTransaction;
use crate::engine::{EngineError, EngineSession, OpenEngine};
use crate::plan::{End, Pace, Plan, Task};
use crate::stop::Stop;
use crate::workload::{Ending, Generator, draw_kind};

/// Opens a session, then does one task after the other.
pub fn run(
    plan: &Plan,
    engine: &dyn OpenEngine,
    number: u64,
    stop: &Stop,
    tasks: &Receiver<Task>,
    send: &mut dyn FnMut(WorkerMessage),
) -> Result<(), EngineError> {
    let begin_ns = monotonic_ns();
    engine.session(number, &mut |session| {
        let mut client = EngineClient {
            plan,
            number,
            stop,
            session,
            generator: plan.workload.generator(plan.first_session + number),
            random: SmallRng::seed_from_u64(plan.seed ^ (number << 32)),
            recorder: Recorder::new(plan, number, &[monotonic_ns() - begin_ns]),
        };
        send(WorkerMessage::Ready);
        while let Ok(task) = tasks.recv() {
            client.serve(task, send);
        }
    })
}

struct EngineClient<'a> {
    plan: &'a Plan,
    number: u64,
    stop: &'a Stop,
    session: &'a mut dyn EngineSession,
    generator: Box<dyn Generator>,
    random: SmallRng,
    recorder: Recorder,
}

/// When the next transaction begins.
enum NextTransaction {
    /// At this time; the following one this long after the reply.
    Closed { due_ns: u64, think_ns: u64 },
    /// By a schedule; `due_ns` is the due time of the next transaction, if one is due.
    Open {
        open_loop: OpenLoop,
        due_ns: Option<u64>,
    },
}

impl EngineClient<'_> {
    fn serve(&mut self, task: Task, send: &mut dyn FnMut(WorkerMessage)) {
        self.recorder.begin(task);
        let mut remaining = match task.end {
            End::Transactions { number, .. } => self.plan.transactions_of(self.number, number),
            End::After { .. } => u64::MAX,
        };
        let mut next = self.first(&task, remaining);
        let mut now = monotonic_ns();
        loop {
            self.recorder.advance(now, || traffic(self.session), send);
            let is_done = remaining == 0 || next.is_over();
            if is_done || self.stop.is_set() || now >= task.end_ns() {
                break;
            }
            match self.due_ns(&mut next, now) {
                Some(due_ns) if due_ns <= now => {
                    // Transactions of the warm-up are not part of the number asked for.
                    remaining -= u64::from(due_ns >= task.measure_ns());
                    now = self.execute(due_ns, now);
                    next.answered(now);
                }
                due_ns => {
                    let due_ns = due_ns.unwrap_or(u64::MAX);
                    self.stop.wait_until(due_ns.min(self.recorder.due_ns()));
                    now = monotonic_ns();
                }
            }
        }
        let kinds = self.plan.workload.kinds();
        let random = &mut self.random;
        let mut waiting = Vec::new();
        if let NextTransaction::Open { open_loop, due_ns } = next {
            let wait = |due_ns| Outstanding::waiting(draw_kind(kinds, random), due_ns);
            waiting.extend(due_ns.map(wait));
            let behind = self.recorder.end_schedule(open_loop, now, kinds, random);
            waiting.extend(behind);
        }
        let traffic = traffic(self.session);
        let tally = self
            .recorder
            .finish(now, waiting.into_iter(), &[remaining], traffic, send);
        send(WorkerMessage::Ended(Box::new(tally)));
    }

    /// When the session begins its first transaction of a task; it is to do so many.
    fn first(&mut self, task: &Task, number: u64) -> NextTransaction {
        let own = task.part(self.number..self.number + 1, self.plan.sessions);
        let random = &mut self.random;
        let open = OpenLoop::of(task, &own, number, [0].into(), random);
        match (open, task.pace) {
            (Some(open_loop), _) => NextTransaction::Open {
                open_loop,
                due_ns: None,
            },
            (None, Pace::Closed { think_ns }) => NextTransaction::Closed {
                due_ns: task.begin_ns + task.ramp_ns * self.number / self.plan.sessions,
                think_ns,
            },
            (None, Pace::Open { .. }) => unreachable!("an open loop has a schedule"),
        }
    }

    /// When the next transaction is due, or the schedule must be checked again.
    fn due_ns(&mut self, next: &mut NextTransaction, now: u64) -> Option<u64> {
        match next {
            NextTransaction::Closed { due_ns, .. } => Some(*due_ns),
            NextTransaction::Open { open_loop, due_ns } => {
                while let Some(due) = open_loop.next(now, &mut self.random) {
                    let kinds = self.plan.workload.kinds();
                    self.recorder.due(due, kinds, &mut self.random);
                    if let Due::Begin { due_ns: begin, .. } = due {
                        *due_ns = Some(begin);
                    }
                }
                due_ns.or(Some(open_loop.due_ns()))
            }
        }
    }

    /// Executes a transaction; returns when it was answered.
    fn execute(&mut self, due_ns: u64, begun_ns: u64) -> u64 {
        self.recorder.begun(due_ns, begun_ns);
        let kind = draw_kind(self.plan.workload.kinds(), &mut self.random);
        let ending = self.run_round_trips(kind);
        let now = monotonic_ns();
        self.recorder.ended(
            0,
            ScheduledTransaction {
                kind,
                due_ns,
                begun_ns,
            },
            now,
            ending,
        );
        now
    }

    fn run_round_trips(&mut self, kind: usize) -> Ending {
        let mut parameters = self.generator.begin(kind, &mut self.random);
        let round_trips = &self.plan.workload.kinds()[kind].round_trips;
        for (index, statements) in round_trips.iter().enumerate() {
            let answer = self.session.execute(statements.clone(), &parameters);
            let ending = self
                .generator
                .answered(kind, index, &mut parameters, &answer);
            if let Some(ending) = ending {
                return ending;
            }
        }
        Ending::Ok
    }
}

impl NextTransaction {
    /// Whether none is to come, because what was to be begun was skipped.
    fn is_over(&self) -> bool {
        match self {
            Self::Closed { .. } => false,
            Self::Open { open_loop, .. } => open_loop.is_over(1),
        }
    }

    /// A transaction was answered.
    fn answered(&mut self, now: u64) {
        match self {
            Self::Closed { due_ns, think_ns } => *due_ns = now + *think_ns,
            Self::Open { open_loop, due_ns } => *due_ns = open_loop.free(0),
        }
    }
}

fn traffic(session: &dyn EngineSession) -> Traffic {
    Traffic {
        waits: session.waits(),
        ..Traffic::default()
    }
}
