//! Administrative connections to a server: a connection of their own, on which nothing is prepared.

use std::io::ErrorKind;
use std::sync::Arc;

use super::connect::{ConnectionError, Deadline, connect, connect_remedy, exchange};
use super::socket::BufferedSocket;
use crate::admin::{AdminAccess, AdminConnection, AdminError};
use crate::protocol::{Conversation, Endpoint, Message, Protocol};
use crate::stop::Stop;
use crate::workload::Answer;

/// Opens administrative connections to a server.
#[derive(Debug)]
pub struct ServerAdmin {
    pub endpoint: Endpoint,
    pub protocol: Arc<dyn Protocol>,
    pub connect_timeout_ns: u64,
    /// For each answer; `None` without a limit.
    pub answer_timeout_ns: Option<u64>,
}

struct ServerAdminConnection {
    socket: BufferedSocket,
    conversation: Box<dyn Conversation>,
    answer_timeout_ns: Option<u64>,
    stop: Stop,
}

impl AdminAccess for ServerAdmin {
    fn open(&self, _create: bool, stop: &Stop) -> Result<Box<dyn AdminConnection>, AdminError> {
        let deadline = Deadline::after_ns(self.connect_timeout_ns, stop);
        let why = match connect(&self.endpoint, &*self.protocol, deadline) {
            Ok((socket, conversation)) => {
                return Ok(Box::new(ServerAdminConnection {
                    socket,
                    conversation,
                    answer_timeout_ns: self.answer_timeout_ns,
                    stop: stop.clone(),
                }));
            }
            Err(_) if stop.is_set() => return Err(AdminError::Stopped),
            Err(ConnectionError::Protocol(source)) => source.to_string(),
            Err(ConnectionError::Io(source)) => {
                format!("cannot connect: {source}; {}", connect_remedy(&source))
            }
        };
        Err(AdminError::Connect {
            server: self.endpoint.name(),
            why,
        })
    }
}

impl AdminConnection for ServerAdminConnection {
    fn execute(&mut self, statement: &str) -> Result<Option<i64>, AdminError> {
        let mut out = Vec::new();
        self.conversation.request_once(statement, &mut out);
        let deadline = match self.answer_timeout_ns {
            Some(ns) => Deadline::after_ns(ns, &self.stop),
            None => Deadline::never(&self.stop),
        };
        let answered = exchange(
            &mut self.socket,
            &mut *self.conversation,
            &mut out,
            deadline,
        );
        match answered {
            Ok(Message::Answer(Answer::Done(number))) => Ok(number),
            Ok(Message::Answer(Answer::Error(why))) => Err(AdminError::refused(statement, why)),
            Ok(_) => Ok(None),
            Err(_) if self.stop.is_set() => Err(AdminError::Stopped),
            Err(ConnectionError::Io(why)) if why.kind() == ErrorKind::TimedOut => {
                Err(AdminError::no_answer(statement, &why))
            }
            Err(ConnectionError::Io(why)) => Err(AdminError::lost(statement, &why)),
            Err(ConnectionError::Protocol(why)) => Err(AdminError::lost(statement, &why)),
        }
    }
}
