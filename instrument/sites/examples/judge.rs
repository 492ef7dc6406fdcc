//! Judges samples of a planted program by what it says of itself; prints one line of JSON.
//!
//! `judge SOURCE SAMPLES SECONDS COMMAND…`; `benches/sites.py` calls it.

use std::io::{Error, Result};
use std::path::Path;
use std::time::Duration;

#[allow(dead_code)]
#[path = "../tests/sites/plant.rs"]
mod plant;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [source, samples, seconds, command @ ..] = arguments.as_slice() else {
        return Err(Error::other("usage: judge SOURCE SAMPLES SECONDS COMMAND…"));
    };
    let truth = plant::true_sites(Path::new(source))?;
    let samples = samples.parse().map_err(Error::other)?;
    let limit = Duration::from_secs(seconds.parse().map_err(Error::other)?);
    let plant = plant::Plant::start(command)?;
    let verdict = plant::judge(&plant, &truth, samples, limit);
    let line = serde_json::json!({
        "judged": verdict.judged,
        "function": verdict.function,
        "line": verdict.line,
        "wrong": verdict.wrong,
        "unknown": verdict.unknown,
        "taken": verdict.taken,
        "torn": verdict.torn,
        "held": verdict.held,
        "holder": verdict.holder,
        "misread": verdict.misread,
        "capture_cpu_ns": verdict.capture_cpu_ns,
        "resolve_cpu_ns": verdict.resolve_cpu_ns,
        "shown": verdict.shown,
    });
    println!("{line}");
    Ok(())
}
