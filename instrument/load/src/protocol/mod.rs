//! How the sessions speak with a server: a folder for each protocol, with its requests, its replies
//! and the form of its addresses. Protocols do no input or output. This file lists them: it selects
//! the protocol that an address names.

mod address;
mod conversation;
#[cfg(test)]
mod fuzz;
mod mysql;
mod password;
mod postgres;
mod resp;

use std::sync::Arc;

pub use address::{Addresses, Endpoint};
pub use conversation::{Conversation, Message, Protocol, ProtocolError, Received, TEXT_BYTES_MAX};
pub use password::{Password, shown_address};

use crate::workload::{Language, Statement};

/// The protocol that an address names, and how connections log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedProtocol {
    Resp(resp::Login),
    Postgres(postgres::Login),
    MySql(mysql::Login),
}

/// What an address with a scheme is parsed to.
type Parsed = Result<(Endpoint, NamedProtocol), AddressError>;

/// A scheme of addresses.
struct Scheme {
    /// All names of the scheme, the one that messages show first.
    names: &'static [&'static str],
    /// Parses what follows `NAME://`.
    parse: fn(name: &str, rest: &str) -> Parsed,
}

/// Each scheme, in the order in which messages list them.
const SCHEMES: &[Scheme] = &[
    Scheme {
        names: &["redis", "unix"],
        parse: |name, rest| {
            let parsed = resp::parse_url(name, rest);
            named(parsed, NamedProtocol::Resp, resp::FORMS)
        },
    },
    Scheme {
        names: &["records"],
        parse: |_, rest| {
            let parsed = resp::parse_service(resp::Service::Records, rest);
            named(parsed, NamedProtocol::Resp, resp::RECORDS_FORMS)
        },
    },
    Scheme {
        names: &["statements"],
        parse: |_, rest| {
            let parsed = resp::parse_service(resp::Service::Statements, rest);
            named(parsed, NamedProtocol::Resp, resp::STATEMENTS_FORMS)
        },
    },
    Scheme {
        names: &["postgresql", "postgres"],
        parse: |_, rest| {
            let parsed = postgres::parse_url(rest);
            named(parsed, NamedProtocol::Postgres, postgres::FORMS)
        },
    },
    Scheme {
        names: &["mysql", "mariadb"],
        parse: |_, rest| named(mysql::parse_url(rest), NamedProtocol::MySql, mysql::FORMS),
    },
];

/// The schemes, for messages.
pub fn schemes() -> String {
    let shown = SCHEMES.iter().map(|it| format!("{}://", it.names[0]));
    shown.collect::<Vec<_>>().join(", ")
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
    pub fn parse(text: &str) -> Option<Parsed> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Some(named(resp::parse_bare(text), Self::Resp, resp::FORMS));
        };
        if scheme == "rediss" {
            return Some(Err(AddressError {
                why: "TLS is not supported".to_owned(),
                forms: resp::FORMS,
            }));
        }
        let found = SCHEMES.iter().find(|it| it.names.contains(&scheme))?;
        Some((found.parse)(scheme, rest))
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

    pub fn set_password(&mut self, password: Option<Password>) {
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
) -> Parsed {
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
    fn every_scheme_is_parsed_and_named_once() {
        let mut seen = std::collections::BTreeSet::new();
        for scheme in SCHEMES {
            for name in scheme.names {
                assert!(seen.insert(name), "{name} is there twice");
                assert!(
                    NamedProtocol::parse(&format!("{name}://")).is_some(),
                    "{name}"
                );
            }
        }
        assert_eq!(
            schemes(),
            "redis://, records://, statements://, postgresql://, mysql://"
        );
        assert_eq!(NamedProtocol::parse("http://127.0.0.1"), None);
    }

    #[test]
    fn what_may_be_written() {
        let tcp = |name: &str| Endpoint::Tcp {
            name: name.to_owned(),
            addresses: Addresses::new(vec![name.parse().unwrap()]),
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
