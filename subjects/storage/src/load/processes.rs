//! A loader as a process: this program again, held by its pipes.
//!
//! It reads the names of files from standard input, a line each, and writes what it has done to
//! standard output, a line each. The end of its input ends it, and so does the end of its parent.

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

use super::{Loaded, Shared, file};
use crate::database::Database;
use crate::error::{At, Error};

/// How a loader is started: a program and its arguments, behind which the loader's number comes.
#[derive(Debug, Clone)]
pub struct Launch {
    pub program: PathBuf,
    pub arguments: Vec<OsString>,
}

/// What a loader says.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    Loaded(Loaded),
    /// The file is done.
    Done,
    Failed(String),
}

// -- the parent's side ----------------------------------------------------------------------------

/// Has a process load until no file is left, or another loader has failed.
pub fn load(shared: &Shared, launch: &Launch, number: usize) -> Result<Vec<Loaded>, Error> {
    let mut process = Process::start(launch, number)?;
    let mut loaded = Vec::new();
    while let Some(next) = shared.next_file() {
        process.give(&shared.manifest.folder.join(&next.name));
        loop {
            match process.hear() {
                Some(Said::Loaded(table)) => loaded.push(table),
                Some(Said::Done) => break,
                Some(Said::Failed(said)) => return Err(Error::InLoader(said)),
                None => return Err(process.lost(&next.name, loaded.last())),
            }
            if shared.has_failed() {
                return Ok(loaded);
            }
        }
    }
    process.dismiss();
    Ok(loaded)
}

struct Process {
    number: usize,
    child: Child,
    files: Option<ChildStdin>,
    says: Lines<BufReader<ChildStdout>>,
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
            .at("start a loader with", &launch.program)?;
        Ok(Self {
            number,
            files: child.stdin.take(),
            says: BufReader::new(child.stdout.take().expect("it is piped")).lines(),
            child,
        })
    }

    /// Gives it a file. One that is gone does not take it; what it says next shows that.
    fn give(&mut self, path: &Path) {
        let text = serde_json::to_string(path).expect("paths of export sets are UTF-8");
        if let Some(files) = &mut self.files {
            let _ = writeln!(files, "{text}");
        }
    }

    /// The next that it says; `None` if it is gone.
    fn hear(&mut self) -> Option<Said> {
        let line = self.says.next()?.ok()?;
        serde_json::from_str(&line).ok()
    }

    /// Lets it close its connection and end.
    fn dismiss(mut self) {
        self.files = None;
        while self.hear().is_some() {}
        let _ = self.child.wait();
    }

    /// Why it said no more.
    fn lost(&mut self, file: &str, last: Option<&Loaded>) -> Error {
        let _ = self.child.kill();
        let how = match self.child.wait() {
            Ok(status) => words(status),
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
    /// One that was not let go is ended, since the load has failed.
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn words(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(number), _) => match Signal::try_from(number) {
            Ok(signal) => format!("was ended by {signal}"),
            Err(_) => format!("was ended by signal {number}"),
        },
        (None, code) => format!("ended with code {}", code.unwrap_or(0)),
    }
}

// -- the loader's side ----------------------------------------------------------------------------

/// The life of a loader, counted from 0.
///
/// # Errors
/// What it cannot tell its parent. All else is told, and no error here.
pub fn be_a_loader(database: &dyn Database, number: usize) -> Result<(), Error> {
    // Of a parent that has gone before this the input has ended.
    let _ = prctl::set_pdeathsig(Signal::SIGKILL);
    match load_files(database, number) {
        Ok(()) => Ok(()),
        Err(error) => say(&Said::Failed(error.to_string())),
    }
}

fn load_files(database: &dyn Database, number: usize) -> Result<(), Error> {
    let mut connection = database.connect(number)?;
    for line in io::stdin().lines() {
        let line = line.at("read from", Path::new("standard input"))?;
        let path: PathBuf = serde_json::from_str(&line).map_err(|error| {
            Error::Usage(format!(
                "standard input: {error}: give a path as JSON a line"
            ))
        })?;
        let _ = file::load(&mut *connection, &path, &mut |table| {
            say(&Said::Loaded(table))?;
            Ok(ControlFlow::Continue(()))
        })?;
        say(&Said::Done)?;
    }
    Ok(())
}

fn say(said: &Said) -> Result<(), Error> {
    let text = serde_json::to_string(said).expect("numbers and names are JSON");
    writeln!(io::stdout(), "{text}").at("write to", Path::new("standard output"))
}
