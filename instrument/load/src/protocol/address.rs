//! The parts of an address: the endpoint of a server, and the URL of a database,
//! `USER@HOST:PORT/DATABASE?NAME=VALUE`.

use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use nix::unistd::{Uid, User};
use percent_encoding::percent_decode_str;

use super::password::{holds_password, is_password};

/// Why a password is refused that is part of an address.
pub const PASSWORD_IN_ADDRESS: &str = "a password on the command line can be seen by others: --password-from VARIABLE names an environment variable with it";

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Endpoint {
    Tcp { name: String, addresses: Addresses },
    Unix(PathBuf),
}

impl Endpoint {
    /// Whether it is surely on this machine.
    pub fn is_here(&self) -> bool {
        match self {
            Self::Tcp { addresses, .. } => addresses.are_loopback(),
            Self::Unix(_) => true,
        }
    }

    /// As messages name it.
    pub fn name(&self) -> String {
        match self {
            Self::Tcp { name, .. } => name.clone(),
            Self::Unix(path) => path.display().to_string(),
        }
    }
}

/// The addresses of a name, in the order in which they are tried. All connections of a process go to the
/// first that took one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    all: Vec<SocketAddr>,
    chosen: Arc<OnceLock<SocketAddr>>,
}

impl Addresses {
    pub fn new(all: Vec<SocketAddr>) -> Self {
        Self {
            all,
            chosen: Arc::default(),
        }
    }

    /// Those to try: once one has been chosen, that one alone.
    pub fn to_try(&self) -> &[SocketAddr] {
        match self.chosen.get() {
            Some(chosen) => std::slice::from_ref(chosen),
            None => &self.all,
        }
    }

    /// Chooses an address that took a connection, unless another one is chosen by now; returns the chosen one.
    pub fn choose(&self, address: SocketAddr) -> SocketAddr {
        *self.chosen.get_or_init(|| address)
    }

    fn are_loopback(&self) -> bool {
        self.to_try().iter().all(|it| it.ip().is_loopback())
    }
}

/// Resolves HOST:PORT; without a port the default port is taken, if there is one.
///
/// # Errors
/// There is no such address.
pub fn tcp(host: &str, default_port: Option<u16>) -> Result<Endpoint, String> {
    let has_port = host
        .rsplit_once(':')
        .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit()))
        && !host.ends_with(']');
    let name = match default_port {
        Some(port) if !has_port => format!("{host}:{port}"),
        _ => host.to_owned(),
    };
    let addresses = name.to_socket_addrs().map_err(|error| error.to_string())?;
    let addresses = Addresses::new(addresses.collect());
    match addresses.all.is_empty() {
        false => Ok(Endpoint::Tcp { name, addresses }),
        true => Err("it has no address".to_owned()),
    }
}

/// The part of a URL after the scheme.
#[derive(Debug, PartialEq, Eq)]
pub struct Url {
    /// The user who logs in; if none is named, the user of this process, as in the servers' own
    /// clients.
    pub user: String,
    /// `HOST:PORT`, as it is written.
    pub host: String,
    pub database: Option<String>,
    pub options: Vec<(String, String)>,
}

impl Url {
    /// # Errors
    /// What is wrong, without the form to write.
    pub fn parse(rest: &str) -> Result<Self, String> {
        if holds_password(rest) {
            return Err(PASSWORD_IN_ADDRESS.to_owned());
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host) = match host.rsplit_once('@') {
            Some((user, host)) => (decoded(user)?, host),
            None => (own_name()?, host),
        };
        let options = query.split('&').filter(|it| !it.is_empty());
        Ok(Self {
            user,
            host: decoded(host)?,
            database: Some(decoded(database)?).filter(|it| !it.is_empty()),
            options: options.map(option).collect::<Result<_, _>>()?,
        })
    }
}

fn option(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or("a setting behind the ? has no value")?;
    if is_password(name) {
        return Err(PASSWORD_IN_ADDRESS.to_owned());
    }
    Ok((decoded(name)?, decoded(value)?))
}

/// A part of an address, in which characters may be written as `%` and two digits.
///
/// # Errors
/// It is no text.
pub fn decoded(text: &str) -> Result<String, String> {
    let decoded = percent_decode_str(text).decode_utf8();
    match decoded {
        Ok(decoded) if !decoded.contains('\0') => Ok(decoded.into_owned()),
        // Without the text: it may be a secret.
        _ => Err("a part of it is not UTF-8 text".to_owned()),
    }
}

fn own_name() -> Result<String, String> {
    match User::from_uid(Uid::effective()) {
        Ok(Some(user)) => Ok(user.name),
        _ => Err("no user is given, and the user of this process has no name".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_written() {
        let url = Url::parse("m%40e@[::1]:7000/my%2Fbank?a=1&b=%2Frun").unwrap();
        assert_eq!((&*url.user, &*url.host), ("m@e", "[::1]:7000"));
        assert_eq!(url.database.as_deref(), Some("my/bank"));
        let options = [("a", "1"), ("b", "/run")];
        assert_eq!(url.options, options.map(|(a, b)| (a.into(), b.into())));

        let url = Url::parse("host").unwrap();
        assert_eq!((&*url.host, url.database), ("host", None));
        assert_eq!(url.user, own_name().unwrap());
    }

    #[test]
    fn the_address_that_is_chosen_says_where_the_server_is() {
        let [here, elsewhere] = ["127.0.0.1:1", "192.0.2.1:1"].map(|it| it.parse().unwrap());
        let endpoint = |addresses: &Addresses| Endpoint::Tcp {
            name: "both:1".to_owned(),
            addresses: addresses.clone(),
        };
        let addresses = Addresses::new(vec![elsewhere, here]);
        let known_before = endpoint(&addresses);
        assert!(!known_before.is_here(), "it may be the other one");
        assert_eq!(addresses.to_try(), [elsewhere, here]);
        assert_eq!(addresses.choose(here), here);
        assert_eq!(addresses.choose(elsewhere), here, "one for all");
        assert_eq!(addresses.to_try(), [here]);
        assert!(known_before.is_here());
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (text, why) in [
            ("me:secret@127.0.0.1", "--password-from"),
            ("me@127.0.0.1?port", "has no value"),
            ("me%00@127.0.0.1", "not UTF-8"),
        ] {
            let error = Url::parse(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }
}
