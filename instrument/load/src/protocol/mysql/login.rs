//! `mysql://USER@HOST:PORT/DATABASE?NAME=VALUE`; `socket` names a Unix socket, other names are
//! variables of the server that are set for the sessions.

use std::path::PathBuf;

use crate::protocol::address::{Endpoint, Url, tcp};
use crate::protocol::password::Password;

const PORT: u16 = 3306;
pub const FORMS: &str = "write mysql://USER@HOST:PORT/DATABASE, or mysql://USER@/DATABASE?socket=/run/mysqld/mysqld.sock for its Unix socket";

/// How connections log in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: Option<Password>,
    pub database: Option<String>,
    /// Variables of the server, set for each connection.
    pub variables: Vec<(String, String)>,
    /// Over a Unix socket, where nobody can read the password.
    pub local: bool,
}

impl Login {
    pub fn password(&self) -> &str {
        self.password.as_ref().map_or("", Password::reveal)
    }
}

/// Parses what follows the scheme.
///
/// # Errors
/// What is wrong, without the form to write.
pub fn parse_url(rest: &str) -> Result<(Endpoint, Login), String> {
    let url = Url::parse(rest)?;
    let mut login = Login {
        user: url.user,
        database: url.database,
        ..Login::default()
    };
    let mut socket = None;
    for (name, value) in url.options {
        match &*name {
            "socket" => socket = Some(PathBuf::from(value)),
            "ssl" | "ssl-mode" | "sslmode" => return Err("TLS is not supported".to_owned()),
            _ if is_variable(&name) => login.variables.push((name, value)),
            _ => return Err(format!("{name:?} is not a variable of the server")),
        }
    }
    let endpoint = match socket {
        Some(_) if !url.host.is_empty() => {
            return Err(format!("a socket and {:?}: one of them", url.host));
        }
        Some(path) => {
            login.local = true;
            Endpoint::Unix(path)
        }
        None if url.host.is_empty() => tcp("localhost", Some(PORT))?,
        None => tcp(&url.host, Some(PORT))?,
    };
    Ok((endpoint, login))
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
        let (endpoint, login) = parse_url("me@127.0.0.1:7000/bank?wait_timeout=5").unwrap();
        assert_eq!(endpoint.name(), "127.0.0.1:7000");
        assert_eq!(login.user, "me");
        assert_eq!(login.database.as_deref(), Some("bank"));
        let variable = ("wait_timeout".to_owned(), "5".to_owned());
        assert_eq!(login.variables, [variable]);
        assert!(!login.local);

        let (endpoint, login) = parse_url("me@/?socket=/run/s.sock").unwrap();
        assert_eq!(endpoint.name(), "/run/s.sock");
        assert!(login.local && login.database.is_none());
        let (endpoint, _) = parse_url("me@127.0.0.1").unwrap();
        assert_eq!(endpoint.name(), "127.0.0.1:3306");
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("me@127.0.0.1?ssl-mode=REQUIRED", "TLS"),
            ("me@127.0.0.1?a;b=1", "not a variable"),
            ("me@127.0.0.1?socket=/run/s.sock", "one of them"),
            ("me:secret@127.0.0.1", "--password-from"),
        ] {
            let error = parse_url(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
