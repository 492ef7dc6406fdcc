//! PostgreSQL: version 3 of its protocol, extended queries, without TLS. From 9.6 on.
//!
//! Every statement is prepared once a connection. A trip is Bind and Execute of each of its
//! statements and one Sync, sent together; it is answered when the server is ready for the next.

use std::sync::{Arc, OnceLock};

use super::{Conversation, Protocol, ProtocolError};
use crate::workload::Statement;

mod conversation;
mod errors;
mod log_in;
mod message;
mod request;
#[cfg(test)]
mod tests;
mod url;

pub use log_in::Greeting;
pub use url::{FORMS, parse as parse_url};

use conversation::Connection;
use request::{New, Prepared, Query, Template};

const NAME: &str = "PostgreSQL";

/// What all connections of a run share.
#[derive(Debug)]
pub struct Postgres {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    greeting: Greeting,
    statements: Vec<Statement>,
    /// Those that are prepared.
    queries: Vec<Query>,
    /// Made when the first connection has heard the types of the parameters; the same for all.
    templates: OnceLock<Vec<Template>>,
}

impl Postgres {
    pub fn new(statements: &[Statement], greeting: Greeting) -> Self {
        let queries = statements.iter().filter(|it| !it.is_new).enumerate();
        let queries = queries.map(|(number, statement)| Query::of(number, statement));
        Self {
            shared: Arc::new(Shared {
                greeting,
                statements: statements.to_vec(),
                queries: queries.collect(),
                templates: OnceLock::new(),
            }),
        }
    }
}

impl Shared {
    /// What is sent, when the types of all parameters are known.
    fn templates_of(&self, types: &[Vec<u32>]) -> Result<Vec<Template>, ProtocolError> {
        let mut prepared = self.queries.iter().enumerate();
        let mut next = || {
            let (number, query) = prepared.next().expect("one for each that is not new");
            match types.get(number) {
                Some(types) if types.len() == query.places.len() => Ok(Prepared::of(query, types)),
                _ => Err(refused(query, "it has parameters beside its numbers")),
            }
        };
        let template = |statement: &Statement| match statement.is_new {
            true => Ok(Template::New(New::of(statement))),
            false => next().map(Template::Prepared),
        };
        self.statements.iter().map(template).collect()
    }
}

impl Protocol for Postgres {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(Connection::new(self.shared.clone()))
    }
}

fn refused(query: &Query, text: &str) -> ProtocolError {
    ProtocolError::Statement(query.text.clone(), text.to_owned())
}
