//! Errors that end a conversation, with a remedy.

use super::reply::ServerError;
use crate::protocol::ProtocolError;

/// "This command is not supported in the prepared statement protocol yet".
pub const CANNOT_BE_PREPARED: u16 = 1295;

/// The server refuses the log-in.
pub fn of_login(error: &ServerError) -> ProtocolError {
    let remedy = match error.code {
        1040 | 1203 | 1226 => "fewer --sessions, or a greater max_connections",
        1044 | 1049 => {
            "name a database that this user may use in mysql://USER@HOST:PORT/DATABASE, or none"
        }
        1129 => "mariadb-admin flush-hosts unblocks this host",
        1130 => "this user may not come from this host: CREATE USER name@host",
        1698 => {
            "the server identifies this user by the operating-system user: run as that user, over the Unix socket"
        }
        3159 => {
            "TLS is not supported: SET GLOBAL require_secure_transport = OFF, or the Unix socket"
        }
        _ => {
            "--password-from VARIABLE names the environment variable with the password, and the \
             user is named in mysql://USER@HOST:PORT/DATABASE; if the server wants TLS (REQUIRE SSL, \
             require_secure_transport): that is not supported"
        }
    };
    ProtocolError::Login(error.to_string(), remedy)
}

/// The server requests an authentication method that this client does not know.
pub fn of_plugin(name: &[u8]) -> ProtocolError {
    let name = String::from_utf8_lossy(name);
    ProtocolError::Login(
        format!("it requires the authentication method {name}"),
        "mysql_native_password and caching_sha2_password are known here: ALTER USER name \
         IDENTIFIED VIA mysql_native_password USING PASSWORD('…') on MariaDB",
    )
}

/// The server requests the password in clear text over TCP.
pub fn of_whole_password() -> ProtocolError {
    ProtocolError::Login(
        "caching_sha2_password requires the password in clear text, which is not sent over TCP without TLS"
            .to_owned(),
        "connect by the Unix socket, or log in once with another client: the server remembers it \
         until it is restarted",
    )
}

/// The server refuses a statement of the workload.
pub fn of_statement(text: &str, error: &ServerError) -> ProtocolError {
    ProtocolError::Statement(text.to_owned(), error.to_string())
}

/// A statement has parameters that the workload does not know.
pub fn of_parameters(text: &str, parameters: usize) -> ProtocolError {
    let why = format!("it takes {parameters} values by `?`: write {{key}} or another placeholder");
    ProtocolError::Statement(text.to_owned(), why)
}
