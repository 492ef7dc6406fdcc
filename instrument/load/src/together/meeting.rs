//! Where loads meet that search together, and the token by which they know each other.

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use crate::error::Error;

/// A shorter token could be guessed by trying.
const TOKEN_CHARS_MIN: usize = 16;
const NONCE_BYTES: usize = 16;

/// A secret that all loads of a search have. It is never sent: who has it proves that.
#[derive(Clone, Default)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Token(…)")
    }
}

impl Token {
    pub fn new(text: String) -> Result<Self, Error> {
        match text.chars().count() {
            TOKEN_CHARS_MIN.. => Ok(Self(text)),
            _ => Err(Error::Usage(format!(
                "--token-from: the token has fewer than {TOKEN_CHARS_MIN} characters; a random one, such as of openssl rand -hex 16"
            ))),
        }
    }

    /// The proof of `who` that it has the token, for two numbers that nobody has used before (HMAC, RFC
    /// 2104).
    pub fn proof(&self, who: &str, nonces: [&str; 2]) -> String {
        hex(&self.mac(who, nonces).finalize().into_bytes())
    }

    pub fn is_proven(&self, who: &str, nonces: [&str; 2], proof: &str) -> bool {
        let bytes = unhex(proof);
        bytes.is_some_and(|it| self.mac(who, nonces).verify_slice(&it).is_ok())
    }

    fn mac(&self, who: &str, nonces: [&str; 2]) -> Hmac<Sha256> {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(self.0.as_bytes()).expect("a key of any length");
        for part in [who, nonces[0], nonces[1]] {
            mac.update(&(part.len() as u64).to_be_bytes());
            mac.update(part.as_bytes());
        }
        mac
    }
}

/// A number that nobody has used before.
pub fn nonce() -> Result<String, Error> {
    let mut bytes = [0; NONCE_BYTES];
    rustix::rand::getrandom(&mut bytes[..], rustix::rand::GetRandomFlags::empty())
        .map_err(|error| Error::Poll(error.into()))?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|it| format!("{it:02x}")).collect()
}

fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits
        .map(|it| u8::from_str_radix(std::str::from_utf8(it).ok()?, 16).ok())
        .collect()
}

/// Where the leader listens and the others find it.
#[derive(Debug, Clone)]
pub struct Meeting {
    /// As the user wrote it.
    pub text: String,
    pub addresses: Vec<SocketAddr>,
    pub token: Token,
    /// How long each waits for the others there.
    pub limit_ns: u64,
}

impl Meeting {
    /// A meeting at an address such as `10.0.0.1:7100`. Other users of a machine, and other machines, are
    /// kept out by the token; who meets on loopback may do without.
    pub fn at(
        option: &str,
        text: &str,
        token: Option<Token>,
        limit_ns: u64,
    ) -> Result<Self, Error> {
        let found = text.to_socket_addrs().map(Vec::from_iter);
        let addresses = match found {
            Ok(addresses) if addresses.iter().any(|it| it.port() == 0) => {
                return Err(refused(option, text, "no port"));
            }
            Ok(addresses) if !addresses.is_empty() => addresses,
            Ok(_) => return Err(refused(option, text, "no address of that name")),
            Err(error) => return Err(refused(option, text, &error.to_string())),
        };
        if token.is_none() && !addresses.iter().all(|it| it.ip().is_loopback()) {
            return Err(Error::Usage(format!(
                "{option} {text}: other machines reach that address; --token-from VARIABLE names the environment variable with a secret that all these loads have"
            )));
        }
        Ok(Self {
            text: text.to_owned(),
            addresses,
            token: token.unwrap_or_default(),
            limit_ns,
        })
    }
}

fn refused(option: &str, text: &str, why: &str) -> Error {
    Error::Usage(format!(
        "{option} {text}: {why}; a host and a port, such as 10.0.0.1:7100"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(text: &str) -> Token {
        Token::new(text.repeat(16)).unwrap()
    }

    #[test]
    fn who_has_the_token_proves_it_and_nobody_else_does() {
        let own = token("a");
        let proof = own.proof("leader", ["1", "2"]);
        assert!(own.is_proven("leader", ["1", "2"], &proof));
        assert!(!own.is_proven("follower", ["1", "2"], &proof));
        assert!(!own.is_proven("leader", ["1", "3"], &proof));
        assert!(!own.is_proven("leader", ["12", ""], &proof));
        assert!(!token("b").is_proven("leader", ["1", "2"], &proof));
        for text in ["", "0", "zz", "ä", &proof[2..]] {
            assert!(!own.is_proven("leader", ["1", "2"], text), "{text}");
        }
    }

    #[test]
    fn a_nonce_is_never_used_twice() {
        let (one, other) = (nonce().unwrap(), nonce().unwrap());
        assert_eq!((one.len(), other.len()), (32, 32));
        assert_ne!(one, other);
    }

    #[test]
    fn a_token_is_not_shown_and_not_short() {
        assert_eq!(format!("{:?}", token("a")), "Token(…)");
        let error = Token::new("short".to_owned()).unwrap_err().to_string();
        assert!(
            error.contains("openssl rand") && !error.contains("short;"),
            "{error}"
        );
    }

    #[test]
    fn other_machines_need_the_token() {
        assert!(Meeting::at("--listen", "127.0.0.1:7100", None, 1).is_ok());
        assert!(Meeting::at("--listen", "[::1]:7100", None, 1).is_ok());
        let error = Meeting::at("--listen", "10.0.0.1:7100", None, 1).unwrap_err();
        assert!(
            error.to_string().contains("--token-from VARIABLE"),
            "{error}"
        );
        assert!(Meeting::at("--listen", "10.0.0.1:7100", Some(token("a")), 1).is_ok());
        for text in [
            "7100",
            "10.0.0.1",
            "10.0.0.1:x",
            "10.0.0.1:99999",
            "127.0.0.1:0",
            "",
        ] {
            let error = Meeting::at("--follow", text, None, 1)
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("--follow "), "{error}");
        }
    }
}
