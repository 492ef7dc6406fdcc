//! One call of the disk fails under the record engine, whichever it is and in whichever thread or process:
//! the server ends by itself, with its reason and the exit code 1, and the next one has all that was
//! acknowledged.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A test that takes longer hangs, on however busy a machine.
const TIMEOUT: Duration = Duration::from_secs(120);

const MODELS: [&[&str]; 3] = [
    &[
        "--engines",
        "threads",
        "--engine-count",
        "2",
        "--io-threads",
        "2",
    ],
    &[
        "--engines",
        "threads",
        "--execution",
        "inline",
        "--io-threads",
        "2",
    ],
    &["--engines", "processes", "--engine-count", "2"],
];

/// Calls before the one that fails.
const CALLS: [u64; 9] = [0, 1, 2, 4, 8, 16, 32, 64, 128];

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Records that are there before the first single one.
const FILLED: u64 = 200;

struct Server {
    child: Child,
    stderr: PathBuf,
    /// `None` if it has ended before it was ready.
    port: Option<u16>,
    /// Kept open, so that the server may write to it.
    _stdout: BufReader<ChildStdout>,
}

impl Server {
    /// Starts a server whose disk fails as `failing` says, and waits until it is ready or has ended.
    fn start(place: &Path, options: &[&str], failing: Option<&str>) -> Self {
        let stderr = place.join("stderr");
        let mut command = Command::new(env!("CARGO_BIN_EXE_concurve-server-under-test"));
        command
            .args(["--port", "0", "--cache-mib", "8", "--checkpoint-mib", "1"])
            .args(["--shared-memory", "256", "--folder"])
            .arg(place.join("data"))
            .args(options)
            .env_remove("CONCURVE_REPORT")
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(File::create(&stderr).unwrap());
        if let Some(failing) = failing {
            command.env("CONCURVE_FAILING_DISK", failing);
        }
        let mut child = command.spawn().unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        // `concurve-server: records on 127.0.0.1:7379, …`
        let port = line.split([':', ',']).nth(2);
        Self {
            child,
            stderr,
            port: port.map(|it| it.parse().expect("a port")),
            _stdout: stdout,
        }
    }

    fn connect(&self) -> io::Result<Client> {
        let port = self.port.ok_or(io::ErrorKind::NotConnected)?;
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client(BufReader::new(stream)))
    }

    fn stderr(&self) -> String {
        std::fs::read_to_string(&self.stderr).unwrap()
    }

    fn ask_to_end(&self) {
        // It has not been waited for, so its number is still its own.
        kill(Pid::from_raw(self.child.id() as i32), Signal::SIGTERM).unwrap();
    }

    fn wait(&mut self, case: &str) -> ExitStatus {
        let end = Instant::now() + TIMEOUT;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status;
            }
            assert!(
                Instant::now() < end,
                "{case}: it goes on: {}",
                self.stderr()
            );
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

struct Client(BufReader<TcpStream>);

impl Client {
    /// The reply, or how the connection ended. An error reply is one of its kind, too.
    fn ask(&mut self, words: &[&str]) -> io::Result<String> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request += &format!("${}\r\n{word}\r\n", word.len());
        }
        self.0.get_mut().write_all(request.as_bytes())?;
        let mut line = String::new();
        if self.0.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        let line = line.trim_end();
        if let Some(error) = line.strip_prefix('-') {
            return Err(io::Error::other(error.to_owned()));
        }
        let Some(bytes) = line.strip_prefix('$') else {
            return Ok(line.to_owned());
        };
        let mut text = vec![0; bytes.parse::<usize>().expect("a length") + 2];
        self.0.read_exact(&mut text)?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// A service over the record engine.
#[derive(Clone, Copy, Debug)]
enum Service {
    Records,
    Statements,
}

impl Service {
    fn options(self) -> [&'static str; 2] {
        match self {
            Service::Records => ["--service", "records"],
            Service::Statements => ["--service", "statements"],
        }
    }

    fn create(self, client: &mut Client) -> io::Result<String> {
        match self {
            Service::Records => client.ask(&["CREATE", "f", "1000", "KEY", "0:12:text"]),
            Service::Statements => client.ask(&["CREATE", "f", "id", "value", "BYTES", "1000"]),
        }
    }

