//! The table of commands of each service.

use super::call::Run::{Connection, Keys, Leases, Locks, Records, Server, Statements, Table};
use super::call::{Command, CommandTable};
use super::{connection, leases, locks, records, scripts, server, statements};
use crate::options::Service;

macro_rules! command {
    (keeps $($row:tt)*) => {
        Command {
            keeps: true,
            ..command!($($row)*)
        }
    };
    (open $($row:tt)*) => {
        Command {
            open: true,
            ..command!($($row)*)
        }
    };
    ($name:literal, $arity:literal, $arguments:literal, $summary:literal, $run:expr) => {
        Command {
            name: $name,
            arity: $arity,
            open: false,
            keeps: false,
            arguments: $arguments,
            summary: $summary,
            run: $run,
        }
    };
}

#[rustfmt::skip]
const LOCKS: &[Command] = &[
    command!(keeps "LOCK", -4, "table argument S|E|X|O|R [SCOPE 1|2|3] [WAIT ms] [BACKUP]", "Takes a lock; returns how often the owner holds it now", Locks(locks::lock)),
    command!("UNLOCK", -4, "table argument S|E|X|O [SCOPE 1|2|3]", "Ends one hold of a lock; returns how many are left", Locks(locks::unlock)),
    command!("UNLOCKALL", -1, "[DIALOG|UPDATE|BOTH] [OWNER name]", "Ends all holds of an owner; returns how many locks that freed", Locks(locks::unlock_all)),
    command!(keeps "OWNER", -1, "[name [DIALOG|UPDATE]]", "Shows or sets the owner of the locks that this connection takes", Locks(locks::owner)),
    command!("LOCKS", -1, "[CURSOR n] [COUNT n] [TABLE t] [ARGUMENT a] [OWNER o] [MODE m]", "Lists locks, a page at a time", Locks(locks::list::list)),
    command!("LOCKSTAT", 1, "", "Counts, high-water marks, size of the table", Locks(locks::statistics)),
    command!("OVERFLOWS", 1, "", "The last times that the table was full, with the owners of most locks", Locks(locks::overflows)),
    command!("GET", 2, "key", "The value of a key", Leases(leases::get)),
    command!(keeps "SET", -3, "key value [NX|XX] [PX ms|EX s]", "Sets a key; with NX only a new one, with PX or EX for a limited time", Leases(leases::set)),
    command!("DEL", -2, "key [key …]", "Removes keys; returns how many existed", Leases(leases::del)),
    command!("DELEX", 4, "key IFEQ value", "Removes a key if it has this value", Leases(leases::delex)),
    command!("EXISTS", -2, "key [key …]", "How many of the keys exist", Leases(leases::exists)),
    command!("PEXPIRE", 3, "key ms", "Sets the time to live of a key", Leases(leases::pexpire)),
    command!("PTTL", 2, "key", "Milliseconds that a key has left; -1: no end, -2: no key", Leases(leases::pttl)),
    command!("EVAL", -3, "script 1 key value …", "Runs one of the scripts of Redlock clients", Keys(scripts::eval)),
    command!("EVALSHA", -3, "sha1 1 key value …", "Runs a loaded script", Keys(scripts::evalsha)),
    command!("SCRIPT", -2, "LOAD script | EXISTS sha1 …", "Loads one of the scripts of Redlock clients", Keys(scripts::script)),
];

#[rustfmt::skip]
const RECORDS: &[Command] = &[
    command!("GET", -3, "EQUAL|GREATER|ATLEAST|LESS|ATMOST|FIRST|LAST|NEXT|PREVIOUS file [key [value]] [COUNT n] [SINGLE|MULTIPLE [NOWAIT]] [FIELD offset bytes]", "Reads a record", Records(records::run)),
    command!("UPDATE", 3, "file record", "Changes the record that was read last", Records(records::run)),
    command!("INSERT", 3, "file record", "Inserts a record", Records(records::run)),
    command!("BEGIN", -1, "[CONCURRENT|EXCLUSIVE]", "Begins a transaction", Records(records::run)),
    command!("END", 1, "", "Commits the transaction", Records(records::run)),
    command!("ABORT", 1, "", "Undoes the transaction", Records(records::run)),
    command!("DELETE", 2, "file", "Deletes the record that was read last", Records(records::run)),
    command!("UNLOCK", 2, "file", "Releases locks on records that were taken outside of transactions", Records(records::run)),
    command!("POSITION", 2, "file", "The position of the record that was read last", Records(records::run)),
    command!("OPEN", 2, "file", "Opens a file; every other command that names it does so too", Records(records::run)),
    command!("STAT", 2, "file", "The definition of a file, and how much it contains", Records(records::run)),
    command!(keeps "CREATE", -3, "file record-bytes [KEY offset:bytes:text|unsigned|integer[,…] [DUPLICATES]] [KEY …]", "Creates a file", Records(records::run)),
    command!("FILL", 5, "file first last rest", "Inserts records that begin with the numbers of a range", Records(records::run)),
    command!("DROP", 2, "file|prefix*", "Drops files with their records; how many", Records(records::run)),
    command!("FILES", 2, "prefix", "How many files have names that begin so", Records(records::run)),
    command!("COUNT", 2, "file", "How many records a file has", Records(records::run)),
    command!("SUM", 4, "file offset bytes", "The sum of a number over all records", Records(records::run)),
    command!("COMPARE", -8, "file offset bytes [BY offset bytes] WITH file offset bytes [BY offset bytes]", "How many groups have sums in two files that differ", Records(records::run)),
    command!("CHECKPOINT", 1, "", "Makes a checkpoint", Records(records::run)),
];

