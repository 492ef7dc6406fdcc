//! `postgresql://USER@HOST:PORT/DATABASE?NAME=VALUE`, as libpq writes it. `host` names the folder
//! of a Unix socket; other names are settings of the server for the sessions.

use std::path::Path;

use nix::unistd::{Uid, User};
use percent_encoding::percent_decode_str;

use super::Greeting;
use crate::plan::Server;
use crate::target::{PASSWORD_IN_SIGHT, tcp};

const PORT: u16 = 5432;
pub const FORMS: &str = "write postgresql://USER@HOST:PORT/DATABASE, or postgresql:///DATABASE?host=/var/run/postgresql for its Unix socket";

/// Reads what stands behind the scheme.
///
/// # Errors
/// What is wrong, without the form to write.
pub fn parse(rest: &str) -> Result<(Server, Greeting), String> {
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (place, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = match place.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => {
            return Err(PASSWORD_IN_SIGHT.to_owned());
        }
        Some((user, place)) => (decoded(user)?, place),
        None => (own_name()?, place),
    };
    let mut greeting = Greeting {
        database: match database {
            "" => user.clone(),
            name => decoded(name)?,
        },
        user,
        ..Greeting::default()
    };
    let (mut host, mut port) = (decoded(place)?, None);
    for option in query.split('&').filter(|it| !it.is_empty()) {
        let (name, value) = option
            .split_once('=')
            .ok_or_else(|| format!("{option:?} has no value"))?;
        let (name, value) = (decoded(name)?, decoded(value)?);
        match &*name {
            "host" => host = value,
            "port" => port = Some(number(&value)?),
            "sslmode" if matches!(&*value, "disable" | "allow" | "prefer") => {}
            "sslmode" => return Err("TLS is not spoken here".to_owned()),
            _ => greeting.settings.push((name, value)),
        }
    }
    Ok((server(&host, port)?, greeting))
}

fn server(host: &str, port: Option<u16>) -> Result<Server, String> {
    if host.starts_with('/') {
        // A port may follow the folder: %2Frun%2Fpostgresql:5433.
        let (folder, behind) = match host.rsplit_once(':') {
            Some((folder, port)) => (folder, Some(number(port)?)),
            None => (host, None),
        };
        let port = port.or(behind).unwrap_or(PORT);
        let socket = Path::new(folder).join(format!(".s.PGSQL.{port}"));
        return Ok(Server::Unix(socket));
    }
    let host = if host.is_empty() { "localhost" } else { host };
    tcp(host, Some(port.unwrap_or(PORT)))
}

fn number(port: &str) -> Result<u16, String> {
    port.parse().map_err(|_| format!("{port:?} is no port"))
}

fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if !decoded.contains('\0') => Ok(decoded.into_owned()),
        _ => Err(format!("{text:?} is no text")),
    }
}

/// Who logs in if nobody is named: as with libpq, the user of this process.
fn own_name() -> Result<String, String> {
    match User::from_uid(Uid::effective()) {
        Ok(Some(user)) => Ok(user.name),
        _ => Err("no user is named, and this process's has no name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written() {
        let (server, greeting) = parse("me@127.0.0.1:7000/bank").unwrap();
        assert_eq!(server.text(), "127.0.0.1:7000");
        assert_eq!((&*greeting.user, &*greeting.database), ("me", "bank"));

        let (server, greeting) = parse("m%40e@127.0.0.1?synchronous_commit=off").unwrap();
        assert_eq!(server.text(), "127.0.0.1:5432");
        assert_eq!((&*greeting.user, &*greeting.database), ("m@e", "m@e"));
        let setting = ("synchronous_commit".to_owned(), "off".to_owned());
        assert_eq!(greeting.settings, [setting]);

        for text in [
            "me@%2Frun%2Fpg:5433/bank",
            "me@/bank?host=/run/pg&port=5433",
        ] {
            let (server, greeting) = parse(text).unwrap();
            assert_eq!(server.text(), "/run/pg/.s.PGSQL.5433");
            assert_eq!(greeting.database, "bank");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("me:secret@127.0.0.1", "--password-from"),
            ("me@127.0.0.1?sslmode=require", "TLS"),
            ("me@127.0.0.1?port", "has no value"),
            ("me@127.0.0.1?host=/run&port=x", "no port"),
            ("me%00@127.0.0.1", "no text"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
