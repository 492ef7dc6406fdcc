//! One session: its connection, what is spoken on it, and the transactions under way.

use std::collections::VecDeque;

use rand::rngs::SmallRng;

use crate::connecting::{Failure, Patience, connect};
use crate::connection::Connection;
use crate::error::Error;
use crate::plan::{Link, Plan};
use crate::protocol::{Conversation, Message, ProtocolError};
use crate::stop::Stop;
use crate::workload::{Actor, Answer, Ending, Kind, Numbers};

/// A transaction that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Order {
    /// Index of its kind.
    pub kind: usize,
    /// When it was meant to begin: its latency counts from here.
    pub due_ns: u64,
}

pub struct Session {
    pub number: u64,
    pub connection: Connection,
    conversation: Box<dyn Conversation>,
    actor: Box<dyn Actor>,
    /// In the order in which their next answers come.
    under_way: VecDeque<UnderWay>,
    /// Transactions that it may still begin.
    pub remaining: u64,
    /// The socket is waited for because not everything could be sent.
    pub blocked: bool,
    /// Its connection is gone.
    pub lost: bool,
}

struct UnderWay {
    order: Order,
    trip: usize,
    numbers: Numbers,
}

impl Session {
    /// Connects, and greets the server.
    pub fn open(plan: &Plan, link: &Link, number: u64, stop: &Stop) -> Result<Self, Error> {
        let patience = Patience::of_ns(link.patience_ns, stop);
        let opened = connect(&link.server, link.protocol(number), patience);
        let (connection, conversation) = opened.map_err(|failure| match failure {
            _ if stop.is_set() => Error::Stopped,
            Failure::Io(source) => Error::connect(plan, number, source),
            Failure::Protocol(source) => Error::protocol(plan, number, source),
        })?;
        Ok(Self {
            number,
            connection,
            conversation,
            actor: plan.workload.actor(number),
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

    /// Ends it because its connection is lost: what was under way, and how many transactions it
    /// has not begun.
    pub fn end(&mut self) -> (Vec<Order>, u64) {
        self.lost = true;
        let remaining = std::mem::take(&mut self.remaining);
        let under_way = self.under_way.drain(..);
        (under_way.map(|it| it.order).collect(), remaining)
    }

    /// Begins a transaction; what is to be sent is appended to `out`.
    pub fn begin(
        &mut self,
        order: Order,
        kinds: &[Kind],
        random: &mut SmallRng,
        out: &mut Vec<u8>,
    ) {
        let numbers = self.actor.begin(order.kind, random);
        let first = kinds[order.kind].trips[0].clone();
        self.conversation.ask(first, &numbers, out);
        self.under_way.push_back(UnderWay {
            order,
            trip: 0,
            numbers,
        });
    }

    /// Reads what has come, and tells of each transaction that ended.
    pub fn receive(
        &mut self,
        kinds: &[Kind],
        scratch: &mut [u8],
        out: &mut Vec<u8>,
        mut ended: impl FnMut(Order, Ending),
    ) -> Result<(), Failure> {
        let Self {
            connection,
            conversation,
            actor,
            under_way,
            ..
        } = self;
        connection.receive(scratch, |input| {
            let mut used = 0;
            while used < input.len() {
                let received = conversation.receive(&input[used..], out)?;
                used += received.consumed;
                let answer = match received.message {
                    Message::Partial => break,
                    Message::Aside | Message::Greeted => continue,
                    Message::Answer(answer) => answer,
                };
                let Some(mut doing) = under_way.pop_front() else {
                    return Err(ProtocolError::Unasked(format!("{answer:?}")).into());
                };
                match after(&mut **actor, &mut doing, kinds, &answer) {
                    Some(ending) => ended(doing.order, ending),
                    None => {
                        let trips = &kinds[doing.order.kind].trips;
                        conversation.ask(trips[doing.trip].clone(), &doing.numbers, out);
                        under_way.push_back(doing);
                    }
                }
            }
            Ok(used)
        })
    }
}

/// Ends the transaction, or moves it on to its next trip.
fn after(
    actor: &mut dyn Actor,
    doing: &mut UnderWay,
    kinds: &[Kind],
    answer: &Answer,
) -> Option<Ending> {
    let kind = doing.order.kind;
    let ending = actor.heard(kind, doing.trip, &mut doing.numbers, answer);
    doing.trip += 1;
    let over = doing.trip == kinds[kind].trips.len();
    ending.or_else(|| over.then_some(Ending::Ok))
}
