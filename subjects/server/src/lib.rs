//! The reference server: a small server whose concurrency architecture is set by options.
//!
//! `docs/programs/server.md` is the user's page. A module imports only modules in rows below its own:
//!
//! | modules | what they are |
//! |---|---|
//! | [`server`] | starts the threads of each engine |
//! | [`engine`] | the loop that executes batches of requests |
//! | [`commands`] | the table of commands, and their handlers |
//! | [`figures`], `report` | what INFO and the report show of the whole server |
//! | [`state`] | what all threads and engines share |
//! | [`net`] | sockets, I/O threads and the run queue: they move requests and replies |
//! | [`session`] | what is remembered of a connection |
//! | [`services`] | the states of all services, as the options ask for them |
//! | [`logins`] | the state of logins, which all engines share |
//! | [`options`] | the command line |
//! | [`locks`], [`keys`], [`statements`] | the state of a service, which all engines share |
//! | [`records`] | the state over the record engine, which statements use too |
//! | [`error`] | why the server did not start, or could not go on |
//! | [`backup`] | the file of locks that outlive the server |
//! | [`keeping`] | whether the memory holds more for clients |
//! | [`lock_table`], [`leases`], [`scripts`], [`guesses`], [`request`] | the data that services work on, and what is asked |
//! | [`resp`], [`monitor`], [`slab`], [`source`], [`log`] | the protocol; meters; an arena; where a client comes from; lines on standard error |
//!
//! The protocol, the lock table, the leases and the guesses know of no clock, socket or file.

pub mod backup;
pub mod commands;
pub mod engine;
pub mod error;
pub mod figures;
pub mod guesses;
pub mod keeping;
pub mod keys;
pub mod leases;
pub mod lock_table;
pub mod locks;
pub mod log;
pub mod logins;
pub mod monitor;
pub mod net;
pub mod options;
pub mod records;
mod report;
pub mod request;
pub mod resp;
pub mod scripts;
pub mod server;
pub mod services;
pub mod session;
pub mod slab;
pub mod source;
pub mod state;
pub mod statements;

use std::process::ExitCode;

use clap::Parser;

/// Entry point of the binary. The exit code is 0 if it was stopped, 1 if it failed, 2 if it was
/// used wrongly.
pub fn main() -> ExitCode {
    main_with(records::open_folder)
}

/// The same with another storage for the record engine, as tests need it.
pub fn main_with(storage: records::OpenStorage) -> ExitCode {
    concurve_engines::end_at_panics("concurve-server");
    let options = options::ServerArgs::parse();
    let private = concurve_files::keep_new_files_private();
    let served = private
        .map_err(|it| error::Error::Usage(it.to_string()))
        .and_then(|()| options.options());
    let served = served.and_then(|mut options| {
        if let Some(records) = &mut options.records {
            records.storage = storage;
        }
        server::serve(options)
    });
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::tell(&error);
            ExitCode::from(error.exit_code())
        }
    }
}
