//! RESP 2 and 3: Redis, Valkey and the reference server.

use std::sync::Arc;

use super::{Conversation, Protocol};
use crate::workload::Statement;

mod conversation;
mod greeting;
mod prepared;
mod reply;
mod request;
#[cfg(test)]
mod tests;
mod url;

pub use greeting::{Greeting, Service};
pub use url::{
    FORMS, RECORDS_FORMS, STATEMENTS_FORMS, parse as parse_url, parse_bare, parse_service,
};

use conversation::Connection;
use prepared::Prepared;
use request::Template;

const NAME: &str = "RESP";

/// What all connections of a run share.
#[derive(Debug)]
pub struct Resp {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    templates: Vec<Template>,
    greeting: Greeting,
}

impl Resp {
    pub fn new(statements: &[Statement], greeting: Greeting) -> Self {
        let template =
            |(number, statement): (usize, &Statement)| greeting.template(number, statement);
        let templates = statements.iter().enumerate().map(template).collect();
        Self {
            shared: Arc::new(Shared {
                templates,
                greeting,
            }),
        }
    }
}

impl Shared {
    fn has_transactions(&self) -> bool {
        self.greeting.service != Service::Keys
    }

    /// What connections prepare, last of all when they begin.
    fn prepared(&self) -> impl DoubleEndedIterator<Item = &Prepared> {
        self.templates.iter().filter_map(|it| match it {
            Template::Prepared(prepared) => Some(prepared),
            _ => None,
        })
    }

    /// Which statement an answer is about when so many are still to come of the greeting.
    fn prepared_by(&self, awaited: usize) -> Option<&Prepared> {
        self.prepared().rev().nth(awaited)
    }
}

impl Protocol for Resp {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(Connection::new(self.shared.clone()))
    }
}
