//! What the disks of a simulation do, as lines of JSON in a file, for a program that shows it.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use crate::disk::Serving;
use crate::error::Error;
use crate::machine::Machine;
use crate::request::{Direction, Request};
use crate::time::Time;

/// A file that gets an event a line. What cannot be written is told at the end.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: BufWriter<File>,
    failed: Option<io::Error>,
}

impl EventFile {
    /// Opens the file, empty.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let file = concurve_files::open(&options, path).map_err(|source| Error::Events {
            path: path.into(),
            source,
        })?;
        Ok(Self {
            path: path.into(),
            file: BufWriter::new(file),
            failed: None,
        })
    }

    /// The disks, before anything else.
    pub fn disks(&mut self, machine: &Machine, cylinders: u32) {
        let (disks, scheduler) = (machine.disks, machine.scheduler.name());
        self.line(format_args!(
            r#"{{"event":"disks","disks":{disks},"cylinders":{cylinders},"scheduler":"{scheduler}"}}"#
        ));
    }

    /// A request comes to a disk, to begin at a cylinder.
    pub fn arrived(&mut self, now: Time, disk: usize, request: &Request, cylinder: u32) {
        let (ticket, process) = (request.ticket, request.process);
        let (direction, sectors) = (direction(request), request.sectors);
        self.line(format_args!(
            r#"{{"event":"arrive","at_ns":{now},"disk":{disk},"ticket":{ticket},"process":{process},"direction":"{direction}","cylinder":{cylinder},"sectors":{sectors}}}"#
        ));
    }

    /// A waiting request is a part of another one from now on.
    pub fn merged(&mut self, now: Time, disk: usize, gone: u32, into: u32) {
        self.line(format_args!(
            r#"{{"event":"merge","at_ns":{now},"disk":{disk},"ticket":{gone},"into":{into}}}"#
        ));
    }

    /// The arm begins with a request, and will be done with it.
    pub fn served(&mut self, now: Time, disk: usize, serving: &Serving, end: Time) {
        let request = &serving.request;
        let (ticket, process, direction) = (request.ticket, request.process, direction(request));
        let (from, to, is_reported) = (serving.from, serving.to, serving.is_reported);
        self.line(format_args!(
            r#"{{"event":"serve","at_ns":{now},"end_ns":{end},"disk":{disk},"ticket":{ticket},"process":{process},"direction":"{direction}","from":{from},"to":{to},"reported":{is_reported}}}"#
        ));
    }

    /// A request is reported as done without the arm: it is in the write cache.
    pub fn cached(&mut self, now: Time, disk: usize, request: &Request) {
        let ticket = request.ticket;
        self.line(format_args!(
            r#"{{"event":"cache","at_ns":{now},"disk":{disk},"ticket":{ticket}}}"#
        ));
    }

    /// All is done.
    ///
    /// # Errors
    /// Something could not be written.
    pub fn end(mut self, now: Time) -> Result<(), Error> {
        self.line(format_args!(r#"{{"event":"end","at_ns":{now}}}"#));
        match self.failed.map_or_else(|| self.file.flush(), Err) {
            Ok(()) => Ok(()),
            Err(source) => Err(Error::Events {
                path: self.path,
                source,
            }),
        }
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.failed.is_none()
            && let Err(error) = writeln!(self.file, "{line}")
        {
            self.failed = Some(error);
        }
    }
}

fn direction(request: &Request) -> &'static str {
    match request.direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}
