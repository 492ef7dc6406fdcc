//! Errors that end a conversation, with a remedy.

use super::login::Login;
use super::reply::error_code;
use crate::protocol::ProtocolError;

const LOGIN_REMEDY: &str = "--password-from VARIABLE names the environment variable with the password, and a user is \
     named in redis://USER@HOST:PORT";
const DATABASE_REMEDY: &str = "another number in redis://HOST:PORT/NUMBER, or none, or more `databases` in the server's configuration";
const VERSION_REMEDY: &str = "?protocol=2 in the address, or nothing there: does it know RESP 3?";
const CLIENTS_REMEDY: &str = "fewer --sessions, or a greater maxclients of the server";

/// The codes of errors that say that a user is not logged in, or may not do something.
const OF_USERS: [&str; 3] = ["NOAUTH", "WRONGPASS", "NOPERM"];
/// What Redis and Valkey say, before anything else, to a connection that they do not take.
const FULL: &str = "ERR max number of clients reached";

/// A command of the log-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Command {
    /// The first: AUTH, HELLO or PING.
    First,
    Select,
}

/// The server refuses a command of the log-in.
pub fn of_login(login: &Login, command: Command, why: String) -> ProtocolError {
    if why == FULL {
        return of_full();
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

/// The server takes no more connections, if that is what it says.
pub fn of_connection(said: &str) -> Option<ProtocolError> {
    (said == FULL).then(of_full)
}

fn of_full() -> ProtocolError {
    ProtocolError::Refused("the connection".to_owned(), FULL.to_owned(), CLIENTS_REMEDY)
}
