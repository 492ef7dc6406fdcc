//! Keys with a time to live.

use super::call::{Call, Fault, shown};
use crate::keys::LeaseService;
use crate::leases::{Full, LIVES_MS_MAX, left_ms};
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
            b"NX" if must_exist.is_none() => must_exist = Some(false),
            b"XX" if must_exist.is_none() => must_exist = Some(true),
            unit @ (b"PX" | b"EX") if lives_ms.is_none() => {
                let unit_ms = if unit == b"PX" { MS } else { SECOND_MS };
                let text = options.next().ok_or_else(set_syntax)?;
                lives_ms = match time_to_live(text, unit_ms)? {
                    0 => return Err(invalid(text, "SET needs 1 or more")),
                    lives_ms => Some(lives_ms),
                };
            }
            _ => return Err(set_syntax()),
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

fn set_syntax() -> Fault {
    Fault::usage("syntax error: the options of SET are NX or XX, and PX ms or EX s")
}

/// The units in which times to live are given.
pub const MS: u64 = 1;
const SECOND_MS: u64 = 1000;

/// A time to live in ms, the same for all commands; 0 if it is 0 or less, which ends a key at once.
///
/// # Errors
/// If it is no whole number, or too long.
pub fn time_to_live(text: &[u8], unit_ms: u64) -> Result<u64, Fault> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid(text, "it is not a whole number"));
    }
    if digits.len() < text.len() {
        return Ok(0);
    }
    let number = std::str::from_utf8(digits)
        .ok()
        .and_then(|it| it.parse().ok());
    let lives_ms = number.and_then(|it: u64| it.checked_mul(unit_ms));
    lives_ms
        .filter(|it| *it <= LIVES_MS_MAX)
        .ok_or_else(|| invalid(text, &format!("the maximum is {}", LIVES_MS_MAX / unit_ms)))
}

fn invalid(text: &[u8], why: &str) -> Fault {
    Fault::usage(format!("invalid expire time '{}': {why}", shown(text)))
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
    let key = call.arguments.at(1);
    let lives_ms = time_to_live(call.arguments.at(2), MS)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_to_live_has_the_same_borders_in_each_unit() {
        for unit_ms in [MS, SECOND_MS] {
            let most = LIVES_MS_MAX / unit_ms;
            for (text, expected) in [
                ("0".to_owned(), Some(0)),
                ("-0".to_owned(), Some(0)),
                ("-1".to_owned(), Some(0)),
                (i64::MIN.to_string(), Some(0)),
                ("-99999999999999999999999999".to_owned(), Some(0)),
                ("1".to_owned(), Some(unit_ms)),
                ("007".to_owned(), Some(7 * unit_ms)),
                (u32::MAX.to_string(), Some(u64::from(u32::MAX) * unit_ms)),
                (
                    "4294967294000".to_owned(),
                    Some(4_294_967_294_000 * unit_ms),
                ),
                (most.to_string(), Some(most * unit_ms)),
                ((most + 1).to_string(), None),
                (i64::MAX.to_string(), None),
                (u64::MAX.to_string(), None),
                ("99999999999999999999999999".to_owned(), None),
            ] {
                let found = time_to_live(text.as_bytes(), unit_ms);
                let found = found.map_err(|fault| fault.message);
                match expected {
                    Some(expected) => assert_eq!(found, Ok(expected), "{text}"),
                    None => assert_eq!(
                        found,
                        Err(format!(
                            "invalid expire time '{text}': the maximum is {most}"
                        ))
                    ),
                }
            }
            for text in [
                "", "-", "+1", " 1", "1 ", "1.5", "1e3", "0x1", "--1", "1\0", "\u{ff11}",
            ] {
                let fault = time_to_live(text.as_bytes(), unit_ms).expect_err(text);
                assert!(fault.message.contains("not a whole number"), "{text}");
            }
        }
    }
}
