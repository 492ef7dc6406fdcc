//! `mysql://USER@HOST:PORT/DATABASE?NAME=VALUE`; `socket` names a Unix socket, other names are
//! variables of the server that are set for the sessions.

use std::path::PathBuf;

use super::Greeting;
use crate::plan::Server;
use crate::target::tcp;
use crate::url::Url;

const PORT: u16 = 3306;
pub const FORMS: &str = "write mysql://USER@HOST:PORT/DATABASE, or mysql://USER@/DATABASE?socket=/run/mysqld/mysqld.sock for its Unix socket";

/// Reads what stands behind the scheme.
///
/// # Errors
/// What is wrong, without the form to write.
pub fn parse(rest: &str) -> Result<(Server, Greeting), String> {
    let url = Url::parse(rest)?;
    let mut greeting = Greeting {
        user: url.user,
        database: url.database,
        ..Greeting::default()
    };
    let mut socket = None;
    for (name, value) in url.options {
        match &*name {
            "socket" => socket = Some(PathBuf::from(value)),
            "ssl" | "ssl-mode" | "sslmode" => return Err("TLS is not spoken here".to_owned()),
            _ if is_variable(&name) => greeting.settings.push((name, value)),
            _ => return Err(format!("{name:?} is no variable of a server")),
        }
    }
    let server = match socket {
        Some(_) if !url.place.is_empty() => {
            return Err(format!("a socket and {:?}: one of them", url.place));
        }
        Some(path) => {
            greeting.local = true;
            Server::Unix(path)
        }
        None if url.place.is_empty() => tcp("localhost", Some(PORT))?,
        None => tcp(&url.place, Some(PORT))?,
    };
    Ok((server, greeting))
}

fn is_variable(name: &str) -> bool {
    let of_a_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|it: char| it.is_ascii_alphabetic()) && name.bytes().all(of_a_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written() {
        let (server, greeting) = parse("me@127.0.0.1:7000/bank?wait_timeout=5").unwrap();
        assert_eq!(server.text(), "127.0.0.1:7000");
        assert_eq!(greeting.user, "me");
        assert_eq!(greeting.database.as_deref(), Some("bank"));
        let setting = ("wait_timeout".to_owned(), "5".to_owned());
        assert_eq!(greeting.settings, [setting]);
        assert!(!greeting.local);

        let (server, greeting) = parse("me@/?socket=/run/s.sock").unwrap();
        assert_eq!(server.text(), "/run/s.sock");
        assert!(greeting.local && greeting.database.is_none());
        let (server, _) = parse("me@127.0.0.1").unwrap();
        assert_eq!(server.text(), "127.0.0.1:3306");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("me@127.0.0.1?ssl-mode=REQUIRED", "TLS"),
            ("me@127.0.0.1?a;b=1", "no variable"),
            ("me@127.0.0.1?socket=/run/s.sock", "one of them"),
            ("me:secret@127.0.0.1", "--password-from"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
