//! `redis://USER@HOST:PORT/DATABASE?protocol=3`, `HOST:PORT`, or the path of a Unix socket.

use std::path::PathBuf;

use super::{Greeting, Service};
use crate::plan::Server;
use crate::target::{PASSWORD_IN_SIGHT, tcp};

const PORT: u16 = 6379;
/// The reference server's.
const REFERENCE_PORT: u16 = 7379;
pub const FORMS: &str = "write redis://HOST:PORT, redis://USER@HOST:PORT/DATABASE?protocol=3, HOST:PORT, or the path of a Unix socket";

pub const RECORDS_FORMS: &str =
    "write records://HOST:PORT for a server, or records:FOLDER for the engine in this process";

pub const STATEMENTS_FORMS: &str = "write statements://HOST:PORT";

/// Reads what stands behind `records://` or `statements://`.
///
/// # Errors
/// What is wrong, without the forms to write.
pub fn parse_service(service: Service, rest: &str) -> Result<(Server, Greeting), String> {
    let (place, user) = place_and_user(rest.strip_suffix('/').unwrap_or(rest))?;
    let greeting = Greeting {
        service,
        user,
        ..Greeting::default()
    };
    Ok((tcp(place, Some(REFERENCE_PORT))?, greeting))
}

/// Reads an address without a scheme.
///
/// # Errors
/// What is wrong, without the forms to write.
pub fn parse_bare(text: &str) -> Result<(Server, Greeting), String> {
    let server = match text.contains('/') {
        true => Server::Unix(PathBuf::from(text)),
        false => tcp(text, None)?,
    };
    Ok((server, Greeting::default()))
}

/// Reads what stands behind the scheme, `redis` or `unix`.
///
/// # Errors
/// What is wrong, without the forms to write.
pub fn parse(scheme: &str, rest: &str) -> Result<(Server, Greeting), String> {
    let mut greeting = Greeting::default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    for option in query.split('&').filter(|it| !it.is_empty()) {
        greeting.resp3 = match option {
            "protocol=2" => false,
            "protocol=3" => true,
            _ => return Err(format!("{option:?} is not protocol=2 or protocol=3")),
        };
    }
    if scheme == "unix" {
        return Ok((Server::Unix(PathBuf::from(rest)), greeting));
    }
    let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !path.is_empty() {
        let number = path.parse::<u32>();
        greeting.database = number.map_err(|_| "the database is no number")?;
    }
    let (place, user) = place_and_user(place)?;
    greeting.user = user;
    Ok((tcp(place, Some(PORT))?, greeting))
}

fn place_and_user(text: &str) -> Result<(&str, Option<String>), String> {
    match text.rsplit_once('@') {
        None => Ok((text, None)),
        Some((user, _)) if user.contains(':') => Err(PASSWORD_IN_SIGHT.to_owned()),
        Some((user, place)) => Ok((place, Some(user.to_owned()))),
    }
}
