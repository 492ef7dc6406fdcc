//! The tables of commands: of each service, and of all. The most frequent ones stand first: they are
//! searched in this order.

use super::{Command, connection, leases, locks, monitor, records, scripts, server, statements};
use crate::settings::Service;

macro_rules! command {
    ($name:literal, $arity:literal, $arguments:literal, $summary:literal, $run:path) => {
        Command {
            name: $name,
            arity: $arity,
            open: false,
            arguments: $arguments,
            summary: $summary,
            run: $run,
        }
    };
    (open $name:literal, $arity:literal, $arguments:literal, $summary:literal, $run:path) => {
        Command {
            open: true,
            ..command!($name, $arity, $arguments, $summary, $run)
        }
    };
}

#[rustfmt::skip]
static LOCKS: &[Command] = &[
    command!("LOCK", -4, "table argument S|E|X|O|R [SCOPE 1|2|3] [WAIT ms] [BACKUP]", "Asks for a lock; how often the owner holds it now", locks::lock),
    command!("UNLOCK", -4, "table argument S|E|X|O [SCOPE 1|2|3]", "Gives one hold back; how many are left", locks::unlock),
    command!("UNLOCKALL", -1, "[DIALOG|UPDATE|BOTH] [OWNER name]", "Ends all holds of an owner; how many locks that freed", locks::unlock_all),
    command!("OWNER", -1, "[name [DIALOG|UPDATE]]", "Says, or sets, whose locks this connection takes", locks::owner),
    command!("LOCKS", -1, "[CURSOR n] [COUNT n] [TABLE t] [ARGUMENT a] [OWNER o] [MODE m]", "Lists locks, a page at a time", locks::list),
    command!("LOCKSTAT", 1, "", "Counts, high-water marks, size of the table", locks::statistics),
    command!("OVERFLOWS", 1, "", "The last times the table was full, and who held most", locks::overflows),
    command!("GET", 2, "key", "The value of a key", leases::get),
    command!("SET", -3, "key value [NX|XX] [PX ms|EX s]", "Sets a key, if it is new (NX), for a time", leases::set),
    command!("DEL", -2, "key [key …]", "Removes keys; how many there were", leases::del),
    command!("DELEX", 4, "key IFEQ value", "Removes a key if it has this value", leases::delex),
    command!("EXISTS", -2, "key [key …]", "How many of the keys there are", leases::exists),
    command!("PEXPIRE", 3, "key ms", "Gives a key this long to live", leases::pexpire),
    command!("PTTL", 2, "key", "Milliseconds that a key has left; -1: no end, -2: no key", leases::pttl),
    command!("EVAL", -3, "script 1 key value …", "Runs one of the scripts of Redlock clients", scripts::eval),
    command!("EVALSHA", -3, "sha1 1 key value …", "Runs a loaded script", scripts::evalsha),
    command!("SCRIPT", -2, "LOAD script | EXISTS sha1 …", "Loads one of the scripts of Redlock clients", scripts::script),
];

#[rustfmt::skip]
static RECORDS: &[Command] = &[
    command!("GET", -3, "EQUAL|GREATER|ATLEAST|LESS|ATMOST|FIRST|LAST|NEXT|PREVIOUS file [key [value]] [COUNT n] [SINGLE|MULTIPLE [NOWAIT]] [FIELD offset bytes]", "Reads a record", records::run),
    command!("UPDATE", 3, "file record", "Changes the record that was read last", records::run),
    command!("INSERT", 3, "file record", "Puts a record in", records::run),
    command!("BEGIN", -1, "[CONCURRENT|EXCLUSIVE]", "Begins a transaction", records::run),
    command!("END", 1, "", "Ends the transaction: all of it is done", records::run),
    command!("ABORT", 1, "", "Undoes the transaction", records::run),
    command!("DELETE", 2, "file", "Deletes the record that was read last", records::run),
    command!("UNLOCK", 2, "file", "Gives back locks on records that were taken outside of transactions", records::run),
    command!("POSITION", 2, "file", "Where the record is that was read last", records::run),
    command!("OPEN", 2, "file", "Opens a file, as naming it does", records::run),
    command!("STAT", 2, "file", "What the file is, and how much is in it", records::run),
    command!("CREATE", -3, "file record-bytes [KEY offset:bytes:text|unsigned|integer[,…] [DUPLICATES]] [KEY …]", "Makes a file", records::run),
    command!("FILL", 5, "file first last rest", "Puts in records with the numbers of a range in front", records::run),
    command!("DROP", 2, "file|prefix*", "Gives up files with all that is in them; how many", records::run),
    command!("FILES", 2, "prefix", "How many files have names that begin so", records::run),
    command!("COUNT", 2, "file", "How many records a file has", records::run),
    command!("SUM", 4, "file offset bytes", "The sum of a number over all records", records::run),
    command!("COMPARE", -8, "file offset bytes [BY offset bytes] WITH file offset bytes [BY offset bytes]", "How many groups have sums in two files that differ", records::run),
    command!("CHECKPOINT", 1, "", "Has a checkpoint made", records::run),
];

