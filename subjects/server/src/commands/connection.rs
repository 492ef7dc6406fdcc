//! Commands about the connection itself.

use super::call::{Call, Fault, shown};
use crate::options::Password;
use crate::request::Flow;
use crate::resp::writer::Version;

/// Wrong passwords after which a connection is closed.
const ATTEMPTS_MAX: u32 = 10;

pub fn ping(call: &mut Call<Option<Password>>) -> Result<Flow, Fault> {
    match call.arguments.get(1) {
        Some(text) => call.reply.bulk(text),
        None => call.reply.status("PONG"),
    }
    Ok(Flow::Done)
}

pub fn echo(call: &mut Call<Option<Password>>) -> Result<Flow, Fault> {
    call.reply.bulk(call.arguments.at(1));
    Ok(Flow::Done)
}

pub fn quit(call: &mut Call<Option<Password>>) -> Result<Flow, Fault> {
    call.reply.status("OK");
    Ok(Flow::Close)
}

pub fn select(call: &mut Call<Option<Password>>) -> Result<Flow, Fault> {
    if call.arguments.at(1) != b"0" {
        return Err(Fault::usage(
            "DB index is out of range: only database 0 exists",
        ));
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}

pub fn auth(call: &mut Call<Option<Password>>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    match arguments.len() {
        2 => check(call, b"default", arguments.at(1))?,
        _ => check(call, arguments.at(1), arguments.at(2))?,
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}

fn check(call: &mut Call<Option<Password>>, user: &[u8], password: &[u8]) -> Result<(), Fault> {
    let Some(expected) = call.service else {
        return Err(Fault::usage("this server has no password: none is needed"));
    };
    if expected.is(password) && user == b"default" {
        call.session.authenticated = true;
        return Ok(());
    }
    call.session.failed_attempts += 1;
    match call.session.failed_attempts {
        ATTEMPTS_MAX.. => Err(Fault::closing(
            "TOOMANYATTEMPTS",
            "too many wrong passwords",
        )),
        _ => Err(Fault::new(
            "WRONGPASS",
            "wrong password, or a user other than default",
        )),
    }
}

pub fn hello(call: &mut Call<Option<Password>>) -> Result<Flow, Fault> {
    let version = match call.arguments.get(1) {
        None => call.session.version,
        Some(b"2") => Version::Two,
        Some(b"3") => Version::Three,
        Some(_) => {
            return Err(Fault::new(
                "NOPROTO",
                "the protocol has the versions 2 and 3",
            ));
        }
    };
    let mut options = call.arguments.from(2);
    while let Some(option) = options.next() {
        if option.eq_ignore_ascii_case(b"AUTH") {
            let (user, password) = (options.next(), options.next());
            check(call, user.unwrap_or_default(), password.unwrap_or_default())?;
        } else if option.eq_ignore_ascii_case(b"SETNAME") {
            call.session.name = options.next().unwrap_or_default().into();
        } else {
            return Err(Fault::usage(format!(
                "option '{}' is not one of AUTH, SETNAME",
                shown(option)
            )));
        }
    }
    if !call.session.authenticated {
        return Err(Fault::new(
            "NOAUTH",
            "log in first: HELLO version AUTH user password, or AUTH",
        ));
    }
    call.session.version = version;
    call.reply.version = version;
    let reply = &mut call.reply;
    reply.map(6);
    let pairs: [(&str, &str); 4] = [
        ("server", "concurve"),
        ("version", env!("CARGO_PKG_VERSION")),
        ("mode", "standalone"),
        ("role", "master"),
    ];
    for (name, value) in pairs {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
    reply.bulk(b"proto");
    reply.integer(if version == Version::Three { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(call.session.id as i64);
    Ok(Flow::Done)
}

pub fn client(call: &mut Call<Option<Password>>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    match (&arguments.at(1).to_ascii_uppercase()[..], arguments.len()) {
        (b"ID", 2) => call.reply.integer(call.session.id as i64),
        (b"GETNAME", 2) => call.reply.bulk(&call.session.name),
        (b"SETNAME", 3) => {
            call.session.name = arguments.at(2)[..arguments.at(2).len().min(255)].into();
            call.reply.status("OK");
        }
        (b"SETINFO", 4) | (b"NO-EVICT" | b"NO-TOUCH", 3) => call.reply.status("OK"),
        _ => {
            let known = "ID, GETNAME, SETNAME name, SETINFO what value";
            return Err(Fault::usage(format!("CLIENT has the subcommands {known}")));
        }
    }
    Ok(Flow::Done)
}
