//! Engines of both kinds, as other processes see them: shared data stay consistent, whichever
//! engine dies.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// A test that takes longer hangs, on however busy a machine.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The program under test, and its output.
struct Program {
    child: Child,
    lines: Receiver<String>,
    output: Vec<String>,
}

impl Program {
    fn start(arguments: &[&str], folder: &Path) -> Self {
        let [service, mode, engines, rest @ ..] = arguments else {
            panic!("service, mode, engines")
        };
        let mut child = Command::new(env!("CARGO_BIN_EXE_concurve-engines-under-test"))
            .args([service, mode, engines])
            .arg(folder)
            .args(rest)
            .env("RUST_BACKTRACE", "0")
            .stderr(Stdio::piped())
            .spawn()
            .expect("it was built");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        let (send, lines) = channel();
        thread::spawn(move || {
            let lines = stderr.lines().map_while(Result::ok);
            lines.for_each(|line| drop(send.send(line)));
        });
        Self {
            child,
            lines,
            output: Vec::new(),
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id() as i32)
    }

    /// Waits for a line with this beginning.
    fn wait_for(&mut self, beginning: &str) -> String {
        self.wait_for_any(&[beginning])
    }

    /// Waits for a line with one of these beginnings.
    fn wait_for_any(&mut self, beginnings: &[&str]) -> String {
        let end = Instant::now() + TIMEOUT;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let line = self
                .lines
                .recv_timeout(left)
                .unwrap_or_else(|error| panic!("no {beginnings:?} ({error}) in {:?}", self.output));
            self.output.push(line.clone());
            if beginnings.iter().any(|it| line.starts_with(it)) {
                return line;
            }
        }
    }

    fn ask_to_end(&self) {
        kill(self.pid(), Signal::SIGTERM).expect("it runs");
    }

    /// Waits for its end; its status and output.
    fn end(mut self) -> (ExitStatus, Vec<String>) {
        let end = Instant::now() + TIMEOUT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("wait") {
                break status;
            }
            assert!(Instant::now() < end, "it does not end: {:?}", self.output);
            thread::sleep(Duration::from_millis(5));
        };
        // Standard error ends when the last of its processes does.
        self.output.extend(self.lines.iter());
        (status, std::mem::take(&mut self.output))
    }

    fn must_succeed(self) -> Vec<String> {
        let (status, output) = self.end();
        assert!(status.success(), "{status}: {output:?}");
        output
    }

    /// The text after `error: `.
    fn must_fail(self) -> String {
        let (status, output) = self.end();
        assert_eq!(status.code(), Some(1), "{output:?}");
        let error = output.iter().find_map(|it| it.strip_prefix("error: "));
        error.unwrap_or_else(|| panic!("{output:?}")).to_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Children of a process, with their states.
fn children(of: Pid) -> Vec<Pid> {
    let processes = fs::read_dir("/proc").expect("/proc").flatten();
    let numbers = processes.filter_map(|it| it.file_name().to_str()?.parse::<i32>().ok());
    let parent = |pid: &i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
        let state = fields.next()?;
        let parent = fields.next()?.parse().ok()?;
        (state != "Z").then_some(parent)
    };
    let found = numbers.filter(|pid| parent(pid) == Some(of.as_raw()));
    found.map(Pid::from_raw).collect()
}

/// The generation, if there is one, and its engines.
fn engines(program: &Program) -> (Option<Pid>, Vec<Pid>) {
    let generation = children(program.pid()).first().copied();
    (generation, generation.map(children).unwrap_or_default())
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder")
}

#[test]
fn threads_and_processes_share_collections_alike() {
    for mode in ["threads", "processes"] {
        for engines in ["1", "3"] {
            let folder = folder();
            let output =
                Program::start(&["collections", mode, engines], folder.path()).must_succeed();
            assert_eq!(output, ["ready 1"], "{mode} {engines}");
        }
    }
}