#[rustfmt::skip]
const STATEMENTS: &[Command] = &[
    command!("EXECUTE", -2, "name [value …]", "Executes a prepared statement", Statements(statements::execute)),
    command!("RUN", -2, "text [value …]", "Executes a statement by its text", Statements(statements::run)),
    command!("BEGIN", -1, "[CONCURRENT|EXCLUSIVE]", "Begins a transaction", Records(records::run)),
    command!("END", 1, "", "Commits the transaction", Statements(statements::end)),
    command!("ABORT", 1, "", "Undoes the transaction", Statements(statements::abort)),
    command!(keeps "PREPARE", 3, "name text", "Prepares a statement under a name; returns how many values it takes", Statements(statements::prepare)),
    command!("DEALLOCATE", 2, "name|*", "Removes prepared statements; returns how many", Statements(statements::deallocate)),
    command!(keeps "SET", 3, "USER|DATABASE name", "Sets the user, or the database in which statements find files", Statements(statements::set)),
    command!(keeps "CREATE", -3, "file field … [BYTES length]", "Creates a file of numbers; the first field is the key", Statements(statements::create)),
    command!("DROP", 2, "file|prefix*", "Drops files with their records; how many", Statements(statements::drop_files)),
    command!("FILES", 2, "prefix", "How many files have names that begin so", Statements(statements::files)),
    command!("LIST", -1, "[prefix]", "The names of files with this prefix", Statements(statements::list)),
    command!("FIELDS", 2, "file", "The names of a file's fields", Statements(statements::fields)),
    command!("FILL", -4, "file first last [value …]", "Inserts records with the keys of a range", Statements(statements::fill)),
    command!("COMPARE", -6, "file field [BY field] WITH file field [BY field]", "How many groups have sums in two files that differ", Statements(statements::compare)),
    command!("CHECKPOINT", 1, "", "Makes a checkpoint", Records(records::run)),
];

#[rustfmt::skip]
const COMMON: &[Command] = &[
    command!("PING", -1, "[text]", "PONG, or the text", Connection(connection::ping)),
    command!("ECHO", 2, "text", "The text", Connection(connection::echo)),
    command!(open "AUTH", -2, "[user] password", "Sends the password", Connection(connection::auth)),
    command!(open "HELLO", -1, "[2|3 [AUTH user password] [SETNAME name]]", "Chooses the version of the protocol", Connection(connection::hello)),
    command!(open "QUIT", 1, "", "Ends the connection", Connection(connection::quit)),
    command!("SELECT", 2, "0", "Selects a database; only 0 exists", Connection(connection::select)),
    command!(keeps "CLIENT", -2, "ID | GETNAME | SETNAME name | SETINFO what value", "Shows or sets properties of this connection", Connection(connection::client)),
    command!("INFO", -1, "[section …]", "The sections Server, Clients, Activity, Engines, Latches, Utilisation, and those of the service", Server(server::info)),
    command!("PHASE", 2, "BEGIN|END", "Marks a phase whose counts are reported when the server ends", Server(server::phase)),
    command!("COMMAND", -1, "[COUNT | DOCS]", "Lists the commands", Table(server::command)),
    command!("CONFIG", -2, "GET name", "Returns an empty reply, for tools that expect the command", Table(server::config)),
];

static LOCK_TABLE: CommandTable = table(LOCKS);
static RECORD_TABLE: CommandTable = table(RECORDS);
static STATEMENT_TABLE: CommandTable = table(STATEMENTS);

const fn table(own: &'static [Command]) -> CommandTable {
    CommandTable {
        own,
        common: COMMON,
    }
}

pub fn of(service: Service) -> &'static CommandTable {
    match service {
        Service::Locks => &LOCK_TABLE,
        Service::Records => &RECORD_TABLE,
        Service::Statements => &STATEMENT_TABLE,
    }
}
