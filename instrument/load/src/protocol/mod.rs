//! How the sessions speak with a server: a folder for each protocol, with its requests, its replies
//! and the form of its addresses. Protocols do no input or output. This file lists them: it selects
//! the protocol that an address names.

mod address;
mod conversation;
mod mysql;
mod postgres;
mod resp;

use std::sync::Arc;

pub use address::Endpoint;
pub use conversation::{Conversation, Message, Protocol, ProtocolError, Received};

use crate::workload::{Language, Statement};

/// Schemes of addresses, for messages.
pub const SCHEMES: &str = "redis://, records://, statements://, postgresql://, mysql://";

/// The protocol that an address names, and how connections log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedProtocol {
    Resp(resp::Login),
    Postgres(postgres::Login),
    MySql(mysql::Login),
}

/// Why an address cannot be used, and what may be written instead.
#[derive(Debug, PartialEq, Eq)]
pub struct AddressError {
    pub why: String,
    pub forms: &'static str,
}

impl NamedProtocol {
    /// Parses an address: `SCHEME://REST`, `HOST:PORT`, or the path of a Unix socket; `None` if the
    /// scheme is not a protocol's.
    pub fn parse(text: &str) -> Option<Result<(Endpoint, Self), AddressError>> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Some(named(resp::parse_bare(text), Self::Resp, resp::FORMS));
        };
        Some(match scheme {
            "redis" | "unix" => named(resp::parse_url(scheme, rest), Self::Resp, resp::FORMS),
            "rediss" => Err(AddressError {
                why: "TLS is not supported".to_owned(),
                forms: resp::FORMS,
            }),
            "records" => named(
                resp::parse_service(resp::Service::Records, rest),
                Self::Resp,
                resp::RECORDS_FORMS,
            ),
            "statements" => named(
                resp::parse_service(resp::Service::Statements, rest),
                Self::Resp,
                resp::STATEMENTS_FORMS,
            ),
            "postgresql" | "postgres" => {
                named(postgres::parse_url(rest), Self::Postgres, postgres::FORMS)
            }
            "mysql" | "mariadb" => named(mysql::parse_url(rest), Self::MySql, mysql::FORMS),
            _ => return None,
        })
    }

    /// The protocol of connections that prepare these statements.
    pub fn protocol(&self, statements: &[Statement]) -> Arc<dyn Protocol> {
        match self.clone() {
            Self::Resp(login) => Arc::new(resp::Resp::new(statements, login)),
            Self::Postgres(login) => Arc::new(postgres::Postgres::new(statements, login)),
            Self::MySql(login) => Arc::new(mysql::MySql::new(statements, login)),
        }
    }

    /// What statements are written in.
    pub fn language(&self) -> Language {
        match self {
            Self::Resp(login) => match login.service {
                resp::Service::Keys => Language::KeyValue,
                resp::Service::Records => Language::Records,
                resp::Service::Statements => Language::Statements,
            },
            Self::Postgres(_) => Language::PostgreSql,
            Self::MySql(_) => Language::MySql,
        }
    }

    /// Whether the server may be a concurve-server, which knows the command `PHASE`.
    pub fn may_know_phases(&self) -> bool {
        matches!(self, Self::Resp(_))
    }

    pub fn set_password(&mut self, password: Option<String>) {
        match self {
            Self::Resp(login) => login.password = password,
            Self::Postgres(login) => login.password = password,
            Self::MySql(login) => login.password = password,
        }
    }
}

fn named<L>(
    parsed: Result<(Endpoint, L), String>,
    protocol: fn(L) -> NamedProtocol,
    forms: &'static str,
) -> Result<(Endpoint, NamedProtocol), AddressError> {
    match parsed {
        Ok((endpoint, login)) => Ok((endpoint, protocol(login))),
        Err(why) => Err(AddressError { why, forms }),
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_may_be_written() {
        let tcp = |name: &str| Endpoint::Tcp {
            name: name.to_owned(),
            address: name.parse().unwrap(),
        };
        let plain = resp::Login::default;
        let named = resp::Login {
            resp3: true,
            user: Some("me".to_owned()),
            password: None,
            database: 3,
            service: resp::Service::Keys,
        };
        let unix = Endpoint::Unix(PathBuf::from("/run/redis.sock"));
        for (text, endpoint, login) in [
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
            let expected = (endpoint, NamedProtocol::Resp(login));
            assert_eq!(NamedProtocol::parse(text), Some(Ok(expected)), "{text}");
        }
    }
}
