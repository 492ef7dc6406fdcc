//! The statement service's commands about files as a whole.

use concurve_records::{Engine, Status};
use concurve_statements::Answer;

use super::{Service, answer, read_values, text, value};
use crate::commands::{Call, Fault, Flow};
use crate::hall::Hall;
use crate::statements::{Refusal, Sums, differing};

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

fn engine(hall: &Hall) -> Result<&Engine, Fault> {
    let records = hall.records.as_ref();
    records.map_or_else(
        || Err(Fault::usage("the server serves no records")),
        |it| Ok(&it.engine),
    )
}
