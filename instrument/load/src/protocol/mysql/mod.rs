//! The protocol of MariaDB and MySQL: the handshake of version 10, prepared statements executed in
//! binary, and several statements as one text.
//!
//! A trip of one statement executes what was prepared when the connection began. A trip of several
//! is a text, because there alone the server stops at the first error: of commands sent one behind
//! the other it would go on to the next, and end a transaction that it had rolled back.

use std::sync::Arc;

use super::{Conversation, Protocol, ProtocolError};
use crate::workload::Statement;

mod conversation;
mod handshake;
mod packet;
mod password;
mod refusal;
mod reply;
mod request;
mod url;

pub use url::{FORMS, parse as parse_url};

use conversation::Connection;
use request::Template;

const NAME: &str = "MySQL's protocol";

/// How connections begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    pub user: String,
    pub password: Option<String>,
    pub database: Option<String>,
    /// Variables of the server, set for each connection.
    pub settings: Vec<(String, String)>,
    /// Over a Unix socket, where nobody can read along.
    pub local: bool,
}

impl Greeting {
    fn password(&self) -> &str {
        self.password.as_deref().unwrap_or_default()
    }
}

/// What all connections of a run share.
#[derive(Debug)]
pub struct MySql {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    templates: Vec<Template>,
    greeting: Greeting,
}

impl MySql {
    pub fn new(statements: &[Statement], greeting: Greeting) -> Self {
        let templates = statements.iter().map(Template::of).collect();
        Self {
            shared: Arc::new(Shared {
                templates,
                greeting,
            }),
        }
    }
}

impl Protocol for MySql {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(Connection::new(self.shared.clone()))
    }
}

fn garbled(input: &[u8]) -> ProtocolError {
    ProtocolError::Garbage(shown(input), NAME)
}

fn shown(input: &[u8]) -> String {
    String::from_utf8_lossy(&input[..input.len().min(40)]).into_owned()
}

#[cfg(test)]
mod tests;
