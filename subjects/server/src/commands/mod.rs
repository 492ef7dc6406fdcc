//! What clients may ask: the table of commands, and how one is executed.

mod connection;
mod leases;
mod locks;
mod monitor;
mod names;
mod records;
pub mod scripts;
pub mod server;
pub mod session;
mod statements;

pub use records::confirm;
pub use session::Session;

use concurve_records::command::Words;

use crate::hall::{Hall, count};
use crate::resp::parser::Span;
use crate::resp::writer::Writer;

/// What happens after a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flow {
    /// Its reply was written.
    Done,
    /// It waits for a lock: nothing was written, and it is to be executed again.
    Wait,
    /// It waits for a lock, and its session is called: nothing was written, and it is to be
    /// executed again then, or a little later anyway.
    Parked,
    /// It is done, and nothing was written: [`confirm`] promises it.
    Unconfirmed,
    /// Its reply was written, and the connection ends.
    Close,
}

impl Flow {
    /// Whether it is to be executed again.
    pub fn is_again(self) -> bool {
        matches!(self, Flow::Wait | Flow::Parked)
    }
}

/// The arguments of a request, the name of the command first.
#[derive(Debug, Clone, Copy)]
pub struct Arguments<'a> {
    pub bytes: &'a [u8],
    pub spans: &'a [Span],
}

impl Words for Arguments<'_> {
    fn count(&self) -> usize {
        self.len()
    }

    fn word(&self, at: usize) -> &[u8] {
        self.at(at)
    }
}

impl<'a> Arguments<'a> {
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    pub fn get(&self, at: usize) -> Option<&'a [u8]> {
        let (start, end) = *self.spans.get(at)?;
        self.bytes.get(start as usize..end as usize)
    }

    /// An argument that the number of arguments promises.
    pub fn at(&self, at: usize) -> &'a [u8] {
        self.get(at).unwrap_or_default()
    }

    /// Arguments from `at` on.
    pub fn from(&self, at: usize) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let (bytes, spans) = (self.bytes, self.spans.get(at..).unwrap_or_default());
        spans
            .iter()
            .map(|&(start, end)| &bytes[start as usize..end as usize])
    }
}

/// A command being executed.
pub struct Call<'a> {
    pub hall: &'a Hall,
    /// Who executes it, from 0.
    pub engine: usize,
    pub session: &'a mut Session,
    pub arguments: Arguments<'a>,
    pub reply: Writer<'a>,
}

/// A row of the table of commands.
pub struct Command {
    pub name: &'static str,
    /// Number of arguments with the name; negative: at least so many.
    pub arity: i8,
    /// Allowed before the password was given.
    pub open: bool,
    /// Arguments after the name, for people.
    pub arguments: &'static str,
    pub summary: &'static str,
    pub run: fn(&mut Call) -> Result<Flow, Fault>,
}

/// An error reply: a code that programs may rely on, and what people read.
pub struct Fault {
    pub code: &'static str,
    pub message: String,
}

impl Fault {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub fn usage(message: impl Into<String>) -> Self {
        Self::new("ERR", message)
    }
}

/// Executes a request, as the engine of this number, from 0, and writes its reply.
pub fn execute(
    hall: &Hall,
    engine: usize,
    session: &mut Session,
    arguments: Arguments,
    out: &mut Vec<u8>,
) -> Flow {
    let Some(name) = arguments.get(0) else {
        return Flow::Done; // an empty line or array: Redis says nothing either
    };
    let reply = Writer::new(out, session.version);
    let mut call = Call {
        hall,
        engine,
        session,
        arguments,
        reply,
    };
    match call.run(name) {
        Ok(flow) => flow,
        Err(fault) => {
            count(&hall.counters.errors);
            call.reply.error(fault.code, &fault.message);
            match fault.code {
                "CROSSPROTOCOL" | "TOOMANYATTEMPTS" => Flow::Close,
                _ => Flow::Done,
            }
        }
    }
}

impl Call<'_> {
    fn run(&mut self, name: &[u8]) -> Result<Flow, Fault> {
        let command = names::find(self.hall.settings.service, name).ok_or_else(|| unknown(name))?;
        let (given, arity) = (
            self.arguments.len(),
            usize::from(command.arity.unsigned_abs()),
        );
        if given < arity || (command.arity > 0 && given > arity) {
            return Err(Fault::usage(format!(
                "wrong number of arguments for '{}'; use: {} {}",
                command.name, command.name, command.arguments
            )));
        }
        if !self.session.authenticated && !command.open {
            let message = "a password is needed: send AUTH password";
            return Err(Fault::new("NOAUTH", message));
        }
        (command.run)(self)
    }
}

fn unknown(name: &[u8]) -> Fault {
    // A browser that was made to send us something must not get any further.
    if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
        return Fault::new("CROSSPROTOCOL", "this is no HTTP server");
    }
    let name = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
    Fault::usage(format!(
        "unknown command '{name}'; COMMAND lists what there is"
    ))
}

/// A number in an argument.
pub fn number(text: &[u8], what: &str) -> Result<u64, Fault> {
    let parsed = std::str::from_utf8(text)
        .ok()
        .and_then(|it| it.parse().ok());
    parsed.ok_or_else(|| {
        let text = String::from_utf8_lossy(&text[..text.len().min(32)]).into_owned();
        Fault::usage(format!("{what} '{text}' is no whole number from 0 on"))
    })
}

/// Text of a client, shortened for a message.
pub fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(&text[..text.len().min(64)]).into_owned()
}
