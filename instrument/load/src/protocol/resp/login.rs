//! How connections begin, and how an address says it: `redis://USER@HOST:PORT/DATABASE?protocol=3`,
//! `records://HOST:PORT`, `statements://HOST:PORT`, `HOST:PORT`, or the path of a Unix socket.

use std::path::PathBuf;

use crate::protocol::address::{Endpoint, PASSWORD_IN_ADDRESS, decoded, tcp};
use crate::protocol::password::{Password, holds_password, is_password};

const PORT: u16 = 6379;
/// The reference server's port.
const REFERENCE_PORT: u16 = 7379;
pub const FORMS: &str = "write redis://HOST:PORT, redis://USER@HOST:PORT/DATABASE?protocol=3, HOST:PORT, or the path of a Unix socket";

pub const RECORDS_FORMS: &str =
    "write records://HOST:PORT for a server, or records:FOLDER for the engine in this process";

pub const STATEMENTS_FORMS: &str = "write statements://HOST:PORT";

/// How connections begin.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    /// RESP 3 instead of 2.
    pub resp3: bool,
    pub user: Option<String>,
    pub password: Option<Password>,
    pub database: u32,
    pub service: Service,
}

/// What kind of server it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Service {
    /// A key-value server, without transactions but those of a workload.
    #[default]
    Keys,
    /// The reference server's record service. It and the next one have transactions, which must be
    /// aborted after an error.
    Records,
    /// The reference server's statement service, whose statements are prepared.
    Statements,
}

impl Login {
    /// The commands that a connection begins with.
    pub fn commands(&self) -> Vec<Vec<&str>> {
        let login = self.password.as_ref().map(|password| {
            let user = self.user.as_deref();
            (user, password.reveal())
        });
        let mut commands = Vec::new();
        match (self.resp3, login) {
            (false, None) => {}
            (false, Some((None, password))) => commands.push(vec!["AUTH", password]),
            (false, Some((Some(user), password))) => commands.push(vec!["AUTH", user, password]),
            (true, None) => commands.push(vec!["HELLO", "3"]),
            (true, Some((user, password))) => {
                let user = user.unwrap_or("default");
                commands.push(vec!["HELLO", "3", "AUTH", user, password]);
            }
        }
        if self.service != Service::Keys && commands.is_empty() {
            // What follows may take as long as it needs; the answer to this shows that the server
            // is there.
            commands.push(vec!["PING"]);
        }
        commands
    }
}

/// Parses what follows `records://` or `statements://`.
///
/// # Errors
/// What is wrong, without the forms to write.
pub fn parse_service(service: Service, rest: &str) -> Result<(Endpoint, Login), String> {
    let (host, user) = host_and_user(rest.strip_suffix('/').unwrap_or(rest))?;
    let login = Login {
        service,
        user,
        ..Login::default()
    };
    Ok((tcp(host, Some(REFERENCE_PORT))?, login))
}

/// Parses an address without a scheme.
///
/// # Errors
/// What is wrong, without the forms to write.
pub fn parse_bare(text: &str) -> Result<(Endpoint, Login), String> {
    if !text.starts_with(['/', '.']) && holds_password(text) {
        return Err(PASSWORD_IN_ADDRESS.to_owned());
    }
    let endpoint = match text.contains('/') {
        true => Endpoint::Unix(PathBuf::from(text)),
        false => tcp(text, None)?,
    };
    Ok((endpoint, Login::default()))
}

/// Parses what follows the scheme, `redis` or `unix`.
///
/// # Errors
/// What is wrong, without the forms to write.
pub fn parse_url(scheme: &str, rest: &str) -> Result<(Endpoint, Login), String> {
    if scheme != "unix" && holds_password(rest) {
        return Err(PASSWORD_IN_ADDRESS.to_owned());
    }
    let mut login = Login::default();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    for option in query.split('&').filter(|it| !it.is_empty()) {
        login.resp3 = match option {
            "protocol=2" => false,
            "protocol=3" => true,
            _ => return Err(not_an_option(option)),
        };
    }
    if scheme == "unix" {
        return Ok((Endpoint::Unix(PathBuf::from(rest)), login));
    }
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !path.is_empty() {
        let number = path.parse::<u32>();
        login.database = number.map_err(|_| "the database is not a number")?;
    }
    let (host, user) = host_and_user(host)?;
    login.user = user;
    Ok((tcp(host, Some(PORT))?, login))
}

/// An option that there is none of, by its name alone: its value may be a secret.
fn not_an_option(option: &str) -> String {
    let name = option.split_once('=').map_or("an option", |it| it.0);
    match is_password(name) {
        true => PASSWORD_IN_ADDRESS.to_owned(),
        false => format!("{name:?} is not protocol=2 or protocol=3"),
    }
}

fn host_and_user(text: &str) -> Result<(&str, Option<String>), String> {
    match text.rsplit_once('@') {
        None => Ok((text, None)),
        Some((user, _)) if user.contains(':') => Err(PASSWORD_IN_ADDRESS.to_owned()),
        Some((user, host)) => Ok((host, Some(decoded(user)?))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_decoded() {
        for (text, user) in [
            ("m%40e@127.0.0.1:1", Some("m@e")),
            ("%C3%A4%3A1@127.0.0.1:1/2", Some("ä:1")),
            ("127.0.0.1:1", None),
        ] {
            let (_, login) = parse_url("redis", text).unwrap();
            assert_eq!(login.user.as_deref(), user, "{text}");
        }
        let (_, login) = parse_service(Service::Records, "m%40e@127.0.0.1").unwrap();
        assert_eq!(login.user.as_deref(), Some("m@e"));
        let error = parse_url("redis", "%FF@127.0.0.1").unwrap_err();
        assert!(error.contains("not UTF-8"), "{error}");
    }
}