/// The numbers of acknowledged transfers, and of all in the log.
fn acknowledged_and_logged(folder: &Path) -> (Vec<u32>, Vec<u32>) {
    let words = |name: &str, bytes: usize, at: usize| -> Vec<u32> {
        let content = fs::read(folder.join(name)).unwrap_or_default();
        let records = content.chunks_exact(bytes);
        let number = |it: &[u8]| u32::from_le_bytes(it[at..at + 4].try_into().expect("four"));
        records.map(number).collect()
    };
    (words("acknowledged", 4, 0), words("log", 20, 4))
}

#[test]
fn nothing_acknowledged_is_lost_when_random_engines_are_killed() {
    let folder = folder();
    let mut program = Program::start(&["bank", "processes", "3"], folder.path());
    program.wait_for("ready");
    let mut draw = 1_u64;
    let mut killed = 0;
    while killed < 20 {
        // The engines continue after each kill.
        let before = acknowledged_and_logged(folder.path()).0.len();
        let end = Instant::now() + TIMEOUT;
        while acknowledged_and_logged(folder.path()).0.len() < before + 100 {
            let output = &program.output;
            assert!(
                Instant::now() < end,
                "no engine works after {killed} kills: {output:?}"
            );
            thread::sleep(Duration::from_millis(1));
        }
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (_, engines) = engines(&program);
        if let Some(engine) = engines.get((draw >> 33) as usize % engines.len().max(1)) {
            kill(*engine, Signal::SIGKILL).expect("it runs");
            killed += 1;
            // Before the next kill: two deaths of one engine at once are one event.
            program.wait_for_any(&["replaced", "lost"]);
        }
    }
    // The last death is handled before the stop is requested.
    program.ask_to_end();
    let output = program.must_succeed();
    let (acknowledged, logged) = acknowledged_and_logged(folder.path());
    let expected: Vec<u32> = (0..logged.len() as u32).collect();
    assert_eq!(logged, expected, "{output:?}");
    let mut sorted = acknowledged.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(
        sorted.len(),
        acknowledged.len(),
        "a transfer was acknowledged twice"
    );
    assert!(acknowledged.iter().all(|it| (*it as usize) < logged.len()));
}

#[test]
fn the_bank_stops_in_order_in_both_modes() {
    for mode in ["threads", "processes"] {
        let folder = folder();
        let mut program = Program::start(&["bank", mode, "2"], folder.path());
        program.wait_for("ready");
        while acknowledged_and_logged(folder.path()).0.len() < 1000 {
            thread::sleep(Duration::from_millis(1));
        }
        program.ask_to_end();
        assert_eq!(program.must_succeed(), ["ready 1"]);
        let (acknowledged, logged) = acknowledged_and_logged(folder.path());
        assert_eq!(acknowledged.len(), logged.len());
    }
}

#[test]
fn a_death_without_a_latch_is_replaced() {
    let folder = folder();
    let mut program = Program::start(&["dies-free", "processes", "2"], folder.path());
    let line = program.wait_for("replaced");
    assert_eq!(line, "replaced 1: engine 1 was ended by SIGKILL");
    survived(folder.path());
    program.ask_to_end();
    let output = program.must_succeed();
    assert!(output.contains(&"closed 3 starts".to_owned()), "{output:?}");
}

#[test]
fn a_death_with_a_latch_starts_a_new_generation() {
    let folder = folder();
    let mut program = Program::start(&["dies-holding", "processes", "2"], folder.path());
    let line = program.wait_for("lost");
    let why = "engine 1 was ended by SIGKILL, and held latches: 1 of the latch";
    assert_eq!(line, format!("lost: {why}"));
    program.wait_for("ready 2");
    survived(folder.path());
    program.ask_to_end();
    program.must_succeed();
}

#[test]
fn a_panic_starts_a_new_generation_or_ends_the_threads() {
    let folder = folder();
    let mut program = Program::start(&["panics", "processes", "2"], folder.path());
    assert_eq!(program.wait_for("lost"), "lost: engine 1 panicked");
    program.wait_for("ready 2");
    program.ask_to_end();
    program.must_succeed();
    let error = Program::start(&["panics", "threads", "2"], folder.path()).must_fail();
    assert_eq!(error, "engine 1 panicked; standard error says where");
}

