//! The program from the command line: its output, its report channel, its refusals.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use concurve_reporter::line::{Edge, ReportLine};

const PROGRAM: &str = env!("CARGO_BIN_EXE_concurve-mandelbrot-under-test");
const SMALL: &str = "--width 20 --height 10 --iterations 50";

fn command(arguments: &str) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments.split_whitespace());
    command.env_remove("CONCURVE_REPORT");
    command
}

fn run(arguments: &str) -> Output {
    command(arguments).output().unwrap()
}

/// Runs what must be refused; returns standard error.
fn refusal(arguments: &str, code: i32) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments}");
    assert!(output.stdout.is_empty(), "{arguments}");
    String::from_utf8(output.stderr).unwrap()
}

#[test]
fn figures_stand_on_lines_of_their_own_one_set_a_computation() {
    let output = run(&format!("{SMALL} --repeat 2 --threads 3 --sync object"));
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let keys: Vec<&str> = text.lines().filter_map(|l| l.split(' ').next()).collect();
    let one = ["pixel_sum", "pixels", "compute_seconds"];
    assert_eq!(keys, [one, one].concat());
    assert!(text.contains("pixels 200\n"));
}

#[test]
fn the_listing_ends_with_the_number_of_pixels() {
    let output = run(&format!("{SMALL} --listing --threads 2"));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[..4],
        [". . . . .", "Calculating...", "X: 1 to 20", "Y: 1 to 10"]
    );
    assert_eq!(lines.len(), 8);
    assert_eq!(lines[7], "Number of pixels rendered: 200");
}

#[test]
fn the_report_channel_gets_phases_figures_and_facts() {
    // The channel is stdin, a descriptor that can be handed down without unsafe code.
    let channel = tempfile::NamedTempFile::new().unwrap();
    let status = command(&format!(
        "{SMALL} --repeat 2 --threads 2 --sync method --grain pixel"
    ))
    .env("CONCURVE_REPORT", "0")
    .stdin(channel.reopen().unwrap())
    .stdout(Stdio::null())
    .status()
    .unwrap();
    assert!(status.success());
    let text = fs::read_to_string(channel.path()).unwrap();
    let lines: Vec<ReportLine> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        edges(&lines),
        [Edge::Begin, Edge::End, Edge::Begin, Edge::End]
    );
    assert_eq!(values(&lines, "operations"), [200.0, 200.0]);
    assert_eq!(values(&lines, "compute_seconds").len(), 2);
    assert_eq!(values(&lines, "iterations_total").len(), 2);
    assert_eq!(values(&lines, "worker_pixels").iter().sum::<f64>(), 400.0);
    assert_eq!(values(&lines, "worker_compute_seconds").len(), 4);
    for fact in [
        "path",
        "sync",
        "grain",
        "threads",
        "iterations",
        "pixel_sum",
    ] {
        assert!(text.contains(&format!("{{\"fact\":\"{fact}\"")), "{fact}");
    }
}

fn edges(lines: &[ReportLine]) -> Vec<Edge> {
    lines
        .iter()
        .filter_map(|line| match line {
            ReportLine::Phase(phase) => phase.at_ns.map(|_| phase.edge),
            _ => None,
        })
        .collect()
}

fn values(lines: &[ReportLine], name: &str) -> Vec<f64> {
    lines
        .iter()
        .filter_map(|line| match line {
            ReportLine::Indicator(line) if line.indicator == name => Some(line.value),
            _ => None,
        })
        .collect()
}

#[test]
fn the_picture_is_a_png_of_the_size_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("picture.png");
    fs::write(&file, "longer than any picture of 200 pixels ".repeat(100)).unwrap();
    let output = run(&format!("{SMALL} --png {}", file.display()));
    assert!(output.status.success());
    let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(&file).unwrap()));
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let frame = reader.next_frame(&mut pixels).unwrap();
    assert_eq!((frame.width, frame.height), (20, 10));
    assert!(pixels.iter().any(|byte| *byte != pixels[0]));
    assert!(
        fs::metadata(&file).unwrap().len() < 1000,
        "the old content is gone"
    );
}

#[test]
fn wrong_usage_exits_with_2() {
    assert!(refusal("--threads 0", 2).contains("--threads"));
    assert!(refusal("--sync lock", 2).contains("cas"));
    assert!(refusal("--grain row", 2).contains("tile"));
    assert!(refusal("--depth deep", 2).contains("rigorous"));
    assert!(refusal("--repeat 0", 2).contains("--repeat"));
    assert!(refusal("--colour", 2).contains("--colour"));
}

