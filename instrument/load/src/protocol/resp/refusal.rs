//! Errors that end a conversation, with a remedy.

use super::login::Login;
use super::reply::error_code;
use crate::protocol::ProtocolError;

const LOGIN_REMEDY: &str = "--password-from VARIABLE names the environment variable with the password, and a user is \
     named in redis://USER@HOST:PORT";
const DATABASE_REMEDY: &str = "another number in redis://HOST:PORT/NUMBER, or none, or more `databases` in the server's configuration";
const VERSION_REMEDY: &str = "?protocol=2 in the address, or nothing there: does it know RESP 3?";
const CLIENTS_REMEDY: &str =
    "fewer --sessions, or a greater maxclients of the server (--clients-max of concurve-server)";
const DENIED_REMEDY: &str = "a password for its user (requirepass), which --password-from VARIABLE sends, or protected-mode no in the \
     server's configuration";

/// The codes of errors that say that a user is not logged in, or may not do something.
const OF_USERS: [&str; 3] = ["NOAUTH", "WRONGPASS", "NOPERM"];
/// How what a server says begins, before anything else, to a connection that it does not take because it has
/// too many. Redis and Valkey in cluster mode, and concurve-server, go on in words of their own.
const FULL: &str = "ERR max number of clients";
/// The code of what Redis and Valkey in protected mode say, before anything else, to another machine.
const DENIED: &str = "DENIED";

/// A command of the log-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// The first: AUTH, HELLO or PING.
    First,
    Select,
}

/// The server refuses a command of the log-in.
pub fn of_login(login: &Login, command: Command, why: String) -> ProtocolError {
    if let Some(refused) = of_connection(&why) {
        return refused;
    }
    let is_of_user = OF_USERS.contains(&error_code(&why));
    match command {
        _ if is_of_user => of_user(why),
        Command::Select => {
            let asked = format!("SELECT {}", login.database);
            ProtocolError::Refused(asked, why, DATABASE_REMEDY)
        }
        Command::First if login.resp3 => {
            ProtocolError::Refused("HELLO 3".to_owned(), why, VERSION_REMEDY)
        }
        Command::First => of_user(why),
    }
}

/// The server asks for a user and a password, or for others.
pub fn of_user(why: String) -> ProtocolError {
    ProtocolError::Login(why, LOGIN_REMEDY)
}

/// The server does not take the connection, if that is what it says.
pub fn of_connection(said: &str) -> Option<ProtocolError> {
    let remedy = match error_code(said) {
        DENIED => DENIED_REMEDY,
        _ if said.starts_with(FULL) => CLIENTS_REMEDY,
        _ => return None,
    };
    let refused = "the connection".to_owned();
    Some(ProtocolError::Refused(refused, said.to_owned(), remedy))
}
