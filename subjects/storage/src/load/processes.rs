//! A loader as a process: this program, started with other arguments and connected by pipes.
//!
//! It reads paths of files from standard input, a line each, and writes messages to standard
//! output, a line each. It ends at the end of its input, and when its parent ends.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Lines, Write};
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use concurve_reporter::REPORT_VARIABLE;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use serde::{Deserialize, Serialize};

use super::loader::{Loaded, Shared, load_file};
use crate::database::Database;
use crate::error::Error;

/// How a loader is started: a program and its arguments, to which the number of the loader is
/// added.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// A message of a loader.
#[derive(Debug, Serialize, Deserialize)]
enum Message {
    Loaded(Loaded),
    /// All tables of the file are loaded.
    Done,
    Failed(String),
}

// -- the parent's side ----------------------------------------------------------------------------

/// Runs a loader process until no file is left, or another loader has failed.
pub fn load(shared: &Shared, launch: &Launch, number: usize) -> Result<Vec<Loaded>, Error> {
    let mut process = Process::start(launch, number)?;
    let mut loaded = Vec::new();
    while let Some(next) = shared.next_file() {
        process.send(&shared.manifest.folder.join(&next.name));
        loop {
            match process.receive() {
                Some(Message::Loaded(table)) => loaded.push(table),
                Some(Message::Done) => break,
                Some(Message::Failed(text)) => return Err(Error::InLoader(text)),
                None => return Err(process.lost(&next.name, loaded.last())),
            }
            if shared.has_failed() {
                return Ok(loaded);
            }
        }
    }
    process.finish();
    Ok(loaded)
}

struct Process {
    number: usize,
    child: Child,
    files: Option<ChildStdin>,
    messages: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(launch: &Launch, number: usize) -> Result<Self, Error> {
        let mut child = Command::new(&launch.program)
            .args(&launch.arguments)
            .arg(number.to_string())
            .env_remove(REPORT_VARIABLE)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::io("start a loader with", &launch.program))?;
        Ok(Self {
            number,
            files: child.stdin.take(),
            messages: BufReader::new(child.stdout.take().expect("it is piped")).lines(),
            child,
        })
    }

    /// Sends the path of a file. If the process has ended, the next message is missing.
    fn send(&mut self, path: &Path) {
        let text = serde_json::to_string(path).expect("paths of export sets are UTF-8");
        if let Some(files) = &mut self.files {
            let _ = writeln!(files, "{text}");
        }
    }

    /// The next message; `None` if the process has ended.
    fn receive(&mut self) -> Option<Message> {
        let line = self.messages.next()?.ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Lets the process close its database session and end.
    fn finish(mut self) {
        self.files = None;
        while self.receive().is_some() {}
        let _ = self.child.wait();
    }

    /// The error after the process has ended early.
    fn lost(&mut self, file: &str, last: Option<&Loaded>) -> Error {
        let _ = self.child.kill();
        let how = match self.child.wait() {
            Ok(status) => describe(status),
            Err(error) => error.to_string(),
        };
        let place = last.map_or_else(String::new, |it| format!(", behind table {}", it.table));
        Error::Lost {
            loader: self.number + 1,
            how,
            place: format!("{file}{place}"),
        }
    }
}

impl Drop for Process {
    /// Kills a process that was not finished, because the load has failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(number), _) => match Signal::try_from(number) {
            Ok(signal) => format!("was ended by {signal}"),
            Err(_) => format!("was ended by signal {number}"),
        },
        (None, code) => format!("ended with code {}", code.unwrap_or(0)),
    }
}

// -- the loader's side ----------------------------------------------------------------------------

/// Runs a loader in its process; `number` is counted from 0.
///
/// # Errors
/// If it cannot write to its parent. Other errors are sent to the parent as a message.
pub fn run_loader(database: &dyn Database, number: usize) -> Result<(), Error> {
    // If the parent has ended before this, the input has ended, too.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    match load_files(database, number) {
        Ok(()) => Ok(()),
        Err(error) => send(&Message::Failed(error.to_string())),
    }
}

fn load_files(database: &dyn Database, number: usize) -> Result<(), Error> {
    let mut session = database.connect(number)?;
    for line in io::stdin().lines() {
        let line = line.map_err(Error::io("read from", Path::new("standard input")))?;
        let path: PathBuf = serde_json::from_str(&line).map_err(|error| {
            Error::Usage(format!(
                "standard input: {error}: give a path as JSON a line"
            ))
        })?;
        let _ = load_file(&mut *session, &path, &mut |table| {
            send(&Message::Loaded(table))?;
            Ok(ControlFlow::Continue(()))
        })?;
        send(&Message::Done)?;
    }
    Ok(())
}

fn send(message: &Message) -> Result<(), Error> {
    let text = serde_json::to_string(message).expect("numbers and names are JSON");
    writeln!(io::stdout(), "{text}").map_err(Error::io("write to", Path::new("standard output")))
}
