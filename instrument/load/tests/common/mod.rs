//! A small RESP server of the test's own, and the program under test with what it printed and
//! reported.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::NamedTempFile;

pub mod planted;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_concurve-load-under-test");

/// A server that answers each request with the result of a function of its number and words.
pub struct Server {
    pub address: String,
    requests: Arc<AtomicU64>,
}

pub type Answer = fn(u64, &[String]) -> Option<String>;

impl Server {
    pub fn start(answer: Answer) -> Self {
        Self::start_with(move |stream, counter| serve(stream, answer, counter))
    }

    /// Passes each connection to a function, which counts the requests.
    pub fn start_with(serve: impl Fn(&TcpStream, &AtomicU64) + Clone + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(AtomicU64::new(0));
        let counter = requests.clone();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (serve, counter) = (serve.clone(), counter.clone());
                thread::spawn(move || serve(&stream.unwrap(), &counter));
            }
        });
        Self { address, requests }
    }

    /// Waits until the server has received so many requests.
    pub fn wait_for(&self, requests: u64) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while self.requests() < requests {
            assert!(Instant::now() < deadline, "no requests come");
            thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }
}

fn serve(stream: &TcpStream, answer: Answer, counter: &AtomicU64) {
    stream.set_nodelay(true).unwrap();
    let (mut reader, mut writer) = (BufReader::new(stream), stream);
    while let Some(words) = request(&mut reader) {
        let number = counter.fetch_add(1, Ordering::SeqCst);
        let Some(text) = answer(number, &words) else {
            return;
        };
        if writer.write_all(text.as_bytes()).is_err() {
            return;
        }
    }
}

pub fn request(reader: &mut impl BufRead) -> Option<Vec<String>> {
    let count = line(reader)?.strip_prefix('*')?.parse::<usize>().ok()?;
    let word = |_| {
        let length = line(reader)?.strip_prefix('$')?.parse::<usize>().ok()?;
        let mut bytes = vec![0; length + 2];
        reader.read_exact(&mut bytes).ok()?;
        String::from_utf8(bytes[..length].to_vec()).ok()
    };
    (0..count).map(word).collect()
}

fn line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    Some(line.trim_end().to_owned())
}

/// The output and the report of a run.
pub struct Ended {
    pub output: Output,
    pub lines: Vec<Value>,
}

pub fn load(server: &str, arguments: &str) -> Ended {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    load_with(server, &arguments, &[])
}

/// A run with variables of the environment.
pub fn load_with(server: &str, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let report = NamedTempFile::new().unwrap();
    let output = Command::new(PROGRAM)
        .arg(server)
        .args(arguments)
        .envs(variables.iter().copied())
        .env("CONCURVE_REPORT", "0")
        .stdin(Stdio::from(report.reopen().unwrap()))
        .output()
        .unwrap();
    let text = fs::read_to_string(report.path()).unwrap();
    let lines = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    Ended { output, lines }
}

/// Starts a run whose output can be read while it continues.
pub fn start(server: &str, arguments: &[&str]) -> Child {
    Command::new(PROGRAM)
        .arg(server)
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

impl Ended {
    pub fn ok(self) -> Self {
        assert!(self.output.status.success(), "{}", self.stderr());
        self
    }

    pub fn stdout(&self) -> String {
        String::from_utf8_lossy(&self.output.stdout).into_owned()
    }

    pub fn stderr(&self) -> String {
        String::from_utf8_lossy(&self.output.stderr).into_owned()
    }

    pub fn indicator(&self, name: &str) -> f64 {
        let mut values = self.lines.iter().filter(|it| it["indicator"] == name);
        let found = values.find(|it| it.get("worker").is_none());
        found.unwrap_or_else(|| panic!("no {name}"))["value"]
            .as_f64()
            .unwrap()
    }

    pub fn fact(&self, name: &str) -> &Value {
        let found = self.lines.iter().find(|it| it["fact"] == name);
        &found.unwrap_or_else(|| panic!("no {name}"))["value"]
    }

    pub fn edges(&self) -> Vec<String> {
        let text = |it: &Value| {
            Some(format!(
                "{} {}",
                it["phase"].as_str()?,
                it["edge"].as_str()?
            ))
        };
        self.lines.iter().filter_map(text).collect()
    }
}

pub fn ok(_: u64, _: &[String]) -> Option<String> {
    Some("+OK\r\n".to_owned())
}
