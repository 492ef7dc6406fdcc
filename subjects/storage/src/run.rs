//! Runs the command that the options select, and shows the results.

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use clap::Parser;
use concurve_reporter::Reporter;

use crate::cli::{ExportOptions, LoadOptions, Options, StreamOptions, Work};
use crate::database;
use crate::device::{Device, Interval, Seeks};
use crate::error::Error;
use crate::export::{self, Manifest};
use crate::{figures, file_system, load, report, streams};

/// Runs the program and prints its errors to standard error; returns the exit code.
pub fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("concurve-storage: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}

fn run(options: &Options) -> Result<(), Error> {
    concurve_files::keep_new_files_private().map_err(|it| Error::Usage(it.to_string()))?;
    let reporter = Reporter::from_environment()?;
    match &options.work {
        Work::Export(options) => run_export(options),
        Work::Load(options) => run_load(options, &reporter),
        Work::Loader(options) => {
            let database = database::join(options.database, &options.at)?;
            load::run_loader(&*database, options.number)
        }
        Work::Streams(options) => run_streams(options, &reporter),
    }
}

fn run_export(options: &ExportOptions) -> Result<(), Error> {
    let manifest = export::write(&options.extent(), &options.folder)?;
    print(&format!(
        "{} files, {} tables, {} rows, {} bytes\n",
        manifest.files.len(),
        manifest.tables(),
        manifest.rows(),
        manifest.bytes()
    ))
}

fn run_load(options: &LoadOptions, reporter: &Reporter) -> Result<(), Error> {
    let loaders = options.loaders()?;
    let manifest = Manifest::read(&options.exports)?;
    if options.database.is_embedded() {
        file_system::require_space(Path::new(&options.at), manifest.bytes(), "the database")?;
    }
    let database = database::open(options.database, &options.at)?;
    let is_embedded = options.database.is_embedded();
    let watched = match &options.watch {
        Some(folder) => Some(folder.as_path()),
        None => is_embedded.then_some(Path::new(&options.at)),
    };
    let device = watched.and_then(Device::beneath);
    let seeks = seeks(&manifest.folder.join(&manifest.files[0].name));
    let page_cache = file_system::empty_page_cache(&manifest, watched, options.drop_caches)?;
    let mut phase = None;
    let (outcome, interval) = measure(reporter, device.as_ref(), || {
        let outcome = load::run(&manifest, &*database, &loaders, |next| {
            change_phase(reporter, &mut phase, next)
        })?;
        phase.map_or(Ok(0), |it| reporter.end(it))?;
        Ok(outcome)
    })?;
    if let Some(path) = &options.times {
        report::write_times(path, &outcome)?;
    }
    report::report_loaders(reporter, &outcome)?;
    report::report_times(reporter, &outcome)?;
    let facts = vec![
        ("database", options.database.name().to_owned()),
        ("loaders_are", loaders.are().to_owned()),
        ("page_cache", page_cache.to_owned()),
    ];
    let figures = figures::of_load(&manifest, &outcome);
    show(reporter, device.as_ref(), seeks, interval, facts, figures)
}

fn run_streams(options: &StreamOptions, reporter: &Reporter) -> Result<(), Error> {
    let streams = options.streams()?;
    let prepared = streams::prepare(&streams, &options.folder)?;
    let device = Device::beneath(&options.folder);
    let seeks = prepared.paths().next().and_then(seeks);
    let (outcome, interval) = measure(reporter, device.as_ref(), || prepared.run())?;
    report::report_reads(reporter, &outcome)?;
    let figures = figures::of_streams(&streams, &outcome);
    show(reporter, device.as_ref(), seeks, interval, vec![], figures)
}

/// The cost of seeks, if files can be read without the page cache.
fn seeks(file: &Path) -> Option<Seeks> {
    Seeks::measure(file).ok()
}

/// Runs the measured phase, and reads the counters of the device before and after it.
fn measure<T>(
    reporter: &Reporter,
    device: Option<&Device>,
    work: impl FnOnce() -> Result<T, Error>,
) -> Result<(T, Option<Interval>), Error> {
    let before = device.and_then(Device::read);
    reporter.begin("measure")?;
    let done = work()?;
    reporter.end("measure")?;
    let after = device.and_then(Device::read);
    let interval = before
        .zip(after)
        .map(|(before, after)| before.until(&after));
    Ok((done, interval))
}

fn change_phase(
    reporter: &Reporter,
    phase: &mut Option<&'static str>,
    next: &'static str,
) -> Result<(), Error> {
    if let Some(last) = phase.replace(next) {
        reporter.end(last)?;
    }
    reporter.begin(next)?;
    Ok(())
}

fn show(
    reporter: &Reporter,
    device: Option<&Device>,
    seeks: Option<Seeks>,
    interval: Option<Interval>,
    mut facts: Vec<figures::Fact>,
    mut figures: Vec<figures::Figure>,
) -> Result<(), Error> {
    facts.extend(figures::facts_of_device(device, seeks));
    if let Some(seeks) = seeks {
        figures.push(("seek_ratio", seeks.ratio, None));
    }
    if let Some(interval) = interval {
        figures.extend(figures::of_device(&interval));
    }
    report::report(reporter, &facts, &figures)?;
    print(&report::lines(&facts, &figures))
}

fn print(text: &str) -> Result<(), Error> {
    stdout()
        .write_all(text.as_bytes())
        .and_then(|()| stdout().flush())
        .map_err(Error::io("write to", Path::new("standard output")))
}
