//! A target as a child process, and its results.

use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use std::{fs, thread};

use concurve_reporter::line::{Edge, ReportLine};
use tempfile::NamedTempFile;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_concurve-targets-under-test");

/// Longer than anything here takes on any machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A program whose report channel is a file. The file is its stdin, because that descriptor can be
/// passed to a child without unsafe code; the reporter opens the channel anew through it.
pub struct Program {
    pub command: Command,
    pub report: NamedTempFile,
}

/// The results of a program that has ended.
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
    pub report: Vec<u8>,
}

pub fn target(arguments: &str) -> Program {
    wrapped(&[PROGRAM], arguments)
}

/// The target, started by another program that executes it.
pub fn wrapped(prefix: &[&str], arguments: &str) -> Program {
    let report = NamedTempFile::new().unwrap();
    let mut command = Command::new(prefix[0]);
    command
        .args(&prefix[1..])
        .args(arguments.split_whitespace())
        .env("CONCURVE_REPORT", "0")
        .stdin(report.reopen().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    Program { command, report }
}

impl Program {
    pub fn run(mut self) -> Ended {
        let output = self.command.output().unwrap();
        self.ended(output)
    }

    fn ended(&self, output: std::process::Output) -> Ended {
        Ended {
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            report: fs::read(self.report.path()).unwrap(),
        }
    }

    /// Waits for the end of the program; kills it after a time limit.
    pub fn finish(&self, mut child: Child) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > deadline {
                child.kill().unwrap();
                child.wait().unwrap();
                panic!("the program did not end");
            }
            thread::sleep(Duration::from_millis(2));
        }
        self.ended(child.wait_with_output().unwrap())
    }
}

impl Ended {
    pub fn ok(self) -> Self {
        assert!(self.status.success(), "{}: {}", self.status, self.stderr);
        self
    }

    /// The report, of which every line must be valid.
    pub fn lines(&self) -> Vec<ReportLine> {
        let text = std::str::from_utf8(&self.report).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|it| panic!("{line}: {it}")))
            .collect()
    }

    pub fn indicator(&self, name: &str) -> f64 {
        let lines = self.lines();
        let found = lines.iter().find_map(|line| match line {
            ReportLine::Indicator(it) if it.indicator == name && it.worker.is_none() => {
                Some(it.value)
            }
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no indicator {name}"))
    }

    pub fn fact(&self, name: &str) -> serde_json::Value {
        let lines = self.lines();
        let found = lines.iter().find_map(|line| match line {
            ReportLine::Fact(it) if it.fact == name => Some(it.value.clone()),
            _ => None,
        });
        found.unwrap_or_else(|| panic!("no fact {name}"))
    }

    pub fn worker_operations(&self) -> Vec<f64> {
        let values = self.lines().into_iter().filter_map(|line| match line {
            ReportLine::Indicator(it) => it.worker.map(|_| it.value),
            _ => None,
        });
        values.collect()
    }

    /// Asserts that the phase `measure` began and ended, in this order, and that the workers'
    /// operations sum to the program's.
    pub fn measured(self, operations: f64, workers: usize) -> Self {
        let edges: Vec<_> = self
            .lines()
            .into_iter()
            .filter_map(|line| match line {
                ReportLine::Phase(it) if it.phase == "measure" => Some((it.edge, it.at_ns)),
                _ => None,
            })
            .collect();
        assert!(
            matches!(edges[..], [(Edge::Begin, Some(begin)), (Edge::End, Some(end))] if begin <= end),
            "{edges:?}"
        );
        assert_eq!(self.indicator("operations"), operations);
        assert!(self.indicator("compute_seconds") > 0.0);
        assert_eq!(self.worker_operations().len(), workers);
        assert_eq!(self.worker_operations().iter().sum::<f64>(), operations);
        self
    }
}
