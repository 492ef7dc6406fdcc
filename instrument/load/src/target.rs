//! Where the server is and what it speaks, by its address: the scheme says whose protocol.

use std::net::ToSocketAddrs;
use std::sync::Arc;

use crate::desk::{Desks, ServerDesks};
use crate::embedded;
use crate::error::Error;
use crate::plan::{Link, Reach, Server};
use crate::protocol::resp::Service;
use crate::protocol::{Protocol, mysql, postgres, resp};
use crate::workload::tpcb::dialect::Dialect;
use crate::workload::tpcb::{records, sql, statements};
use crate::workload::{Statement, Workload};

/// Why a password is refused that stands in an address.
pub const PASSWORD_IN_SIGHT: &str = "a password on the command line can be seen by others: --password-from VARIABLE names an environment variable with it";

/// What the load is put on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A server and what is spoken with it.
    Server { server: Server, speech: Speech },
    /// An engine in this process.
    Engine(embedded::Address),
}

/// A protocol, and how to begin with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Speech {
    Resp(resp::Greeting),
    Postgres(postgres::Greeting),
    MySql(mysql::Greeting),
}

impl Target {
    /// # Errors
    /// It is no address, and what may be written instead.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |why: String, forms: &str| {
            Err(Error::Asked(format!("server {text:?}: {why}; {forms}")))
        };
        match embedded::Address::parse(text) {
            Some(Ok(address)) => return Ok(Self::Engine(address)),
            Some(Err(why)) => return wrong(why, &embedded::forms()),
            None => {}
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return match resp::parse_bare(text) {
                Ok(found) => Ok(Self::of(found, Speech::Resp)),
                Err(why) => wrong(why, resp::FORMS),
            };
        };
        match scheme {
            "redis" | "unix" => match resp::parse_url(scheme, rest) {
                Ok(found) => Ok(Self::of(found, Speech::Resp)),
                Err(why) => wrong(why, resp::FORMS),
            },
            "records" => match resp::parse_service(Service::Records, rest) {
                Ok(found) => Ok(Self::of(found, Speech::Resp)),
                Err(why) => wrong(why, resp::RECORDS_FORMS),
            },
            "statements" => match resp::parse_service(Service::Statements, rest) {
                Ok(found) => Ok(Self::of(found, Speech::Resp)),
                Err(why) => wrong(why, resp::STATEMENTS_FORMS),
            },
            "postgresql" | "postgres" => match postgres::parse_url(rest) {
                Ok(found) => Ok(Self::of(found, Speech::Postgres)),
                Err(why) => wrong(why, postgres::FORMS),
            },
            "mysql" | "mariadb" => match mysql::parse_url(rest) {
                Ok(found) => Ok(Self::of(found, Speech::MySql)),
                Err(why) => wrong(why, mysql::FORMS),
            },
            "rediss" => wrong("TLS is not spoken here".to_owned(), resp::FORMS),
            _ => wrong(format!("{scheme} is not spoken here"), SCHEMES),
        }
    }

    fn of<G>((server, greeting): (Server, G), speech: fn(G) -> Speech) -> Self {
        Self::Server {
            server,
            speech: speech(greeting),
        }
    }

    /// # Errors
    /// A password is given to an engine.
    pub fn set_password(&mut self, password: Option<String>) -> Result<(), Error> {
        match (self, password) {
            (Self::Server { speech, .. }, password) => speech.set_password(password),
            (Self::Engine(_), None) => {}
            (Self::Engine(_), Some(_)) => {
                let why = "--password-from is for servers: an engine in this process asks for none";
                return Err(Error::Asked(why.to_owned()));
            }
        }
        Ok(())
    }

    /// How sessions get to it with the statements of a workload.
    pub fn reach(self, workload: &dyn Workload, patience_ns: u64) -> Reach {
        match self {
            Self::Server { server, speech } => Reach::Server(Link {
                server,
                protocols: speech.protocols(workload),
                patience_ns,
            }),
            Self::Engine(address) => Reach::Engine(address.engine(workload)),
        }
    }

    /// How to get there for what comes before a load and after it.
    pub fn desks(&self, patience_ns: u64) -> Arc<dyn Desks> {
        match self {
            Self::Server { server, speech } => Arc::new(ServerDesks {
                server: server.clone(),
                protocol: speech.protocol(&[]),
                patience_ns,
            }),
            Self::Engine(address) => address.desks(),
        }
    }

    /// As the reference server does.
    pub fn speaks_resp(&self) -> bool {
        matches!(
            self,
            Self::Server {
                speech: Speech::Resp(_),
                ..
            }
        )
    }

    /// Whether it tells statements that are prepared from texts that are new.
    pub fn prepares(&self) -> bool {
        match self {
            Self::Server { speech, .. } => speech.prepares(),
            Self::Engine(_) => false,
        }
    }

    /// How TPC-B is said to it, if it can be.
    pub fn dialect(&self) -> Option<&'static dyn Dialect> {
        match self {
            Self::Server { speech, .. } => speech.dialect(),
            Self::Engine(address) => Some(address.dialect()),
        }
    }
}

