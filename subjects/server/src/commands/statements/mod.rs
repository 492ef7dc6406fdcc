//! The statement service's commands.

mod files;

pub use files::{compare, create, drop_files, fields, files, fill, list};

use concurve_records::{Session, Status};
use concurve_statements::{Answer, Value};

use super::{Call, Fault, Flow, records, shown};
use crate::resp::writer::Writer;
use crate::statements::{Client, Refusal, StatementService};

/// What a statement needs.
struct Service<'a> {
    shared: &'a StatementService,
    client: &'a mut Client,
    records: &'a mut Session,
    engine: usize,
}

impl Call<'_> {
    fn service(&mut self) -> Result<Service<'_>, Fault> {
        let session = &mut *self.session;
        let parts = self
            .hall
            .statements
            .as_ref()
            .zip(session.statements.as_mut())
            .zip(session.records.as_mut());
        let ((shared, client), records) =
            parts.ok_or_else(|| Fault::usage("the server serves no statements"))?;
        Ok(Service {
            shared,
            client,
            records: records.session(),
            engine: self.engine,
        })
    }
}

pub fn execute(call: &mut Call) -> Result<Flow, Fault> {
    unless_failed(call, execute_prepared)
}

pub fn run(call: &mut Call) -> Result<Flow, Fault> {
    unless_failed(call, run_text)
}

/// Once a statement of a transaction was refused, all that follow are, to its end: they may have been
/// sent before the refusal was heard.
fn unless_failed(
    call: &mut Call,
    statement: fn(&mut Call) -> Result<Flow, Fault>,
) -> Result<Flow, Fault> {
    if call.service()?.client.has_failed {
        return Err(Refusal::Failed.into());
    }
    let done = statement(call);
    if done.is_err() {
        let service = call.service()?;
        service.client.has_failed = service.records.in_transaction();
    }
    done
}

pub fn end(call: &mut Call) -> Result<Flow, Fault> {
    if call.service()?.client.has_failed {
        return Err(Refusal::Failed.into());
    }
    records::run(call)
}

pub fn abort(call: &mut Call) -> Result<Flow, Fault> {
    call.service()?.client.has_failed = false;
    records::run(call)
}

fn execute_prepared(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let Service {
        shared,
        client,
        records,
        engine,
    } = call.service()?;
    read_values(arguments.from(2), &mut client.values)?;
    let answered = client.execute(shared, engine, arguments.at(1), records);
    answer(call, answered)
}

fn run_text(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let text = text(arguments.at(1), "the statement")?;
    let Service {
        shared,
        client,
        records,
        engine,
    } = call.service()?;
    read_values(arguments.from(2), &mut client.values)?;
    let answered = client.run(shared, engine, text, records);
    answer(call, answered)
}

pub fn prepare(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let text = text(arguments.at(2), "the statement")?;
    let service = call.service()?;
    let name = arguments.at(1);
    let parameters = service
        .client
        .prepare(service.shared, service.engine, name, text)?;
    call.reply.integer(parameters as i64);
    Ok(Flow::Done)
}

pub fn deallocate(call: &mut Call) -> Result<Flow, Fault> {
    let name = call.arguments.at(1);
    let client = call.service()?.client;
    let count = match name {
        b"*" => client.deallocate_all(),
        name => {
            client.deallocate(name)?;
            1
        }
    };
    call.reply.integer(count as i64);
    Ok(Flow::Done)
}

pub fn set(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let value = text(arguments.at(2), "the value")?;
    let client = call.service()?.client;
    match &arguments.at(1).to_ascii_uppercase()[..] {
        b"USER" => client.set_user(value)?,
        b"DATABASE" => client.set_database(value)?,
        _ => {
            return Err(Fault::usage(format!(
                "option '{}' is none of USER, DATABASE",
                shown(arguments.at(1))
            )));
        }
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}

/// Answers at once, or keeps the answer until it is promised.
fn answer(call: &mut Call, answered: Result<Answer, Refusal>) -> Result<Flow, Fault> {
    let answer = match answered {
        Err(Refusal::Status(Status::Waiting)) => return Ok(Flow::Parked),
        Ok(Answer::Exists) => return Err(Refusal::Status(Status::DuplicateKey).into()),
        other => other?,
    };
    let service = call.service()?;
    if service.records.is_unconfirmed() {
        service.client.answer = Some(answer);
        return Ok(Flow::Unconfirmed);
    }
    write(&mut call.reply, answer);
    Ok(Flow::Done)
}

/// Writes what a statement answers.
pub fn write(reply: &mut Writer, answer: Answer) {
    match answer {
        Answer::Value(value) | Answer::Total(value) => reply.integer(value),
        Answer::Done | Answer::Exists => reply.status("OK"),
        Answer::NotFound => reply.null(),
    }
}

fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, Fault> {
    std::str::from_utf8(bytes)
        .map_err(|_| Fault::usage(format!("{what} '{}' is no text", shown(bytes))))
}

fn read_values<'a>(
    given: impl Iterator<Item = &'a [u8]>,
    values: &mut Vec<Value>,
) -> Result<(), Fault> {
    values.clear();
    for bytes in given {
        values.push(value(bytes)?);
    }
    Ok(())
}

fn value(bytes: &[u8]) -> Result<Value, Fault> {
    let parsed = std::str::from_utf8(bytes)
        .ok()
        .and_then(|it| it.parse().ok());
    parsed.ok_or_else(|| Fault::usage(format!("'{}' is no whole number of 64 bits", shown(bytes))))
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Fault::new(refusal.word(), refusal.to_string())
    }
}
