//! Keys with a time to live.

use super::call::{Call, Fault, number};
use crate::keys::LeaseService;
use crate::leases::{Full, left_ms};
use crate::request::Flow;

pub fn get(call: &mut Call<LeaseService>) -> Result<Flow, Fault> {
    let key = call.arguments.at(1);
    let value = call
        .service
        .with(|leases, now| leases.get(key, now).map(<[u8]>::to_owned));
    match value {
        Some(value) => call.reply.bulk(&value),
        None => call.reply.null(),
    }
    Ok(Flow::Done)
}

pub fn set(call: &mut Call<LeaseService>) -> Result<Flow, Fault> {
    let (key, value) = (call.arguments.at(1), call.arguments.at(2));
    // Whether the key must exist to be set: not with NX, yes with XX.
    let (mut must_exist, mut lives_ms) = (None, None);
    let mut options = call.arguments.from(3);
    while let Some(option) = options.next() {
        match &option.to_ascii_uppercase()[..] {
            b"NX" => must_exist = Some(false),
            b"XX" => must_exist = Some(true),
            b"PX" => lives_ms = Some(time(options.next(), 1)?),
            b"EX" => lives_ms = Some(time(options.next(), 1000)?),
            _ => {
                return Err(Fault::usage(
                    "syntax error: the options of SET are NX, XX, PX ms, EX s",
                ));
            }
        }
    }
    let set = call.service.with(|leases, now| {
        if must_exist.is_some_and(|must_exist| leases.get(key, now).is_some() != must_exist) {
            return Ok(false);
        }
        let ends_ms = lives_ms.map(|lives_ms| now + lives_ms);
        leases.set(key, value, ends_ms, now).map(|()| true)
    });
    match set {
        Ok(true) => call.reply.status("OK"),
        Ok(false) => call.reply.null(),
        Err(full) => return Err(full.into()),
    }
    Ok(Flow::Done)
}

impl From<Full> for Fault {
    fn from(_: Full) -> Self {
        Fault::new(
            "FULL",
            "the maximum number of keys is set; --capacity raises it",
        )
    }
}

fn time(text: Option<&[u8]>, unit_ms: u64) -> Result<u64, Fault> {
    let time = number(text.unwrap_or_default(), "time")?;
    if time == 0 || time > u64::from(u32::MAX) {
        return Err(Fault::usage(
            "invalid expire time in 'set' command: it must be 1 or more",
        ));
    }
    Ok(time * unit_ms)
}

pub fn del(call: &mut Call<LeaseService>) -> Result<Flow, Fault> {
    let keys = call.arguments.from(1);
    let removed = call
        .service
        .with(|leases, now| keys.filter(|key| leases.remove(key, now)).count());
    call.reply.integer(removed as i64);
    Ok(Flow::Done)
}

pub fn delex(call: &mut Call<LeaseService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    if !arguments.at(2).eq_ignore_ascii_case(b"IFEQ") {
        return Err(Fault::usage("syntax error: DELEX key IFEQ value"));
    }
    let (key, value) = (arguments.at(1), arguments.at(3));
    let removed = call
        .service
        .with(|leases, now| leases.get(key, now) == Some(value) && leases.remove(key, now));
    call.reply.integer(i64::from(removed));
    Ok(Flow::Done)
}

pub fn exists(call: &mut Call<LeaseService>) -> Result<Flow, Fault> {
    let keys = call.arguments.from(1);
    let found = call
        .service
        .with(|leases, now| keys.filter(|key| leases.get(key, now).is_some()).count());
    call.reply.integer(found as i64);
    Ok(Flow::Done)
}

pub fn pexpire(call: &mut Call<LeaseService>) -> Result<Flow, Fault> {
    let (key, lives_ms) = (call.arguments.at(1), number(call.arguments.at(2), "time")?);
    let lives_ms = lives_ms.min(u64::from(u32::MAX) * 1000);
    let set = call
        .service
        .with(|leases, now| leases.set_end(key, now + lives_ms, now));
    call.reply.integer(i64::from(set));
    Ok(Flow::Done)
}

pub fn pttl(call: &mut Call<LeaseService>) -> Result<Flow, Fault> {
    let key = call.arguments.at(1);
    let left = call.service.with(|leases, now| left_ms(leases, key, now));
    call.reply.integer(left);
    Ok(Flow::Done)
}
