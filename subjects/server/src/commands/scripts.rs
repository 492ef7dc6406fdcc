//! The scripts that Redlock clients send. There is no interpreter: what a script says is recognised
//! by its text, blanks apart, and anything else is refused.

use hashbrown::HashMap;
use sha1::{Digest, Sha1};

use super::leases::{left_ms, with};
use super::{Call, Fault, Flow, number};
use crate::leases::Leases;

/// What a script does to `KEYS[1]` if its value is `ARGV[1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Removes it; 1 or 0.
    Release,
    /// Gives it `ARGV[2]` ms to live; 1 or 0.
    Reacquire,
    /// Adds `ARGV[2]` ms to what it has left, or sets it if `ARGV[3]` is not "0"; 1 or 0.
    Extend,
    /// How many ms it has left; 0 if it has another value.
    Left,
}

/// Texts as published, in the form that [`plain`] gives them.
const KNOWN: &[(Script, &str)] = &[
    // redis.io, "Distributed Locks with Redis"; most clients
    (
        Script::Release,
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end",
    ),
    // redis-py's Lock
    (
        Script::Release,
        "local token = redis.call(\"get\", KEYS[1]) if not token or token ~= ARGV[1] then return 0 end redis.call(\"del\", KEYS[1]) return 1",
    ),
    (
        Script::Reacquire,
        "local token = redis.call(\"get\", KEYS[1]) if not token or token ~= ARGV[1] then return 0 end redis.call(\"pexpire\", KEYS[1], ARGV[2]) return 1",
    ),
    (
        Script::Extend,
        "local token = redis.call(\"get\", KEYS[1]) if not token or token ~= ARGV[1] then return 0 end local expiration = redis.call(\"pttl\", KEYS[1]) if not expiration then expiration = 0 end if expiration < 0 then return 0 end local newttl = ARGV[2] if ARGV[3] == \"0\" then newttl = ARGV[2] + expiration end redis.call(\"pexpire\", KEYS[1], newttl) return 1",
    ),
    // pottery, redlock-py, Redlock.net
    (
        Script::Reacquire,
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"pexpire\",KEYS[1],ARGV[2]) else return 0 end",
    ),
    (
        Script::Left,
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then local pttl = redis.call(\"pttl\",KEYS[1]) return (pttl > 0) and pttl or 0 else return 0 end",
    ),
];

/// Scripts by the SHA-1 of the text that was loaded.
#[derive(Debug, Default)]
pub struct Loaded(HashMap<[u8; 20], Script>);

/// Variants of blanks that are remembered; a client needs one or two.
const LOADED_MAX: usize = 1024;

/// The text without what a script does not mean: blanks, kinds of quotes, case of commands.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace('\'', "\"");
    text.split_whitespace().collect()
}

fn recognise(text: &[u8]) -> Option<Script> {
    let text = plain(text);
    let known = KNOWN
        .iter()
        .find(|(_, known)| plain(known.as_bytes()) == text);
    known.map(|(script, _)| *script)
}

fn refused() -> Fault {
    Fault::new(
        "NOSCRIPTING",
        "this server runs no Lua: it knows the scripts of Redlock clients (release, extend) by \
         their text; use DELEX key IFEQ value",
    )
}

pub fn script(call: &mut Call) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    match &arguments.at(1).to_ascii_uppercase()[..] {
        b"LOAD" if arguments.len() == 3 => {
            let script = recognise(arguments.at(2)).ok_or_else(refused)?;
            let digest: [u8; 20] = Sha1::digest(arguments.at(2)).into();
            let mut loaded = call.hall.scripts.lock();
            if loaded.0.len() < LOADED_MAX {
                loaded.0.insert(digest, script);
            }
            call.reply.bulk(hexadecimal(&digest).as_bytes());
        }
        b"EXISTS" => {
            let loaded = call.hall.scripts.lock();
            call.reply.array(arguments.len() - 2);
            for digest in arguments.from(2) {
                let exists = find(&loaded, digest).is_some();
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

fn hexadecimal(digest: &[u8; 20]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn find(loaded: &Loaded, digest: &[u8]) -> Option<Script> {
    let mut bytes = [0; 20];
    if digest.len() != 40 {
        return None;
    }
    for (at, pair) in digest.chunks(2).enumerate() {
        let pair = std::str::from_utf8(pair).ok()?;
        bytes[at] = u8::from_str_radix(pair, 16).ok()?;
    }
    loaded.0.get(&bytes).copied()
}

pub fn eval(call: &mut Call) -> Result<Flow, Fault> {
    let script = recognise(call.arguments.at(1)).ok_or_else(refused)?;
    run(call, script)
}

pub fn evalsha(call: &mut Call) -> Result<Flow, Fault> {
    let found = find(&call.hall.scripts.lock(), call.arguments.at(1));
    let script =
        found.ok_or_else(|| Fault::new("NOSCRIPT", "No matching script. Please use EVAL."))?;
    run(call, script)
}

fn run(call: &mut Call, script: Script) -> Result<Flow, Fault> {
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
    let result = with(call, |leases, now| {
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
        lives_ms + left as u64
    };
    i64::from(leases.set_end(key, now + lives_ms, now))
}

/// Lua takes a fraction where Redis wants whole milliseconds; clients send `200.0`.
fn whole_ms(text: &[u8]) -> Result<u64, Fault> {
    let whole = text.split(|byte| *byte == b'.').next().unwrap_or_default();
    Ok(number(whole, "time")?.min(u64::from(u32::MAX) * 1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_their_text_and_by_nothing_less() {
        let spread = b"\n if redis.call('get', KEYS[1]) == ARGV[1] then\n  return redis.call('del', KEYS[1])\n else\n return 0\n end\n";
        assert_eq!(recognise(spread), Some(Script::Release));
        for (script, text) in KNOWN {
            assert_eq!(recognise(text.as_bytes()), Some(*script));
        }
        assert_eq!(recognise(b"return redis.call(\"del\",KEYS[1])"), None);
        assert_eq!(recognise(b""), None);
    }
}
