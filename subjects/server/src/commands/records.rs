//! The commands of the record service: each is a statement of the record language.

use concurve_records::Status;
use concurve_records::command::{Command, Refusal, Reply};

use super::call::{Call, Fault};
use crate::request::Flow;

pub fn run<S>(call: &mut Call<S>) -> Result<Flow, Fault> {
    let Some(client) = &mut call.session.records else {
        return Err(Fault::usage("this server does not serve records"));
    };
    let command = Command::parse(&call.arguments)?;
    let reply = match client.execute(&command, &call.arguments) {
        Err(Refusal::Status(Status::Waiting)) => return Ok(Flow::Parked),
        other => other?,
    };
    let out = &mut call.reply;
    match reply {
        Reply::Unconfirmed => return Ok(Flow::Unconfirmed),
        Reply::Done => out.status("OK"),
        Reply::Record(record) => out.bulk(record),
        Reply::Field(record, number) => {
            out.array(2);
            out.bulk(record);
            out.integer(number);
        }
        Reply::Many {
            records,
            record_bytes,
        } => {
            let records = records.chunks_exact(record_bytes);
            out.array(records.len());
            records.for_each(|record| out.bulk(record));
        }
        Reply::Number(number) => out.integer(number),
        Reply::Figures(figures) => {
            out.map(figures.len());
            for (name, value) in figures {
                out.bulk(name.as_bytes());
                out.integer(value as i64);
            }
        }
    }
    Ok(Flow::Done)
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Fault::new(refusal.word(), refusal.to_string())
    }
}
