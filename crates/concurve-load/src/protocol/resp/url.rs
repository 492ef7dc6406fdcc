//! `redis://USER@HOST:PORT/DATABASE?protocol=3`, `HOST:PORT`, or the path of a Unix socket.

use std::path::PathBuf;

use super::Greeting;
use crate::plan::Server;
use crate::target::{PASSWORD_IN_SIGHT, tcp};

const PORT: u16 = 6379;
pub const FORMS: &str = "write redis://HOST:PORT, redis://USER@HOST:PORT/DATABASE?protocol=3, HOST:PORT, or the path of a Unix socket";

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
    let place = match place.rsplit_once('@') {
        None => place,
        Some((user, _)) if user.contains(':') => return Err(PASSWORD_IN_SIGHT.to_owned()),
        Some((user, place)) => {
            greeting.user = Some(user.to_owned());
            place
        }
    };
    Ok((tcp(place, Some(PORT))?, greeting))
}
