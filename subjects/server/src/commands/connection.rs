//! Commands about the connection itself.

use std::time::Duration;

use super::call::{Call, Fault, shown};
use crate::logins::{Attempt, Before, LoginService};
use crate::net::incidents::Incident;
use crate::request::Flow;
use crate::resp::writer::Version;

/// Wrong passwords after which a connection is closed.
const ATTEMPTS_MAX: u32 = 10;

/// Longest name of a connection; the rest is cut off.
const NAME_BYTES_MAX: usize = 255;

pub fn ping(call: &mut Call<LoginService>) -> Result<Flow, Fault> {
    match call.arguments.get(1) {
        Some(text) => call.reply.bulk(text),
        None => call.reply.status("PONG"),
    }
    Ok(Flow::Done)
}

pub fn echo(call: &mut Call<LoginService>) -> Result<Flow, Fault> {
    call.reply.bulk(call.arguments.at(1));
    Ok(Flow::Done)
}

pub fn quit(call: &mut Call<LoginService>) -> Result<Flow, Fault> {
    call.reply.status("OK");
    Ok(Flow::Close)
}

pub fn select(call: &mut Call<LoginService>) -> Result<Flow, Fault> {
    if call.arguments.at(1) != b"0" {
        return Err(Fault::usage(
            "DB index is out of range: only database 0 exists",
        ));
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}

pub fn auth(call: &mut Call<LoginService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    let (user, password) = match arguments.len() {
        2 => (&b"default"[..], arguments.at(1)),
        3 => (arguments.at(1), arguments.at(2)),
        _ => return Err(Fault::usage("syntax error: AUTH [user] password")),
    };
    if let Some(wait) = log_in(call, user, password)? {
        return Ok(Flow::Delayed(wait));
    }
    call.reply.status("OK");
    Ok(Flow::Done)
}

/// Logs in. Returns how long the attempt must wait, because there were many wrong ones from the same
/// address; nothing has happened then.
fn log_in(
    call: &mut Call<LoginService>,
    user: &[u8],
    password: &[u8],
) -> Result<Option<Duration>, Fault> {
    let session = &mut *call.session;
    let before = match session.wrong_passwords {
        _ if session.authenticated => Before::RightPassword,
        0 => Before::Nothing,
        _ => Before::WrongPassword,
    };
    match call.service.attempt(session.source, before, user, password) {
        Attempt::Right => {
            session.authenticate();
            return Ok(None);
        }
        Attempt::MustWait(wait) => return Ok(Some(wait)),
        Attempt::NotNeeded => {
            return Err(Fault::usage("this server has no password: none is needed"));
        }
        Attempt::Wrong => session.wrong_passwords += 1,
    }
    match session.wrong_passwords {
        ATTEMPTS_MAX.. => Err(Fault::closing(
            "TOOMANYATTEMPTS",
            "too many wrong passwords",
            &[Incident::WrongPassword, Incident::Guessed],
        )),
        _ => Err(Fault {
            incidents: &[Incident::WrongPassword],
            ..Fault::new("WRONGPASS", "wrong password, or a user other than default")
        }),
    }
}

pub fn hello(call: &mut Call<LoginService>) -> Result<Flow, Fault> {
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
    let (mut login, mut name) = (None, None);
    let mut options = call.arguments.from(2);
    while let Some(option) = options.next() {
        if option.eq_ignore_ascii_case(b"AUTH") {
            let missing = || Fault::usage("syntax error: AUTH user password");
            let user = options.next().ok_or_else(missing)?;
            login = Some((user, options.next().ok_or_else(missing)?));
        } else if option.eq_ignore_ascii_case(b"SETNAME") {
            let missing = || Fault::usage("syntax error: SETNAME name");
            name = Some(options.next().ok_or_else(missing)?);
        } else {
            return Err(Fault::usage(format!(
                "option '{}' is not one of AUTH, SETNAME",
                shown(option)
            )));
        }
    }
    if let Some((user, password)) = login
        && let Some(wait) = log_in(call, user, password)?
    {
        return Ok(Flow::Delayed(wait));
    }
    if !call.session.authenticated {
        return Err(Fault::new(
            "NOAUTH",
            "log in first: HELLO version AUTH user password, or AUTH",
        ));
    }
    if let Some(name) = name {
        set_name(call, name);
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

pub fn client(call: &mut Call<LoginService>) -> Result<Flow, Fault> {
    let arguments = call.arguments;
    match (&arguments.at(1).to_ascii_uppercase()[..], arguments.len()) {
        (b"ID", 2) => call.reply.integer(call.session.id as i64),
        (b"GETNAME", 2) => call.reply.bulk(&call.session.name),
        (b"SETNAME", 3) => {
            set_name(call, arguments.at(2));
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

fn set_name(call: &mut Call<LoginService>, name: &[u8]) {
    call.session.name = name[..name.len().min(NAME_BYTES_MAX)].into();
}