#[test]
fn a_panic_of_any_thread_is_one_of_its_engine_although_nobody_waits_for_it() {
    let folder = folder();
    let mut program = Program::start(&["thread-panics", "processes", "2"], folder.path());
    assert_eq!(program.wait_for("lost"), "lost: engine 1 panicked");
    program.wait_for("ready 2");
    program.ask_to_end();
    program.must_succeed();
    let error = Program::start(&["thread-panics", "threads", "2"], folder.path()).must_fail();
    assert!(error.starts_with("the thread helper panicked"), "{error}");
}

#[test]
fn an_engine_that_keeps_dying_is_not_started_for_ever() {
    let folder = folder();
    for fault in ["keeps-dying", "keeps-dying-free"] {
        let error = Program::start(&[fault, "processes", "2"], folder.path()).must_fail();
        let beginning = "the engines died 5 times in a row soon after their start; the last time: ";
        assert!(error.starts_with(beginning), "{error}");
    }
}

#[test]
fn a_failure_of_the_service_ends_all_with_its_message() {
    let folder = folder();
    for mode in ["threads", "processes"] {
        let error = Program::start(&["fails", mode, "3"], folder.path()).must_fail();
        assert_eq!(error, "the disk is full: make room");
        let error = Program::start(&["unopened", mode, "3"], folder.path()).must_fail();
        assert_eq!(error, "there is no such folder: name another one");
    }
}

#[test]
fn exhausted_memory_is_reported_with_the_remedy() {
    let folder = folder();
    let mut program = Program::start(&["exhausts", "processes", "2", "16"], folder.path());
    let line = program.wait_for("the shared memory");
    let text = "the shared memory of 16 MiB is exhausted (asked for 100000 bytes more): ";
    assert_eq!(line, format!("{text}raise --shared-memory"));
    let line = program.wait_for("lost");
    let end = "SIGABRT: the shared memory of 16 MiB is exhausted: raise --shared-memory";
    assert!(line.ends_with(end), "{line}");
    // The memory of a new generation is empty.
    program.wait_for("ready 2");
    program.ask_to_end();
    program.must_succeed();
}

#[test]
fn threads_before_a_fork_are_refused() {
    let folder = folder();
    let error = Program::start(&["thread-in-open", "processes", "2"], folder.path()).must_fail();
    assert!(error.contains("2 threads run where one must"), "{error}");
}

#[test]
fn engines_that_do_not_stop_are_killed() {
    let folder = folder();
    let mut program = Program::start(&["ignores-stop", "processes", "2"], folder.path());
    program.wait_for("ready");
    program.ask_to_end();
    let error = program.must_fail();
    assert_eq!(error, "the engines did not stop within 1 s and were killed");
}

#[test]
fn no_process_is_left_over_whichever_is_killed() {
    let folder = folder();
    let mut program = Program::start(&["bank", "processes", "3"], folder.path());
    program.wait_for("ready 1");
    let (generation, first) = engines(&program);
    kill(generation.expect("it is ready"), Signal::SIGKILL).expect("it runs");
    let line = program.wait_for("lost");
    let why = "the process that had forked them was ended by SIGKILL";
    assert_eq!(line, format!("lost: {why}"));
    program.wait_for("ready 2");
    let (generation, second) = engines(&program);
    assert_eq!((first.len(), second.len()), (3, 3));
    // The next generation was opened after the previous one had ended.
    assert!(first.iter().all(|it| !runs(*it)));
    kill(program.pid(), Signal::SIGKILL).expect("it runs");
    program.end();
    let end = Instant::now() + TIMEOUT;
    while second.iter().chain(&generation).any(|it| runs(*it)) {
        assert!(Instant::now() < end, "an engine outlives its supervisor");
        thread::sleep(Duration::from_millis(1));
    }
}

fn runs(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.contains("engines-under") && !stat.contains(") Z")
}

/// Waits until the engine that should survive has reported it.
fn survived(folder: &Path) {
    let end = Instant::now() + TIMEOUT;
    while !folder.join("survived").exists() {
        assert!(Instant::now() < end, "the engine did not come so far");
        thread::sleep(Duration::from_millis(1));
    }
}
