//! How connections begin, by what is at the other end.

use super::prepared::{Anew, Prepared, is_statement};
use super::request::{Request, Template};
use crate::workload::Statement;
use crate::workload::statement::Piece;

/// How connections begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Greeting {
    /// RESP 3 instead of 2.
    pub resp3: bool,
    pub user: Option<String>,
    pub password: Option<String>,
    pub database: u32,
    pub service: Service,
}

/// What is at the other end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Service {
    /// Keys and values: each command is for itself.
    #[default]
    Keys,
    /// The reference server's records. As with the next one there are transactions, which must be
    /// aborted after an error.
    Records,
    /// The reference server's statements, which are prepared.
    Statements,
}

impl Greeting {
    /// What is sent for the statement of this number.
    pub fn template(&self, number: usize, statement: &Statement) -> Template {
        let is_statement = match statement.pieces.first() {
            Some(Piece::Text(text)) => is_statement(text),
            _ => false,
        };
        match self.service {
            Service::Statements if statement.is_new => Template::Anew(Anew::of(statement)),
            Service::Statements if is_statement => {
                Template::Prepared(Prepared::of(number, statement))
            }
            _ => Template::Words(Request::of(statement)),
        }
    }

    /// The commands that a connection begins with.
    pub fn commands(&self) -> Vec<Vec<&str>> {
        let login = self.password.as_deref().map(|password| {
            let user = self.user.as_deref();
            (user, password)
        });
        let mut commands = Vec::new();
        match (self.resp3, login) {
            (false, None) => {}
            (false, Some((None, password))) => commands.push(vec!["AUTH", password]),
            (false, Some((Some(user), password))) => commands.push(vec!["AUTH", user, password]),
            (true, None) => commands.push(vec!["HELLO", "3"]),
            (true, Some((user, password))) => {
                let user = user.unwrap_or("default");
                commands.push(vec!["HELLO", "3", "AUTH", user, password]);
            }
        }
        if self.service != Service::Keys && commands.is_empty() {
            // Its data are asked for next, however long that takes: is it there at all?
            commands.push(vec!["PING"]);
        }
        commands
    }
}
