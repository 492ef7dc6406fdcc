//! A session with a server: its socket, its conversation, and the transactions under way.

use std::collections::VecDeque;

use rand::rngs::SmallRng;

use crate::connection::{BufferedSocket, ConnectionError, Deadline, connect, connect_remedy};
use crate::error::Error;
use crate::plan::{Plan, ServerTarget};
use crate::protocol::{Conversation, Message, ProtocolError};
use crate::stop::Stop;
use crate::workload::{Answer, Ending, Generator, Parameters, TransactionKind};

/// A transaction that a session is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScheduledTransaction {
    /// Index of its kind.
    pub kind: usize,
    /// When it was due: its latency counts from here.
    pub due_ns: u64,
    /// When it was begun.
    pub begun_ns: u64,
}

pub struct Session {
    pub number: u64,
    pub socket: BufferedSocket,
    conversation: Box<dyn Conversation>,
    generator: Box<dyn Generator>,
    /// In the order in which their next answers come.
    under_way: VecDeque<UnderWay>,
    /// Transactions that it may still begin.
    pub remaining: u64,
    /// It waits until its socket is writable, because not everything could be sent.
    pub blocked: bool,
    /// Its connection is gone.
    pub lost: bool,
}

struct UnderWay {
    transaction: ScheduledTransaction,
    round_trip: usize,
    parameters: Parameters,
}

impl Session {
    /// Connects and logs in.
    pub fn open(
        plan: &Plan,
        server: &ServerTarget,
        number: u64,
        stop: &Stop,
    ) -> Result<Self, Error> {
        let deadline = Deadline::after_ns(server.connect_timeout_ns, stop);
        let opened = connect(
            &server.endpoint,
            server.protocol(plan.first_session + number),
            deadline,
        );
        let (socket, conversation) = opened.map_err(|error| match error {
            _ if stop.is_set() => Error::Stopped,
            ConnectionError::Io(source) => Error::Connect {
                session: number,
                server: server.endpoint.name(),
                remedy: connect_remedy(&source),
                source,
            },
            ConnectionError::Protocol(source) => Error::Protocol {
                session: number,
                server: server.endpoint.name(),
                source,
            },
        })?;
        Ok(Self {
            number,
            socket,
            conversation,
            generator: plan.workload.generator(plan.first_session + number),
            under_way: VecDeque::new(),
            remaining: 0,
            blocked: false,
            lost: false,
        })
    }

    /// Transactions under way.
    pub fn under_way(&self) -> u32 {
        self.under_way.len() as u32
    }

    /// The code of the error by which the server has said that it closes the connection, if it has.
    pub fn farewell(&self) -> Option<&str> {
        self.conversation.farewell()
    }

    /// The transactions that have begun and are not answered.
    pub fn begun(&self) -> impl Iterator<Item = ScheduledTransaction> + '_ {
        self.under_way.iter().map(|it| it.transaction)
    }

    /// Ends it because its connection is lost: returns the transactions that were under way, and the
    /// number of those that were not begun.
    pub fn end(&mut self) -> (Vec<ScheduledTransaction>, u64) {
        self.lost = true;
        let remaining = std::mem::take(&mut self.remaining);
        let under_way = self.under_way.drain(..);
        (under_way.map(|it| it.transaction).collect(), remaining)
    }

    /// Begins a transaction; bytes to send are appended to `out`.
    pub fn begin(
        &mut self,
        transaction: ScheduledTransaction,
        kinds: &[TransactionKind],
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) {
        let parameters = self.generator.begin(transaction.kind, random);
        let first = kinds[transaction.kind].round_trips[0].clone();
        self.conversation.request(first, &parameters, out);
        self.under_way.push_back(UnderWay {
            transaction,
            round_trip: 0,
            parameters,
        });
    }

    /// Reads from the socket, and calls `ended` for each transaction that has ended.
    pub fn receive(
        &mut self,
        kinds: &[TransactionKind],
        scratch: &mut [u8],
        out: &mut Vec<u8>,
        mut ended: impl FnMut(ScheduledTransaction, Ending),
    ) -> Result<(), ConnectionError> {
        let Self {
            socket,
            conversation,
            generator,
            under_way,
            ..
        } = self;
        socket.receive(scratch, |input| {
            let mut used = 0;
            while used < input.len() {
                let received = conversation.receive(&input[used..], out)?;
                used += received.consumed;
                let answer = match received.message {
                    Message::Partial => break,
                    Message::Intermediate | Message::Ready => continue,
                    Message::Answer(answer) => answer,
                };
                let Some(mut current) = under_way.pop_front() else {
                    return Err(ProtocolError::Unasked(format!("{answer:?}")).into());
                };
                match advance(&mut **generator, &mut current, kinds, &answer) {
                    Some(ending) => ended(current.transaction, ending),
                    None => {
                        let round_trips = &kinds[current.transaction.kind].round_trips;
                        let next = round_trips[current.round_trip].clone();
                        conversation.request(next, &current.parameters, out);
                        under_way.push_back(current);
                    }
                }
            }
            Ok(used)
        })
    }
}

/// Takes the answer to a round trip: the ending of the transaction, or `None` if another round trip
/// follows.
fn advance(
    generator: &mut dyn Generator,
    current: &mut UnderWay,
    kinds: &[TransactionKind],
    answer: &Answer,
) -> Option<Ending> {
    let kind = current.transaction.kind;
    let ending = generator.answered(kind, current.round_trip, &mut current.parameters, answer);
    current.round_trip += 1;
    let was_last = current.round_trip == kinds[kind].round_trips.len();
    ending.or_else(|| was_last.then_some(Ending::Ok))
}
