//! The statement service's commands.

use concurve_records::{Session, Status};
use concurve_statements::{Answer, Value};

use super::call::{Call, Fault, shown};
use super::records;
use crate::request::Flow;
use crate::resp::writer::Writer;
use crate::statements::{Client, Refusal, StatementService, Sums, differing};

/// What a statement uses.
struct Parts<'a> {
    service: &'a StatementService,
    client: &'a mut Client,
    records: &'a mut Session,
    engine: usize,
}

impl Call<'_, StatementService> {
    fn parts(&mut self) -> Result<Parts<'_>, Fault> {
        let session = &mut *self.session;
        let parts = session.statements.as_mut().zip(session.records.as_mut());
        let (client, records) =
            parts.ok_or_else(|| Fault::usage("this server does not serve statements"))?;
        Ok(Parts {
            service: self.service,
            client,
            records: records.session(),
            engine: self.engine,
        })
    }
}

impl Parts<'_> {
    /// What the record engine calls a file that is made or dropped: not in a transaction.
    fn outside(&self, file: &str) -> Result<String, Refusal> {
        if self.records.in_transaction() {
            return Err(Status::TransactionActive.into());
        }
        self.client.view(self.service).name(file)
    }
}

pub fn execute(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    unless_failed(call, execute_prepared)
}

pub fn run(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    unless_failed(call, run_text)
}

/// After a statement of a transaction was refused, all further ones are refused too: the client may
/// have sent them before it received the refusal.
fn unless_failed(
    call: &mut Call<StatementService>,
    statement: fn(&mut Call<StatementService>) -> Result<Flow, Fault>,
) -> Result<Flow, Fault> {
    if call.parts()?.client.has_failed {
        return Err(Refusal::Failed.into());
    }
    let done = statement(call);
    if done.is_err() {
        let parts = call.parts()?;
        parts.client.has_failed = parts.records.in_transaction();
    }
    done
}

pub fn end(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    if call.parts()?.client.has_failed {
        return Err(Refusal::Failed.into());
    }
    records::run(call)
}

pub fn abort(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    call.parts()?.client.has_failed = false;
    records::run(call)
}

fn execute_prepared(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let Parts {
        service,
        client,
        records,
        engine,
    } = call.parts()?;
    read_values(arguments.from(2), &mut client.values)?;
    let answered = client.execute(service, engine, arguments.at(1), records);
    answer(call, answered)
}

fn run_text(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let text = text(arguments.at(1), "the statement")?;
    let Parts {
        service,
        client,
        records,
        engine,
    } = call.parts()?;
    read_values(arguments.from(2), &mut client.values)?;
    let answered = client.run(service, engine, text, records);
    answer(call, answered)
}

pub fn prepare(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let text = text(arguments.at(2), "the statement")?;
    let parts = call.parts()?;
    let name = arguments.at(1);
    let parameters = parts
        .client
        .prepare(parts.service, parts.engine, name, text)?;
    call.reply.integer(parameters as i64);
    Ok(Flow::Done)
}

pub fn deallocate(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let name = call.arguments.at(1);
    let client = call.parts()?.client;
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

pub fn set(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let value = text(arguments.at(2), "the value")?;
    let client = call.parts()?.client;
    match &arguments.at(1).to_ascii_uppercase()[..] {
        b"USER" => client.set_user(value)?,
        b"DATABASE" => client.set_database(value)?,
        _ => {
            return Err(Fault::usage(format!(
                "option '{}' is not one of USER, DATABASE",
                shown(arguments.at(1))
            )));
        }
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}

/// Writes the answer, or keeps it until the commit is durable.
fn answer(
    call: &mut Call<StatementService>,
    answered: Result<Answer, Refusal>,
) -> Result<Flow, Fault> {
    let answer = match answered {
        Err(Refusal::Status(Status::Waiting)) => return Ok(Flow::Parked),
        Ok(Answer::Exists) => return Err(Refusal::Status(Status::DuplicateKey).into()),
        other => other?,
    };
    let parts = call.parts()?;
    if parts.records.is_unconfirmed() {
        parts.client.answer = Some(answer);
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

pub fn create(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let file = text(arguments.at(1), "the file")?;
    let words: Result<Vec<&str>, Fault> =
        arguments.from(2).map(|it| text(it, "the field")).collect();
    let words = words?;
    let (fields, bytes) = match &words[..] {
        [fields @ .., option, bytes] if option.eq_ignore_ascii_case("BYTES") => {
            let length = bytes.parse().map_err(|_| {
                Fault::usage(format!(
                    "BYTES {bytes}: give the length of a record, from 1 to 65535"
                ))
            })?;
            (fields, Some(length))
        }
        fields => (fields, None),
    };
    let fields = fields.iter().map(|it| (*it).to_owned()).collect();
    let parts = call.parts()?;
    let name = parts.outside(file)?;
    let catalogue = &parts.service.catalogue;
    catalogue.create(&parts.service.records.engine, name, fields, bytes)?;
    call.reply.status("OK");
    Ok(Flow::Done)
}

pub fn drop_files(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let asked = text(call.arguments.at(1), "the file")?;
    let parts = call.parts()?;
    let names = match asked.strip_suffix('*') {
        Some(prefix) => parts.client.view(parts.service).files(prefix),
        None => vec![asked.to_owned()],
    };
    for file in &names {
        let name = parts.outside(file)?;
        parts
            .service
            .catalogue
            .drop_file(&parts.service.records.engine, &name)?;
    }
    call.reply.integer(names.len() as i64);
    Ok(Flow::Done)
}

fn names(call: &mut Call<StatementService>) -> Result<Vec<String>, Fault> {
    let prefix = call.arguments.get(1).unwrap_or_default();
    let prefix = text(prefix, "the beginning of names")?;
    let parts = call.parts()?;
    Ok(parts.client.view(parts.service).files(prefix))
}

pub fn files(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let count = names(call)?.len();
    call.reply.integer(count as i64);
    Ok(Flow::Done)
}

pub fn list(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let names = names(call)?;
    call.reply.array(names.len());
    names.iter().for_each(|it| call.reply.bulk(it.as_bytes()));
    Ok(Flow::Done)
}

pub fn compare(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
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
    let parts = call.parts()?;
    let view = parts.client.view(parts.service);
    let count = differing(&one, &other, &view, parts.records)?;
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

pub fn fields(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let file = text(call.arguments.at(1), "the file")?;
    let parts = call.parts()?;
    let found = parts.client.view(parts.service).file_named(file);
    let found = found.ok_or(Refusal::Status(Status::FileNotFound))?;
    call.reply.array(found.fields.len());
    let fields = found.fields.iter();
    fields.for_each(|it| call.reply.bulk(it.as_bytes()));
    Ok(Flow::Done)
}

pub fn fill(call: &mut Call<StatementService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let file = text(arguments.at(1), "the file")?;
    let (first, last) = (value(arguments.at(2))?, value(arguments.at(3))?);
    let Parts {
        service,
        client,
        records,
        ..
    } = call.parts()?;
    read_values(arguments.from(4), &mut client.values)?;
    let filled = client.fill(service, file, first..=last, records);
    answer(call, filled.map(|()| Answer::Done))
}

fn text<'a>(bytes: &'a [u8], what: &str) -> Result<&'a str, Fault> {
    std::str::from_utf8(bytes)
        .map_err(|_| Fault::usage(format!("{what} '{}' is not UTF-8 text", shown(bytes))))
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
    parsed.ok_or_else(|| Fault::usage(format!("'{}' is not a 64-bit integer", shown(bytes))))
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Fault::new(refusal.word(), refusal.to_string())
    }
}
