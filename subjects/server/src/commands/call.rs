//! A command as it is executed, and the rows of the table of commands.

use crate::keys::{KeyService, LeaseService};
use crate::locks::service::LockService;
use crate::logins::LoginService;
use crate::net::incidents::Incident;
use crate::records::RecordService;
use crate::request::{Arguments, Flow};
use crate::resp::writer::Writer;
use crate::session::Session;
use crate::state::SharedState;
use crate::statements::StatementService;

/// A command being executed on a service `S`.
pub struct Call<'a, S> {
    pub service: &'a S,
    /// The engine that executes it, from 0.
    pub engine: usize,
    pub session: &'a mut Session,
    pub arguments: Arguments<'a>,
    pub reply: Writer<'a>,
}

/// Executes a command.
pub type Handler<S> = fn(&mut Call<S>) -> Result<Flow, Fault>;

/// The handler of a command, by the service that it needs.
pub enum Run {
    Locks(Handler<LockService>),
    Leases(Handler<LeaseService>),
    Keys(Handler<KeyService>),
    Records(Handler<RecordService>),
    Statements(Handler<StatementService>),
    /// Commands about the connection, which may log in.
    Connection(Handler<LoginService>),
    /// Commands about the server as a whole.
    Server(Handler<SharedState>),
    /// Commands about the table of commands itself.
    Table(Handler<CommandTable>),
}

/// A row of the table of commands.
pub struct Command {
    pub name: &'static str,
    /// Number of arguments, counting the name; if negative, the minimum.
    pub arity: i8,
    /// Allowed before the password was given.
    pub open: bool,
    /// The server keeps something of it after the reply, besides records.
    pub keeps: bool,
    /// The arguments after the name, as the help shows them.
    pub arguments: &'static str,
    pub summary: &'static str,
    pub run: Run,
}

/// The commands of a service: its own, then those that all services have. A search goes through
/// them in this order, so the most frequent commands come first.
pub struct CommandTable {
    pub own: &'static [Command],
    pub common: &'static [Command],
}

impl CommandTable {
    pub fn commands(&self) -> impl Iterator<Item = &'static Command> + use<> {
        self.own.iter().chain(self.common)
    }

    pub fn find(&self, name: &[u8]) -> Option<&'static Command> {
        let mut commands = self.commands();
        commands.find(|it| it.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

/// An error reply: a code for programs, and a message for users.
pub struct Fault {
    pub code: &'static str,
    pub message: String,
    /// The connection ends after it.
    pub closes: bool,
    /// What is counted with it.
    pub incidents: &'static [Incident],
}

impl Fault {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code,
            message,
            closes: false,
            incidents: &[],
        }
    }

    /// One that ends the connection.
    pub fn closing(
        code: &'static str,
        message: impl Into<String>,
        incidents: &'static [Incident],
    ) -> Self {
        Self {
            closes: true,
            incidents,
            ..Self::new(code, message)
        }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new("ERR", message)
    }
}

/// A number in an argument.
pub fn number(text: &[u8], what: &str) -> Result<u64, Fault> {
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|it| it.parse().ok());
    parsed.ok_or_else(|| {
        let text = String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned();
        Fault::usage(format!(
            "{what} '{text}' is not a whole number of 0 or more"
        ))
    })
}

/// Text of a client, shortened for a message.
pub fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned()
}
