//! How a connection begins: the start-up message and the authentication.

use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;

use super::message::{Frame, ServerError, garbage, server_error};
use crate::protocol::ProtocolError;
use crate::protocol::password::Password;

const PASSWORD_REMEDY: &str =
    "--password-from VARIABLE names the environment variable with the password";
const ROUNDS_REMEDY: &str = "is it the right server? At most 1,000,000 are computed: set its \
     scram_iterations lower, and the password anew";
const TLS_REMEDY: &str = "no rule of its pg_hba.conf lets this user in without TLS, which is not \
     supported: add one (host, not hostssl), or take the Unix socket";

/// Servers ask for 4,096 rounds by default. Billions, which the protocol allows, take an hour (RFC 5802,
/// section 9).
const SCRAM_ROUNDS_MAX: u64 = 1_000_000;

/// The user, the database and the settings of the connections.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password: Option<Password>,
    pub database: String,
    /// Settings of the server for these sessions, such as `synchronous_commit`.
    pub settings: Vec<(String, String)>,
}

impl Login {
    /// Writes the start-up message.
    pub fn put(&self, out: &mut Vec<u8>) {
        let mut parameters = vec![
            ("user", &*self.user),
            ("database", &*self.database),
            ("application_name", "concurve-load"),
            ("client_encoding", "UTF8"),
        ];
        let settings = self.settings.iter();
        parameters.extend(settings.map(|(name, value)| (&**name, &**value)));
        send(out, |buffer| frontend::startup_message(parameters, buffer));
    }
}

/// An authentication under way.
#[derive(Default)]
pub struct Authentication {
    scram: Option<ScramSha256>,
}

impl std::fmt::Debug for Authentication {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Authentication")
    }
}

impl Authentication {
    /// Takes a message of the authentication, and answers it.
    pub fn receive(
        &mut self,
        frame: Frame<'_>,
        login: &Login,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        match frame.kind {
            b'R' => self.request(frame.body, login, out),
            b'E' => Err(refused(&server_error(frame.body), login)),
            // ParameterStatus, BackendKeyData, NoticeResponse, NegotiateProtocolVersion.
            b'S' | b'K' | b'N' | b'v' => Ok(()),
            _ => Err(garbage(&[frame.kind])),
        }
    }

    /// Answers a request of the server (AuthenticationOk, AuthenticationSASL, …).
    fn request(
        &mut self,
        body: &[u8],
        login: &Login,
        out: &mut Vec<u8>,
    ) -> Result<(), ProtocolError> {
        let (method, rest) = body.split_at_checked(4).ok_or_else(|| garbage(body))?;
        let method = u32::from_be_bytes(method.try_into().expect("four bytes"));
        if method == 0 {
            return Ok(());
        }
        let password = login.password.as_ref().ok_or_else(|| {
            let text = format!("it asks for the password of {:?}", login.user);
            ProtocolError::Login(text, PASSWORD_REMEDY)
        })?;
        let password = password.reveal().as_bytes();
        match method {
            3 => send(out, |it| frontend::password_message(password, it)),
            5 => {
                let salt = rest.try_into().map_err(|_| garbage(body))?;
                let hash = md5_hash(login.user.as_bytes(), password, salt);
                send(out, |it| frontend::password_message(hash.as_bytes(), it));
            }
            10 => {
                let mut offered = rest.split(|it| *it == 0);
                if !offered.any(|it| it == SCRAM_SHA_256.as_bytes()) {
                    let text = String::from_utf8_lossy(rest).replace('\0', " ");
                    return Err(unknown(&format!("SASL by {}", text.trim())));
                }
                let scram = ScramSha256::new(password, ChannelBinding::unsupported());
                send(out, |it| {
                    frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), it)
                });
                self.scram = Some(scram);
            }
            11 => {
                let scram = self.scram.as_mut().ok_or_else(|| garbage(body))?;
                let rounds = scram_rounds(rest);
                if rounds > SCRAM_ROUNDS_MAX {
                    let text = format!("SCRAM asks for {rounds} rounds of hashing");
                    return Err(ProtocolError::Login(text, ROUNDS_REMEDY));
                }
                scram.update(rest).map_err(|it| bad_scram(&it))?;
                send(out, |it| frontend::sasl_response(scram.message(), it));
            }
            12 => {
                let scram = self.scram.as_mut().ok_or_else(|| garbage(body))?;
                scram.finish(rest).map_err(|it| bad_scram(&it))?;
            }
            2 => return Err(unknown("Kerberos")),
            7 | 8 => return Err(unknown("GSSAPI")),
            9 => return Err(unknown("SSPI")),
            other => return Err(unknown(&format!("method {other}"))),
        }
        Ok(())
    }
}

/// The number of rounds in the server's first message (`i=`); 0 if there is none, which SCRAM refuses.
fn scram_rounds(message: &[u8]) -> u64 {
    let mut parts = message.split(|it| *it == b',');
    let digits = parts.find_map(|it| it.strip_prefix(b"i="));
    let digits = digits.and_then(|it| std::str::from_utf8(it).ok());
    digits.and_then(|it| it.parse().ok()).unwrap_or(0)
}

fn unknown(method: &str) -> ProtocolError {
    ProtocolError::Login(
        format!("it asks for a log-in by {method}"),
        "trust, password, md5 and scram-sha-256 are supported: see its pg_hba.conf",
    )
}

fn bad_scram(error: &std::io::Error) -> ProtocolError {
    ProtocolError::Login(
        format!("SCRAM failed: {error}"),
        "is it the right server, and the right password?",
    )
}

/// The server's refusal, with a remedy.
fn refused(error: &ServerError, login: &Login) -> ProtocolError {
    let ServerError { code, text, .. } = error;
    let without_tls = || text.contains("no encryption") || text.contains("SSL off");
    let remedy = match &**code {
        "28P01" => PASSWORD_REMEDY,
        "28000" if without_tls() => TLS_REMEDY,
        "28000" => "a user is named in postgresql://USER@HOST:PORT/DATABASE; see its pg_hba.conf",
        "3D000" => "a database is named in postgresql://USER@HOST:PORT/DATABASE",
        "53300" => "it takes no more connections: fewer --sessions, or more max_connections",
        "57P03" => "wait until it is up",
        "42704" | "22023" | "55P02" | "42501" if !login.settings.is_empty() => {
            "see the settings behind the ? of its address"
        }
        _ => "see its log",
    };
    ProtocolError::Login(format!("{text} ({code})"), remedy)
}

/// Writes a message by the library, which fails only for strings that contain a zero or exceed 2 GB:
/// no address has such strings.
fn send(out: &mut Vec<u8>, put: impl FnOnce(&mut BytesMut) -> std::io::Result<()>) {
    let mut buffer = BytesMut::new();
    if put(&mut buffer).is_ok() {
        out.extend_from_slice(&buffer);
    }
}
