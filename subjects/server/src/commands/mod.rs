//! The commands of clients: their tables, and how a command is executed.

mod call;
mod connection;
mod leases;
mod locks;
mod records;
mod scripts;
mod server;
mod statements;
mod table;

use std::sync::atomic::Ordering::Relaxed;

use concurve_records::command::Refusal;
use concurve_statements::Answer;

use crate::net::incidents::Incident;
use crate::request::{Arguments, Flow};
use crate::resp::writer::Writer;
use crate::session::Session;
use crate::state::SharedState;
use call::{Call, Command, Fault, Handler, Run};

/// Requests without an effect that a client may send before it logs in; some libraries send a few.
const REFUSED_MAX: u32 = 100;

/// Executes a request as the engine of this number, from 0, and writes its reply.
pub fn execute(
    state: &SharedState,
    engine: usize,
    session: &mut Session,
    arguments: Arguments,
    out: &mut Vec<u8>,
) -> Flow {
    let is_logged_in = session.authenticated;
    let executed = match arguments.is_empty() {
        true => Ok(Flow::Done), // an empty line or array: Redis sends no reply either
        false => {
            let reply = Writer::new(&mut *out, session.version);
            let request = Request {
                engine,
                session: &mut *session,
                arguments,
                reply,
            };
            request.execute(state)
        }
    };
    if !is_logged_in && session.authenticated {
        session.begin(&state.services);
    }
    let limited = match is_logged_in {
        true => executed,
        false => limit(session, executed, arguments.is_empty()),
    };
    limited.unwrap_or_else(|fault| {
        let counters = state.services.locks.counters(engine);
        counters.error_replies.fetch_add(1, Relaxed);
        let incidents = &state.network.clients.incidents;
        for incident in fault.incidents {
            incidents.add(*incident, session.source);
        }
        Writer::new(out, session.version).error(fault.code, &fault.message);
        match fault.closes {
            true => Flow::Close,
            false => Flow::Done,
        }
    })
}

/// Ends the connection of a client that sends too many requests without logging in.
fn limit(
    session: &mut Session,
    executed: Result<Flow, Fault>,
    is_empty: bool,
) -> Result<Flow, Fault> {
    session.refused_before_login += u32::from(is_empty || executed.is_err());
    match executed {
        Err(fault) if fault.closes => Err(fault),
        _ if session.refused_before_login > REFUSED_MAX => Err(Fault::closing(
            "NOAUTH",
            format!("no login among {REFUSED_MAX} requests"),
            &[Incident::NotWelcome],
        )),
        _ => executed,
    }
}

/// Makes the commit of a session durable, and writes its reply. To be called for each session; the
/// first call forces the log for all of them.
pub fn confirm(session: &mut Session, out: &mut Vec<u8>) {
    let Some(client) = &mut session.records else {
        return;
    };
    let mut reply = Writer::new(out, session.version);
    let answer = session.statements.as_mut().and_then(|it| it.answer.take());
    match client.session().confirm() {
        Ok(()) => statements::write(&mut reply, answer.unwrap_or(Answer::Done)),
        Err(status) => {
            let fault = Fault::from(Refusal::Status(status));
            reply.error(fault.code, &fault.message);
        }
    }
}

/// A request before its service is known.
struct Request<'a> {
    engine: usize,
    session: &'a mut Session,
    arguments: Arguments<'a>,
    reply: Writer<'a>,
}

impl Request<'_> {
    fn execute(self, state: &SharedState) -> Result<Flow, Fault> {
        let name = self.arguments.at(0);
        let table = table::of(state.options.service);
        let command = table.find(name).ok_or_else(|| unknown(name))?;
        self.check(command)?;
        if command.keeps && !state.memory_at_start.holds(self.arguments.bytes_used()) {
            return Err(Fault::new(
                "NOMEMORY",
                "the server has no memory to keep more: remove locks, keys or statements, or raise \
                 --shared-memory",
            ));
        }
        let services = &state.services;
        match &command.run {
            Run::Locks(handler) => self.on(&services.locks, *handler),
            Run::Leases(handler) => self.on(&services.keys.leases, *handler),
            Run::Keys(handler) => self.on(&services.keys, *handler),
            Run::Records(handler) => {
                let records = services.records();
                let records = records.ok_or_else(|| not_served("records"))?;
                self.on(records, *handler)
            }
            Run::Statements(handler) => {
                let statements = services.statements();
                let statements = statements.ok_or_else(|| not_served("statements"))?;
                self.on(statements, *handler)
            }
            Run::Connection(handler) => self.on(&state.services.logins, *handler),
            Run::Server(handler) => self.on(state, *handler),
            Run::Table(handler) => self.on(table, *handler),
        }
    }

    fn check(&self, command: &Command) -> Result<(), Fault> {
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
        Ok(())
    }

    fn on<S>(self, service: &S, handler: Handler<S>) -> Result<Flow, Fault> {
        handler(&mut Call {
            service,
            engine: self.engine,
            session: self.session,
            arguments: self.arguments,
            reply: self.reply,
        })
    }
}

fn unknown(name: &[u8]) -> Fault {
    // Closes the connection of a browser that a web page has made send requests here.
    if name.eq_ignore_ascii_case(b"post") || name.eq_ignore_ascii_case(b"host:") {
        return Fault::closing(
            "CROSSPROTOCOL",
            "this is not an HTTP server",
            &[Incident::Malformed],
        );
    }
    let name = String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned();
    Fault::usage(format!(
        "unknown command '{name}'; COMMAND lists the commands"
    ))
}

fn not_served(what: &str) -> Fault {
    Fault::usage(format!("this server does not serve {what}"))
}
