//! Where the server is and what it speaks: `redis://USER@HOST:PORT/DATABASE?protocol=3`,
//! `HOST:PORT`, or the path of a Unix socket.

use std::net::ToSocketAddrs;
use std::path::PathBuf;

use crate::error::Error;
use crate::plan::Server;
use crate::protocol::resp::Greeting;

const REDIS_PORT: u16 = 6379;
const FORMS: &str = "write redis://HOST:PORT, redis://USER@HOST:PORT/DATABASE?protocol=3, HOST:PORT, or the path of a Unix socket";

/// A server and how to begin with it.
#[derive(Debug, PartialEq, Eq)]
pub struct Target {
    pub server: Server,
    pub greeting: Greeting,
}

impl Target {
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Asked(format!("server {text:?}: {why}; {FORMS}"));
        let Some((scheme, rest)) = text.split_once("://") else {
            let greeting = Greeting::default();
            let server = match text.contains('/') {
                true => Server::Unix(PathBuf::from(text)),
                false => address(text, None).map_err(|why| wrong(&why))?,
            };
            return Ok(Self { server, greeting });
        };
        match scheme {
            "redis" | "unix" => {}
            "rediss" => return Err(wrong("TLS is not spoken here")),
            _ => return Err(wrong(&format!("{scheme} is not spoken here"))),
        }
        let mut greeting = Greeting::default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        for option in query.split('&').filter(|it| !it.is_empty()) {
            match option {
                "protocol=2" => greeting.resp3 = false,
                "protocol=3" => greeting.resp3 = true,
                _ => {
                    return Err(wrong(&format!(
                        "{option:?} is not protocol=2 or protocol=3"
                    )));
                }
            }
        }
        if scheme == "unix" {
            let server = Server::Unix(PathBuf::from(rest));
            return Ok(Self { server, greeting });
        }
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        if !path.is_empty() {
            let number = path.parse::<u32>();
            greeting.database = number.map_err(|_| wrong("the database is no number"))?;
        }
        let place = match place.rsplit_once('@') {
            None => place,
            Some((user, _)) if user.contains(':') => {
                return Err(wrong(
                    "a password on the command line can be seen by others: --password-from VARIABLE names an environment variable with it",
                ));
            }
            Some((user, place)) => {
                greeting.user = Some(user.to_owned());
                place
            }
        };
        let server = address(place, Some(REDIS_PORT)).map_err(|why| wrong(&why))?;
        Ok(Self { server, greeting })
    }
}

/// Resolves HOST:PORT; without a port the usual one counts, if there is one.
fn address(place: &str, usual_port: Option<u16>) -> Result<Server, String> {
    let has_port = place
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()))
        && !place.ends_with(']');
    let name = match usual_port {
        Some(port) if !has_port => format!("{place}:{port}"),
        _ => place.to_owned(),
    };
    let mut addresses = name.to_socket_addrs().map_err(|error| error.to_string())?;
    match addresses.next() {
        Some(address) => Ok(Server::Tcp { name, address }),
        None => Err("it has no address".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written() {
        let tcp = |name: &str| Server::Tcp {
            name: name.to_owned(),
            address: name.parse().unwrap(),
        };
        let plain = Greeting::default;
        let named = Greeting {
            resp3: true,
            user: Some("me".to_owned()),
            password: None,
            database: 3,
        };
        let unix = Server::Unix(PathBuf::from("/run/redis.sock"));
        for (text, server, greeting) in [
            ("127.0.0.1:7000", tcp("127.0.0.1:7000"), plain()),
            ("redis://127.0.0.1", tcp("127.0.0.1:6379"), plain()),
            ("redis://[::1]", tcp("[::1]:6379"), plain()),
            ("redis://[::1]:7000/", tcp("[::1]:7000"), plain()),
            (
                "redis://me@127.0.0.1:7000/3?protocol=3",
                tcp("127.0.0.1:7000"),
                named,
            ),
            ("/run/redis.sock", unix.clone(), plain()),
            ("unix:///run/redis.sock", unix, plain()),
        ] {
            assert_eq!(Target::parse(text).unwrap(), Target { server, greeting });
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("nowhere", "write redis://HOST:PORT"),
            ("rediss://127.0.0.1", "TLS"),
            ("http://127.0.0.1", "http is not spoken here"),
            ("redis://me:secret@127.0.0.1", "--password-from"),
            ("redis://127.0.0.1/x", "no number"),
            ("redis://127.0.0.1?resp=3", "protocol=3"),
        ] {
            let error = Target::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
