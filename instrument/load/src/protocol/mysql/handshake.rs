//! The begin of a connection: the server's handshake (version 10) and the client's answer.

use super::packet::Fields;
use super::password::Method;
use super::{Greeting, ProtocolError, garbled};

/// What a connection may do ("Capability Flags").
const LONG_PASSWORD: u32 = 1;
/// An update counts the rows that it found, changed or not.
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

/// What the server says first.
#[derive(Debug, PartialEq, Eq)]
pub struct Handshake {
    pub version: String,
    capabilities: u32,
    /// The way it would like to be shown the password; another one if it is not known here.
    pub method: Method,
    scramble: Vec<u8>,
}

impl Handshake {
    /// Reads "Protocol::HandshakeV10".
    ///
    /// # Errors
    /// It is something else, or of a server that can do too little.
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
        // The second part ends with a zero byte, which is not of the scramble.
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
    pub fn put_answer(&self, greeting: &Greeting, out: &mut Vec<u8>) {
        let mut capabilities = WANTED & self.capabilities;
        if greeting.database.is_some() {
            capabilities |= CONNECT_WITH_DB;
        }
        out.extend_from_slice(&capabilities.to_le_bytes());
        out.extend_from_slice(&(1_u32 << 30).to_le_bytes()); // longest packet
        out.push(COLLATION);
        out.extend_from_slice(&[0; 23]);
        put_text(&greeting.user, out);
        let answer = self.method.answer(greeting.password(), &self.scramble);
        out.push(answer.len() as u8);
        out.extend_from_slice(&answer);
        if let Some(database) = &greeting.database {
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

/// The server asks for the password in another way ("Protocol::AuthSwitchRequest").
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
