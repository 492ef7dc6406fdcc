//! The server's handshake (version 10), the client's answer, and how the client proves that it knows
//! the password without sending it.

use sha1::{Digest, Sha1};
use sha2::Sha256;

use super::login::Login;
use super::packet::{Fields, garbled};
use crate::protocol::ProtocolError;

/// "Capability Flags".
const LONG_PASSWORD: u32 = 1;
/// The count of an UPDATE is that of the rows that it found, changed or not.
const FOUND_ROWS: u32 = 1 << 1;
const LONG_FLAG: u32 = 1 << 2;
const CONNECT_WITH_DB: u32 = 1 << 3;
const PROTOCOL_41: u32 = 1 << 9;
const TRANSACTIONS: u32 = 1 << 13;
const SECURE_CONNECTION: u32 = 1 << 15;
const MULTI_STATEMENTS: u32 = 1 << 16;
const MULTI_RESULTS: u32 = 1 << 17;
const PS_MULTI_RESULTS: u32 = 1 << 18;
const PLUGIN_AUTH: u32 = 1 << 19;
const NEEDED: u32 = PROTOCOL_41 | SECURE_CONNECTION | MULTI_STATEMENTS | MULTI_RESULTS;
const WANTED: u32 =
    NEEDED | LONG_PASSWORD | FOUND_ROWS | LONG_FLAG | TRANSACTIONS | PS_MULTI_RESULTS | PLUGIN_AUTH;
/// utf8mb4_general_ci: known to every server since 5.5.
const COLLATION: u8 = 45;
const VERSION: u64 = 10;

/// The first message of the server.
#[derive(Debug, PartialEq, Eq)]
pub struct Handshake {
    pub version: String,
    capabilities: u32,
    /// The method that the server prefers; `Native` if this client does not know it.
    pub method: Method,
    scramble: Vec<u8>,
}

impl Handshake {
    /// Reads "Protocol::HandshakeV10".
    ///
    /// # Errors
    /// It is something else, or the server lacks a capability.
    pub fn parse(payload: &[u8]) -> Result<Self, ProtocolError> {
        Self::read(payload).ok_or_else(|| garbled(payload))
    }

    fn read(payload: &[u8]) -> Option<Self> {
        let mut fields = Fields(payload);
        if fields.integer(1)? != VERSION {
            return None;
        }
        let version = String::from_utf8_lossy(fields.until_zero()).into_owned();
        fields.bytes(4)?; // number of the connection
        let mut scramble = fields.bytes(8)?.to_vec();
        fields.bytes(1)?;
        let low = fields.integer(2)? as u32;
        fields.bytes(3)?; // collation, status
        let capabilities = low | (fields.integer(2)? as u32) << 16;
        let scramble_bytes = fields.integer(1)? as usize;
        fields.bytes(10)?;
        // The second part ends with a zero byte, which is not part of the scramble.
        let rest = fields.bytes(scramble_bytes.saturating_sub(8).max(13))?;
        scramble.extend_from_slice(&rest[..rest.len() - 1]);
        let method = match capabilities & PLUGIN_AUTH {
            0 => None,
            _ => Method::named(fields.until_zero()),
        };
        (capabilities & NEEDED == NEEDED).then_some(Self {
            version,
            capabilities,
            method: method.unwrap_or(Method::Native),
            scramble,
        })
    }

    /// Writes "Protocol::HandshakeResponse41".
    pub fn put_answer(&self, login: &Login, out: &mut Vec<u8>) {
        let mut capabilities = WANTED & self.capabilities;
        if login.database.is_some() {
            capabilities |= CONNECT_WITH_DB;
        }
        out.extend_from_slice(&capabilities.to_le_bytes());
        out.extend_from_slice(&(1_u32 << 30).to_le_bytes()); // longest packet
        out.push(COLLATION);
        out.extend_from_slice(&[0; 23]);
        put_text(&login.user, out);
        let answer = self.method.answer(login.password(), &self.scramble);
        out.push(answer.len() as u8);
        out.extend_from_slice(&answer);
        if let Some(database) = &login.database {
            put_text(database, out);
        }
        if capabilities & PLUGIN_AUTH != 0 {
            put_text(self.method.name(), out);
        }
    }
}

fn put_text(text: &str, out: &mut Vec<u8>) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

/// The server requests another method ("Protocol::AuthSwitchRequest").
#[derive(Debug)]
pub struct Switch<'a> {
    pub plugin: &'a [u8],
    pub scramble: &'a [u8],
}

impl<'a> Switch<'a> {
    /// From what follows the first byte.
    pub fn parse(payload: &'a [u8]) -> Self {
        let mut fields = Fields(payload);
        let plugin = fields.until_zero();
        let scramble = fields.0.strip_suffix(&[0]).unwrap_or(fields.0);
        Self { plugin, scramble }
    }
}

/// An authentication method ("Authentication Methods").
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Native,
    CachingSha2,
}

impl Method {
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"mysql_native_password" => Some(Self::Native),
            b"caching_sha2_password" => Some(Self::CachingSha2),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The answer to the server's `scramble`: empty without a password.
    pub fn answer(self, password: &str, scramble: &[u8]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        match self {
            // SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password)))
            Self::Native => {
                let once = Sha1::digest(password);
                let twice = Sha1::digest(once);
                let mixed = Sha1::new().chain_update(scramble).chain_update(twice);
                xor(&once, &mixed.finalize())
            }
            // SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble)
            Self::CachingSha2 => {
                let once = Sha256::digest(password);
                let twice = Sha256::digest(once);
                let mixed = Sha256::new().chain_update(twice).chain_update(scramble);
                xor(&once, &mixed.finalize())
            }
        }
    }
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server checks: it knows only the digest of the digest.
    #[test]
    fn the_server_can_check_the_answer() {
        let scramble = b"01234567890123456789";
        let answer = Method::Native.answer("secret", scramble);
        let stored = Sha1::digest(Sha1::digest("secret"));
        let mixed = Sha1::new().chain_update(scramble).chain_update(stored);
        assert_eq!(Sha1::digest(xor(&answer, &mixed.finalize())), stored);

        let answer = Method::CachingSha2.answer("secret", scramble);
        let stored = Sha256::digest(Sha256::digest("secret"));
        let mixed = Sha256::new().chain_update(stored).chain_update(scramble);
        assert_eq!(Sha256::digest(xor(&answer, &mixed.finalize())), stored);
    }

    #[test]
    fn without_a_password_nothing_is_answered() {
        assert!(Method::Native.answer("", b"x").is_empty());
        assert!(Method::CachingSha2.answer("", b"x").is_empty());
    }
}
