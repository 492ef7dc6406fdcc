//! `postgresql://USER@HOST:PORT/DATABASE?NAME=VALUE`, as libpq writes it. `host` names the folder
//! of a Unix socket; other names are settings of the server for the sessions.

use std::path::Path;

use super::login::Login;
use crate::protocol::address::{Endpoint, Url, tcp};

const PORT: u16 = 5432;
pub const FORMS: &str = "write postgresql://USER@HOST:PORT/DATABASE, or postgresql:///DATABASE?host=/var/run/postgresql for its Unix socket";

/// Parses what follows the scheme.
///
/// # Errors
/// What is wrong, without the form to write.
pub fn parse_url(rest: &str) -> Result<(Endpoint, Login), String> {
    let url = Url::parse(rest)?;
    let mut login = Login {
        database: url.database.unwrap_or_else(|| url.user.clone()),
        user: url.user,
        ..Login::default()
    };
    let (mut host, mut port) = (url.host, None);
    for (name, value) in url.options {
        match &*name {
            "host" => host = value,
            "port" => port = Some(number(&value)?),
            "sslmode" if matches!(&*value, "disable" | "allow" | "prefer") => {}
            "sslmode" => return Err("TLS is not supported".to_owned()),
            _ => login.settings.push((name, value)),
        }
    }
    Ok((endpoint(&host, port)?, login))
}

fn endpoint(host: &str, port: Option<u16>) -> Result<Endpoint, String> {
    if host.starts_with('/') {
        // A port may follow the folder: %2Frun%2Fpostgresql:5433.
        let (folder, port_of_host) = match host.rsplit_once(':') {
            Some((folder, port)) => (folder, Some(number(port)?)),
            None => (host, None),
        };
        let port = port.or(port_of_host).unwrap_or(PORT);
        let socket = Path::new(folder).join(format!(".s.PGSQL.{port}"));
        return Ok(Endpoint::Unix(socket));
    }
    let host = if host.is_empty() { "localhost" } else { host };
    tcp(host, Some(port.unwrap_or(PORT)))
}

fn number(port: &str) -> Result<u16, String> {
    port.parse().map_err(|_| format!("{port:?} is not a port"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written() {
        let (endpoint, login) = parse_url("me@127.0.0.1:7000/bank").unwrap();
        assert_eq!(endpoint.name(), "127.0.0.1:7000");
        assert_eq!((&*login.user, &*login.database), ("me", "bank"));

        let (endpoint, login) = parse_url("m%40e@127.0.0.1?synchronous_commit=off").unwrap();
        assert_eq!(endpoint.name(), "127.0.0.1:5432");
        assert_eq!((&*login.user, &*login.database), ("m@e", "m@e"));
        let setting = ("synchronous_commit".to_owned(), "off".to_owned());
        assert_eq!(login.settings, [setting]);

        for text in [
            "me@%2Frun%2Fpg:5433/bank",
            "me@/bank?host=/run/pg&port=5433",
        ] {
            let (endpoint, login) = parse_url(text).unwrap();
            assert_eq!(endpoint.name(), "/run/pg/.s.PGSQL.5433");
            assert_eq!(login.database, "bank");
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("me:secret@127.0.0.1", "--password-from"),
            ("me@127.0.0.1?sslmode=require", "TLS"),
            ("me@127.0.0.1?port", "has no value"),
            ("me@127.0.0.1?host=/run&port=x", "not a port"),
            ("me%00@127.0.0.1", "not UTF-8"),
        ] {
            let error = parse_url(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
