//! The statement service's commands.

use concurve_records::{Session, Status};
use concurve_statements::{Answer, Value};

use super::{Call, Fault, Flow, records, shown};
use crate::hall::Hall;
use crate::resp::writer::Writer;
use crate::statements::{Client, Refusal, StatementService, Sums, differing};

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

pub fn create(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let file = text(arguments.at(1), "the file")?;
    let words: Result<Vec<&str>, Fault> =
        arguments.from(2).map(|it| text(it, "the field")).collect();
    let words = words?;
    let (fields, bytes) = match &words[..] {
        [fields @ .., option, bytes] if option.eq_ignore_ascii_case("BYTES") => {
            let length = bytes.parse().map_err(|_| {
                Fault::usage(format!("BYTES {bytes}: it is the length of a record"))
            })?;
            (fields, Some(length))
        }
        fields => (fields, None),
    };
    let fields = fields.iter().map(|it| (*it).to_owned()).collect();
    let hall = call.hall;
    let service = call.service()?;
    let name = service.outside(file)?;
    let catalogue = &service.shared.catalogue;
    catalogue.create(engine(hall)?, name, fields, bytes)?;
    call.reply.status("OK");
    Ok(Flow::Done)
}

pub fn drop_files(call: &mut Call) -> Result<Flow, Fault> {
    let asked = text(call.arguments.at(1), "the file")?;
    let hall = call.hall;
    let service = call.service()?;
    let names = match asked.strip_suffix('*') {
        Some(prefix) => service.client.view(service.shared).files(prefix),
        None => vec![asked.to_owned()],
    };
    for file in &names {
        let name = service.outside(file)?;
        service.shared.catalogue.drop_file(engine(hall)?, &name)?;
    }
    call.reply.integer(names.len() as i64);
    Ok(Flow::Done)
}

fn names(call: &mut Call) -> Result<Vec<String>, Fault> {
    let prefix = call.arguments.get(1).unwrap_or_default();
    let prefix = text(prefix, "the beginning of names")?;
    let service = call.service()?;
    Ok(service.client.view(service.shared).files(prefix))
}

pub fn files(call: &mut Call) -> Result<Flow, Fault> {
    let count = names(call)?.len();
    call.reply.integer(count as i64);
    Ok(Flow::Done)
}

pub fn list(call: &mut Call) -> Result<Flow, Fault> {
    let names = names(call)?;
    call.reply.array(names.len());
    names.iter().for_each(|it| call.reply.bulk(it.as_bytes()));
    Ok(Flow::Done)
}

pub fn compare(call: &mut Call) -> Result<Flow, Fault> {
    let words: Result<Vec<&str>, Fault> = call
        .arguments
        .from(1)
        .map(|it| text(it, "the word"))
        .collect();
    let words = words?;
    let with = words.iter().position(|it| it.eq_ignore_ascii_case("WITH"));
    let both = with.and_then(|at| sums(&words[..at]).zip(sums(&words[at + 1..])));
    let (one, other) = both.ok_or_else(|| {
        Fault::usage("use: COMPARE file field [BY field] WITH file field [BY field]")
    })?;
    let service = call.service()?;
    let view = service.client.view(service.shared);
    let count = differing(&one, &other, &view, service.records)?;
    call.reply.integer(count);
    Ok(Flow::Done)
}

fn sums<'a>(words: &[&'a str]) -> Option<Sums<'a>> {
    let (file, field, by) = match words {
        [file, field] => (file, field, None),
        [file, field, word, by] if word.eq_ignore_ascii_case("BY") => (file, field, Some(*by)),
        _ => return None,
    };
    Some(Sums { file, field, by })
}

pub fn fields(call: &mut Call) -> Result<Flow, Fault> {
    let file = text(call.arguments.at(1), "the file")?;
    let service = call.service()?;
    let found = service.client.view(service.shared).file_named(file);
    let found = found.ok_or(Refusal::Status(Status::FileNotFound))?;
    call.reply.array(found.fields.len());
    let fields = found.fields.iter();
    fields.for_each(|it| call.reply.bulk(it.as_bytes()));
    Ok(Flow::Done)
}

pub fn fill(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let file = text(arguments.at(1), "the file")?;
    let (first, last) = (value(arguments.at(2))?, value(arguments.at(3))?);
    let Service {
        shared,
        client,
        records,
        ..
    } = call.service()?;
    read_values(arguments.from(4), &mut client.values)?;
    let filled = client.fill(shared, file, first..=last, records);
    answer(call, filled.map(|()| Answer::Done))
}

impl Service<'_> {
    /// What the record engine calls a file that is made or dropped: not in a transaction.
    fn outside(&self, file: &str) -> Result<String, Refusal> {
        if self.records.in_transaction() {
            return Err(Status::TransactionActive.into());
        }
        self.client.view(self.shared).name(file)
    }
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

fn engine(hall: &Hall) -> Result<&concurve_records::Engine, Fault> {
    let records = hall.records.as_ref();
    records.map_or_else(
        || Err(Fault::usage("the server serves no records")),
        |it| Ok(&it.engine),
    )
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
