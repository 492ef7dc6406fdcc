//! RESP 2 and 3: Redis, Valkey and the reference server.

use std::sync::Arc;

use super::{Conversation, Protocol};
use crate::workload::Statement;

mod conversation;
mod login;
mod refusal;
mod reply;
mod request;
#[cfg(test)]
mod tests;

pub use login::{
    FORMS, Login, RECORDS_FORMS, STATEMENTS_FORMS, Service, parse_bare, parse_service, parse_url,
};

use conversation::{RespConversation, Shared};
use request::{Template, begins_transaction};

/// RESP, with the statements of a workload.
#[derive(Debug)]
pub struct Resp {
    shared: Arc<Shared>,
}

impl Resp {
    pub fn new(statements: &[Statement], login: Login) -> Self {
        let indexed = statements.iter().enumerate();
        let templates = indexed.map(|(index, it)| Template::of(login.service, index, it));
        Self {
            shared: Arc::new(Shared {
                templates: templates.collect(),
                abort: abort(login.service, statements),
                login,
            }),
        }
    }
}

/// The command that ends an open transaction of these statements, if there may be one.
fn abort(service: Service, statements: &[Statement]) -> Option<&'static str> {
    match service {
        Service::Records | Service::Statements => Some("ABORT"),
        Service::Keys => statements
            .iter()
            .any(begins_transaction)
            .then_some("DISCARD"),
    }
}

impl Protocol for Resp {
    fn conversation(&self) -> Box<dyn Conversation> {
        Box::new(RespConversation::new(self.shared.clone()))
    }
}
