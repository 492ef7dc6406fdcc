//! PostgreSQL: version 3 of its protocol, extended queries, without TLS. From 9.6 on.
//!
//! Every statement is prepared once a connection. A round trip is Bind and Execute of each of its
//! statements and one Sync, sent together; it is answered when the server is ready for the next.

use std::sync::{Arc, OnceLock};

use super::{Conversation, Protocol};
use crate::workload::Statement;

mod conversation;
mod login;
mod message;
mod request;
#[cfg(test)]
mod tests;
mod url;

pub use login::Login;
pub use url::{FORMS, parse_url};

use conversation::{PostgresConversation, Shared};
use request::Query;

/// PostgreSQL's protocol, with the statements of a workload.
#[derive(Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
}

impl Postgres {
    pub fn new(statements: &[Statement], login: Login) -> Self {
        let queries = statements.iter().filter(|it| !it.is_new).enumerate();
        let queries = queries.map(|(index, statement)| Query::of(index, statement));
        Self {
            shared: Arc::new(Shared {
                login,
                statements: statements.to_vec(),
                queries: queries.collect(),
                templates: OnceLock::new(),
            }),
        }
    }
}

impl Protocol for Postgres {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(PostgresConversation::new(self.shared.clone()))
    }
}