#[rustfmt::skip]
static STATEMENTS: &[Command] = &[
    command!("EXECUTE", -2, "name [value …]", "Executes a prepared statement", statements::execute),
    command!("RUN", -2, "text [value …]", "Executes a statement by its text", statements::run),
    command!("BEGIN", -1, "[CONCURRENT|EXCLUSIVE]", "Begins a transaction", records::run),
    command!("END", 1, "", "Ends the transaction: all of it is done", statements::end),
    command!("ABORT", 1, "", "Undoes the transaction", statements::abort),
    command!("PREPARE", 3, "name text", "Gives a statement a name; how many values it takes", statements::prepare),
    command!("DEALLOCATE", 2, "name|*", "Forgets prepared statements; how many", statements::deallocate),
    command!("SET", 3, "USER|DATABASE name", "For whom statements are, and where they look for files", statements::set),
    command!("CREATE", -3, "file field … [BYTES length]", "Makes a file of numbers; the first field is the key", statements::create),
    command!("DROP", 2, "file|prefix*", "Gives up files with all that is in them; how many", statements::drop_files),
    command!("FILES", 2, "prefix", "How many files have names that begin so", statements::files),
    command!("LIST", -1, "[prefix]", "The names of files that begin so", statements::list),
    command!("FIELDS", 2, "file", "The names of a file's fields", statements::fields),
    command!("FILL", -4, "file first last [value …]", "Puts in records with the keys of a range", statements::fill),
    command!("COMPARE", -6, "file field [BY field] WITH file field [BY field]", "How many groups have sums in two files that differ", statements::compare),
    command!("CHECKPOINT", 1, "", "Has a checkpoint made", records::run),
];

#[rustfmt::skip]
static COMMON: &[Command] = &[
    command!("PING", -1, "[text]", "PONG, or the text", connection::ping),
    command!("ECHO", 2, "text", "The text", connection::echo),
    command!(open "AUTH", -2, "[user] password", "Gives the password", connection::auth),
    command!(open "HELLO", -1, "[2|3 [AUTH user password] [SETNAME name]]", "Chooses the version of the protocol", connection::hello),
    command!(open "QUIT", 1, "", "Ends the connection", connection::quit),
    command!("SELECT", 2, "0", "There is one database", connection::select),
    command!("CLIENT", -2, "ID | GETNAME | SETNAME name | SETINFO what value", "About this connection", connection::client),
    command!("INFO", -1, "[section …]", "Server, Activity, Engines, Latches, and what it serves", monitor::info),
    command!("PHASE", 2, "BEGIN|END", "Marks a phase whose counts are reported when the server ends", monitor::phase),
    command!("COMMAND", -1, "[COUNT | DOCS]", "Lists the commands", server::command),
    command!("CONFIG", -2, "GET name", "Answers with nothing, for tools that ask", server::config),
];

fn own(service: Service) -> &'static [Command] {
    match service {
        Service::Locks => LOCKS,
        Service::Records => RECORDS,
        Service::Statements => STATEMENTS,
    }
}

/// All commands of a service.
pub fn of(service: Service) -> Vec<&'static Command> {
    own(service).iter().chain(COMMON).collect()
}

pub fn find(service: Service, name: &[u8]) -> Option<&'static Command> {
    let mut commands = own(service).iter().chain(COMMON);
    commands.find(|it| it.name.as_bytes().eq_ignore_ascii_case(name))
}