#[test]
fn failures_exit_with_1_and_say_where_and_what_to_try() {
    let png = refusal("--iterations 4000000000 --png /nonexistent/x.png", 1);
    assert!(
        png.contains("/nonexistent/x.png") && png.contains("--png"),
        "{png}"
    );
    let location = refusal("--location /nonexistent", 1);
    assert!(location.contains("/nonexistent") && location.contains("--location"));
    let threads = refusal("--threads 4000000000", 1);
    assert!(
        threads.contains("of 4000000000") && threads.contains("limit"),
        "{threads}"
    );
}

#[test]
fn a_malformed_location_file_is_named_with_line_and_key() {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "x_min = 0\nx_max = wide\n").unwrap();
    let text = refusal(&format!("--location {}", file.path().display()), 1);
    let name = Path::new(file.path())
        .file_name()
        .unwrap()
        .to_str()
        .unwrap();
    assert!(
        text.contains(name) && text.contains("line 2") && text.contains("`x_max`"),
        "{text}"
    );
}

#[test]
fn a_report_channel_that_cannot_be_opened_is_an_error() {
    let output = command(SMALL)
        .env("CONCURVE_REPORT", "77")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("CONCURVE_REPORT")
    );
}

/// The counts and the workers that a file holds for so many pixels; none if it is not written as a
/// whole yet.
fn picture(file: &Path, pixels: usize) -> (Vec<u32>, Vec<u16>) {
    let bytes = fs::read(file).unwrap();
    assert!(bytes.len() <= 6 * pixels, "{}", bytes.len());
    if bytes.len() < 6 * pixels {
        return (Vec::new(), Vec::new());
    }
    let (counts, workers) = bytes.split_at(4 * pixels);
    let counts = counts.chunks_exact(4);
    let workers = workers.chunks_exact(2);
    (
        counts
            .map(|it| u32::from_le_bytes(it.try_into().unwrap()))
            .collect(),
        workers
            .map(|it| u16::from_le_bytes(it.try_into().unwrap()))
            .collect(),
    )
}

#[test]
fn the_live_file_ends_with_the_counts_of_all_pixels() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = run(&format!(
        "{SMALL} --threads 2 --live {}",
        file.path().display()
    ));
    let (counts, _) = picture(file.path(), 200);
    assert_eq!(counts.len(), 200);
    let sum: u64 = counts.into_iter().map(u64::from).sum();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(&format!("pixel_sum {sum}\n")), "{text}");
}

#[test]
fn the_live_file_says_which_thread_computed_each_pixel() {
    for grain in ["pixel", "line", "tile --tile-size 3"] {
        for sync in ["none", "method", "object", "cas"] {
            let file = tempfile::NamedTempFile::new().unwrap();
            run(&format!(
                "{SMALL} --threads 3 --sync {sync} --grain {grain} --live {}",
                file.path().display()
            ));
            let (_, workers) = picture(file.path(), 200);
            let known = workers.len() == 200 && workers.iter().all(|it| (1..=3).contains(it));
            assert!(known, "{grain} {sync}: {workers:?}");
            if sync == "none" {
                let shares: Vec<usize> = (1..=3)
                    .map(|worker| workers.iter().filter(|it| **it == worker).count())
                    .collect();
                assert!(shares.iter().all(|share| *share > 0), "{grain}: {shares:?}");
            }
        }
    }
}

#[test]
fn the_live_file_shows_a_picture_that_is_not_complete() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut child = command("--width 64 --height 64 --iterations 4000000000")
        .arg("--live")
        .arg(file.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let seen = loop {
        let (seen, _) = picture(file.path(), 64 * 64);
        if seen.iter().any(|count| *count > 0) || child.try_wait().unwrap().is_some() {
            break seen;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    };
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(seen.iter().any(|count| *count > 0));
    assert!(
        seen.contains(&0),
        "a pixel of the set takes longer than this test"
    );
}

#[test]
fn a_live_file_that_cannot_be_written_is_refused_before_anything_is_computed() {
    let text = refusal(&format!("{SMALL} --live /no/such/folder/picture"), 1);
    assert!(text.contains("/no/such/folder/picture") && text.contains("--live"));
}