const SCHEMES: &str =
    "redis://, records://, statements://, postgresql://, mysql://, records: and sqlite: are";

impl Speech {
    /// The protocol of connections that prepare these statements.
    pub fn protocol(&self, statements: &[Statement]) -> Arc<dyn Protocol> {
        match self.clone() {
            Self::Resp(greeting) => Arc::new(resp::Resp::new(statements, greeting)),
            Self::Postgres(greeting) => Arc::new(postgres::Postgres::new(statements, greeting)),
            Self::MySql(greeting) => Arc::new(mysql::MySql::new(statements, greeting)),
        }
    }

    /// A protocol for each set of a workload's statements.
    pub fn protocols(&self, workload: &dyn Workload) -> Vec<Arc<dyn Protocol>> {
        let sets = 0..workload.sets();
        sets.map(|set| self.protocol(workload.statements(set)))
            .collect()
    }

    /// How TPC-B is said in it, if it can be.
    pub fn dialect(&self) -> Option<&'static dyn Dialect> {
        match self {
            Self::Resp(greeting) => match greeting.service {
                Service::Keys => None,
                Service::Records => Some(&records::RECORDS),
                Service::Statements => Some(&statements::STATEMENTS),
            },
            Self::Postgres(_) => Some(&sql::POSTGRES),
            Self::MySql(_) => Some(&sql::MYSQL),
        }
    }

    /// Whether it tells statements that are prepared from texts that are new.
    pub fn prepares(&self) -> bool {
        match self {
            Self::Resp(greeting) => greeting.service == Service::Statements,
            Self::Postgres(_) | Self::MySql(_) => true,
        }
    }

    pub fn set_password(&mut self, password: Option<String>) {
        match self {
            Self::Resp(greeting) => greeting.password = password,
            Self::Postgres(greeting) => greeting.password = password,
            Self::MySql(greeting) => greeting.password = password,
        }
    }
}

/// Resolves HOST:PORT; without a port the usual one counts, if there is one.
///
/// # Errors
/// There is no such address.
pub fn tcp(place: &str, usual_port: Option<u16>) -> Result<Server, String> {
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
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn what_may_be_written() {
        let tcp = |name: &str| Server::Tcp {
            name: name.to_owned(),
            address: name.parse().unwrap(),
        };
        let plain = resp::Greeting::default;
        let named = resp::Greeting {
            resp3: true,
            user: Some("me".to_owned()),
            password: None,
            database: 3,
            service: Service::Keys,
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
            let speech = Speech::Resp(greeting);
            assert_eq!(
                Target::parse(text).unwrap(),
                Target::Server { server, speech }
            );
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
