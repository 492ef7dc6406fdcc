//! The scripts of Redlock clients.

use super::call::{Call, Fault};
use super::leases::{MS, time_to_live};
use crate::keys::KeyService;
use crate::leases::{LIVES_MS_MAX, Leases, left_ms};
use crate::request::Flow;
use crate::scripts::{Script, recognise};

fn refused() -> Fault {
    Fault::new(
        "NOSCRIPTING",
        "this server has no Lua interpreter: it recognises the scripts of Redlock clients (release, \
        extend) by their text; use DELEX key IFEQ value",
    )
}

pub fn script(call: &mut Call<KeyService>) -> Result<Flow, Fault> {
    let (arguments, scripts) = (call.arguments, &call.service.scripts);
    match &arguments.at(1).to_ascii_uppercase()[..] {
        b"LOAD" if arguments.len() == 3 => {
            let digest = scripts.load(arguments.at(2)).ok_or_else(refused)?;
            call.reply.bulk(digest.as_bytes());
        }
        b"EXISTS" => {
            call.reply.array(arguments.len() - 2);
            for digest in arguments.from(2) {
                let exists = scripts.find(digest).is_some();
                call.reply.integer(i64::from(exists));
            }
        }
        _ => {
            return Err(Fault::usage(
                "use: SCRIPT LOAD script, or SCRIPT EXISTS sha1 …",
            ));
        }
    }
    Ok(Flow::Done)
}

pub fn eval(call: &mut Call<KeyService>) -> Result<Flow, Fault> {
    let script = recognise(call.arguments.at(1)).ok_or_else(refused)?;
    run(call, script)
}

pub fn evalsha(call: &mut Call<KeyService>) -> Result<Flow, Fault> {
    let found = call.service.scripts.find(call.arguments.at(1));
    let script =
        found.ok_or_else(|| Fault::new("NOSCRIPT", "No matching script. Please use EVAL."))?;
    run(call, script)
}

fn run(call: &mut Call<KeyService>, script: Script) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let values = match script {
        Script::Release | Script::Left => 1,
        Script::Reacquire => 2,
        Script::Extend => 3,
    };
    if arguments.at(2) != b"1" || arguments.len() < 4 + values {
        return Err(Fault::usage(format!(
            "this script takes 1 key and {values} values"
        )));
    }
    let (key, token) = (arguments.at(3), arguments.at(4));
    let lives_ms = match script {
        Script::Release | Script::Left => 0,
        Script::Reacquire | Script::Extend => whole_ms(arguments.at(5))?,
    };
    let replaces = arguments.get(6) != Some(b"0");
    let result = call.service.leases.with(|leases, now| {
        if leases.get(key, now) != Some(token) {
            return 0;
        }
        match script {
            Script::Release => i64::from(leases.remove(key, now)),
            Script::Reacquire => i64::from(leases.set_end(key, now + lives_ms, now)),
            Script::Extend => extend(leases, key, lives_ms, replaces, now),
            Script::Left => left_ms(leases, key, now).max(0),
        }
    });
    call.reply.integer(result);
    Ok(Flow::Done)
}

fn extend(leases: &mut Leases, key: &[u8], lives_ms: u64, replaces: bool, now: u64) -> i64 {
    let left = left_ms(leases, key, now);
    if left < 0 {
        return 0;
    }
    let lives_ms = if replaces {
        lives_ms
    } else {
        (lives_ms + left as u64).min(LIVES_MS_MAX)
    };
    i64::from(leases.set_end(key, now + lives_ms, now))
}

/// Lua takes a fraction where Redis wants whole milliseconds; clients send `200.0`.
fn whole_ms(text: &[u8]) -> Result<u64, Fault> {
    let whole = text.split(|byte| *byte == b'.').next().unwrap_or_default();
    time_to_live(whole, MS)
}
