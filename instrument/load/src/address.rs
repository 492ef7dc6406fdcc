//! Addresses on the command line: of a server, or of an engine in this process.

use std::sync::Arc;

use crate::admin::AdminAccess;
use crate::connection::ServerAdmin;
use crate::engine::{self, NamedEngine};
use crate::error::Error;
use crate::plan::{ServerTarget, Target};
use crate::protocol::{self, AddressError, Endpoint, NamedProtocol, Password, shown_address};
use crate::workload::{Language, Workload};

/// What to do about a web server, for which this load generator has no protocol.
const WEB_SERVERS: &str = "; for a web server, run a client of your own in a sweep, as in \
    concurve sweep -P clients 1,8,64 --extract wrk -- wrk -c {clients} -d 2s http://HOST:PORT/";

/// The server or engine under load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Server {
        endpoint: Endpoint,
        protocol: NamedProtocol,
    },
    /// An engine in this process.
    Engine(NamedEngine),
}

impl Address {
    /// # Errors
    /// It is not an address; the error says what may be written instead.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let wrong = |shown: &str, why: String, forms: &str| {
            Err(Error::Usage(format!("server {shown:?}: {why}; {forms}")))
        };
        let shown = shown_address(text);
        match NamedEngine::parse(text) {
            Some(Ok(engine)) => return Ok(Self::Engine(engine)),
            // A path, and settings that are named by what is wrong with them.
            Some(Err(why)) => {
                let path = text.split('?').next().unwrap_or_default();
                return wrong(path, why, &engine::forms());
            }
            None => {}
        }
        match NamedProtocol::parse(text) {
            Some(Ok((endpoint, protocol))) => Ok(Self::Server { endpoint, protocol }),
            Some(Err(AddressError { why, forms })) => wrong(&shown, why, forms),
            None => {
                let scheme = text.split("://").next().unwrap_or_default();
                let mut known = format!("{}, {} are", protocol::schemes(), engine::schemes());
                if matches!(scheme, "http" | "https") {
                    known.push_str(WEB_SERVERS);
                }
                wrong(&shown, format!("{scheme} is not a known scheme"), &known)
            }
        }
    }

    /// # Errors
    /// A password is given for an engine.
    pub fn set_password(&mut self, password: Option<Password>) -> Result<(), Error> {
        match (self, password) {
            (Self::Server { protocol, .. }, password) => protocol.set_password(password),
            (Self::Engine(_), None) => {}
            (Self::Engine(_), Some(_)) => {
                return Err(Error::Usage(
                    "--password-from is for servers: an engine in this process asks for none"
                        .to_owned(),
                ));
            }
        }
        Ok(())
    }

    /// The target, with the statements of a workload.
    pub fn target(self, workload: &dyn Workload, connect_timeout_ns: u64) -> Target {
        match self {
            Self::Server { endpoint, protocol } => {
                let sets = 0..workload.sets();
                let protocols = sets.map(|set| protocol.protocol(workload.statements(set)));
                Target::Server(ServerTarget {
                    endpoint,
                    protocols: protocols.collect(),
                    connect_timeout_ns,
                })
            }
            Self::Engine(engine) => Target::Engine(engine.engine(workload)),
        }
    }

    /// Access for administrative connections. A server has this time for each answer, if it is limited.
    pub fn admin(
        &self,
        connect_timeout_ns: u64,
        answer_timeout_ns: Option<u64>,
    ) -> Arc<dyn AdminAccess> {
        match self {
            Self::Server { endpoint, protocol } => Arc::new(ServerAdmin {
                endpoint: endpoint.clone(),
                protocol: protocol.protocol(&[]),
                connect_timeout_ns,
                answer_timeout_ns,
            }),
            Self::Engine(engine) => engine.admin(),
        }
    }

    /// Whether it may be a concurve-server, which knows the command `PHASE`.
    pub fn may_know_phases(&self) -> bool {
        match self {
            Self::Server { protocol, .. } => protocol.may_know_phases(),
            Self::Engine(_) => false,
        }
    }

    /// The language of the statements.
    pub fn language(&self) -> Language {
        match self {
            Self::Server { protocol, .. } => protocol.language(),
            Self::Engine(engine) => engine.language(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("nowhere", "write redis://HOST:PORT"),
            ("rediss://127.0.0.1", "TLS"),
            ("http://127.0.0.1", "http is not a known scheme"),
            ("https://127.0.0.1", "--extract wrk -- wrk"),
            ("redis://me:secret@127.0.0.1", "--password-from"),
            ("redis://127.0.0.1/x", "not a number"),
            ("me:secret@127.0.0.1", "--password-from"),
            ("redis://:sec/ret:secret@127.0.0.1", "--password-from"),
            ("redis://127.0.0.1?password=secret", "--password-from"),
            (
                "postgresql://127.0.0.1/b?password=secret",
                "--password-from",
            ),
            ("mysql://127.0.0.1/b?password=secret", "--password-from"),
            ("sqlite:/b?key=secret", "not a setting"),
            ("redis://127.0.0.1?resp=3", "protocol=3"),
        ] {
            let error = Address::parse(text).unwrap_err().to_string();
            assert!(error.contains(why), "{text}: {error}");
            assert!(!error.contains("secret"), "{text}: {error}");
        }
    }
}
