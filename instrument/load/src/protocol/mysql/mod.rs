//! The protocol of MariaDB and MySQL: the handshake of version 10, prepared statements executed in
//! binary, and several statements as one text.
//!
//! A round trip of one statement executes what was prepared when the connection began. A round trip
//! of several is one text, because only then the server stops at the first error: after a failed
//! command it would execute the commands sent after it, and commit what is left of a transaction that
//! it has rolled back.

use std::sync::Arc;

use super::{Conversation, Protocol};
use crate::workload::Statement;

mod conversation;
mod handshake;
mod login;
mod packet;
mod refusal;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use login::{FORMS, Login, parse_url};

use conversation::{MySqlConversation, Shared};
use request::Template;

/// MySQL's protocol, with the statements of a workload.
#[derive(Debug)]
pub struct MySql {
    shared: Arc<Shared>,
}

impl MySql {
    pub fn new(statements: &[Statement], login: Login) -> Self {
        let templates = statements.iter().map(Template::of).collect();
        Self {
            shared: Arc::new(Shared { templates, login }),
        }
    }
}

impl Protocol for MySql {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(MySqlConversation::new(self.shared.clone()))
    }
}