    fn fill(self, client: &mut Client) -> io::Result<String> {
        let last = &(FILLED - 1).to_string();
        match self {
            Service::Records => client.ask(&["FILL", "f", "0", last, &"x".repeat(988)]),
            Service::Statements => client.ask(&["FILL", "f", "0", last, "7"]),
        }
    }

    fn insert(self, client: &mut Client, number: u64) -> io::Result<String> {
        match self {
            Service::Records => {
                client.ask(&["INSERT", "f", &format!("{number:012}{}", "x".repeat(988))])
            }
            Service::Statements => client.ask(&["RUN", &format!("INSERT f {number} 7")]),
        }
    }

    fn count(self, client: &mut Client) -> io::Result<u64> {
        let reply = match self {
            Service::Records => client.ask(&["COUNT", "f"])?,
            Service::Statements => client.ask(&["RUN", "COUNT f FROM 0 TO 1000000"])?,
        };
        Ok(reply.trim_start_matches(':').parse().expect("a number"))
    }
}

/// Works until the server ends or all is done; counts the records that were acknowledged.
fn work(server: &Server, service: Service, acknowledged: &mut u64) -> io::Result<()> {
    let client = &mut server.connect()?;
    service.create(client)?;
    service.fill(client)?;
    *acknowledged = FILLED;
    for round in 1..=3 {
        for _ in 0..10 {
            service.insert(client, *acknowledged)?;
            *acknowledged += 1;
        }
        client.ask(&["CHECKPOINT"])?;
        while checkpoints(client)? < round {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    Ok(())
}

fn checkpoints(client: &mut Client) -> io::Result<u64> {
    let text = client.ask(&["INFO", "records"])?;
    let mut lines = text.lines();
    let count = lines.find_map(|it| it.strip_prefix("checkpoints:"));
    Ok(count.expect("it is counted").parse().expect("a number"))
}

/// Whether the call was reached that was to fail.
fn fail(service: Service, model: &[&str], threads: &str, calls: u64) -> bool {
    let case = format!("{service:?} {model:?} {threads} {calls}");
    let place = tempfile::tempdir().unwrap();
    let options = [&service.options()[..], model].concat();
    let error = if calls.is_multiple_of(3) { ENOSPC } else { EIO };
    let failing = format!("{threads} {calls} {error}");
    let mut server = Server::start(place.path(), &options, Some(&failing));
    let mut acknowledged = 0;
    let _ = work(&server, service, &mut acknowledged);
    // After a failure nobody asks it anything.
    if !server.stderr().contains("the disk fails") {
        server.ask_to_end();
    }
    let status = server.wait(&case);
    let stderr = server.stderr();
    if !stderr.contains("the disk fails") {
        assert!(status.success(), "{case}: {status}: {stderr}");
        return false;
    }
    assert_eq!(status.code(), Some(1), "{case}: {stderr}");
    let mut lines = stderr.lines();
    let reason = lines.find(|it| it.starts_with("concurve-server: "));
    let names_it = |it: &str| it.contains(&format!("os error {error}"));
    assert!(reason.is_some_and(names_it), "{case}: {stderr}");
    if acknowledged == 0 {
        return true;
    }
    let server = Server::start(place.path(), &options, None);
    let client = &mut server
        .connect()
        .unwrap_or_else(|_| panic!("{case}: {}", server.stderr()));
    let there = service.count(client).unwrap();
    assert!(there >= acknowledged, "{case}: {there} of {acknowledged}");
    true
}

/// Lets the calls fail one after the other, each in a server of its own, until none is reached any more.
fn fail_all(service: Service, model: &[&str], threads: &str) {
    let reached = CALLS
        .iter()
        .take_while(|it| fail(service, model, threads, **it));
    let reached = reached.count();
    assert!(
        reached >= 5,
        "{service:?} {model:?} {threads}: only {reached}"
    );
}

#[test]
fn a_fault_of_the_disk_while_records_are_served_ends_the_server() {
    for model in MODELS {
        fail_all(Service::Records, model, "others");
    }
}

#[test]
fn a_fault_of_the_disk_while_statements_are_served_ends_the_server() {
    for model in MODELS {
        fail_all(Service::Statements, model, "others");
    }
}

#[test]
fn a_fault_of_the_disk_at_the_start_or_the_end_is_told() {
    fail_all(Service::Records, MODELS[0], "main");
    fail_all(Service::Statements, MODELS[2], "main");
}
