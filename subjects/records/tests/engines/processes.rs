//! Sessions in processes that share one engine: they are isolated from each other. Whichever
//! process is killed, no committed transaction is lost, and no session waits for locks of a dead
//! one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use concurve_records::{Durability, Engine, Latching};

use crate::common::history::cycle;
use crate::common::{audit, make_bank, options};
use crate::program::Program;
use crate::services::{self, ACKNOWLEDGED, CLIENTS, ENGINES, HISTORY, acknowledged, histories};

const KILLS: usize = 12;
const READERS_KILLED: usize = 20;

/// The length of a file of the clients' notes.
fn bytes(folder: &Path, name: &str) -> u64 {
    fs::metadata(folder.join(name)).map_or(0, |it| it.len())
}

/// Kills engines, and lets them work between two kills.
fn kill_some(program: &mut Program, folder: &Path, file: &str) -> usize {
    let (mut killed, mut draw) = (0, 1_u64);
    while killed < KILLS {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (before, more) = (bytes(folder, file), 1 + (draw >> 40) % 2000);
        program.wait_until(|| bytes(folder, file) >= before + more);
        killed += usize::from(program.kill_one((draw >> 33) as usize));
    }
    // They continue after the last kill, too.
    let before = bytes(folder, file);
    program.wait_until(|| bytes(folder, file) > before);
    killed
}

/// Only a kill may be a reason for a new generation.
fn must_be_kills(output: &[String]) {
    let deaths = output.iter().filter(|it| !it.starts_with("ready"));
    for line in deaths {
        let is_kill = line.contains("SIGKILL") || line.contains("exited, because it waited");
        assert!(is_kill, "{line:?} in {output:#?}");
    }
}

pub fn transactions_of_processes_have_a_serial_order() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start("history", folder.path());
    program.wait_until(|| histories(folder.path()).len() > 2000);
    assert_eq!(program.end(), ["ready 1"]);
    let history = histories(folder.path());
    assert_eq!(cycle(&history), None, "{history:?}");
}

pub fn killed_processes_leave_a_serial_order() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start("history", folder.path());
    kill_some(&mut program, folder.path(), HISTORY);
    must_be_kills(&program.end());
    let history = histories(folder.path());
    assert_eq!(cycle(&history), None, "{history:?}");
}

pub fn no_acknowledged_transaction_is_lost_whichever_process_is_killed() {
    let durabilities = [
        ("bank none", Durability::None),
        ("bank group", Durability::Group),
    ];
    for (service, durability) in durabilities {
        let folder = tempfile::tempdir().unwrap();
        let options = options(Latching::Record, durability);
        {
            let (engine, _) = Engine::open(folder.path(), options.clone()).unwrap();
            make_bank(&engine);
        }
        let mut program = Program::start(service, folder.path());
        kill_some(&mut program, folder.path(), ACKNOWLEDGED);
        must_be_kills(&program.end());
        let (engine, recovered) = Engine::open(folder.path(), options).unwrap();
        assert_eq!(recovered.records, 0, "it was closed in order");
        services::check(&engine, folder.path());
        let clients: BTreeMap<_, _> = audit(&engine).into_iter().collect();
        assert_eq!(clients.len() as u32, ENGINES * CLIENTS);
        let acknowledged: usize = acknowledged(folder.path())
            .values()
            .map(|it| it.len())
            .sum();
        let found: usize = clients.values().map(Vec::len).sum();
        // Each kill may happen between a commit and its acknowledgement, for each client.
        let unacknowledged = KILLS * (ENGINES * CLIENTS) as usize;
        assert!(
            (acknowledged..=acknowledged + unacknowledged).contains(&found),
            "{acknowledged}, {found}"
        );
    }
}

pub fn a_process_that_is_killed_while_it_reads_has_held_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start("reader", folder.path());
    let reader = || fs::read_to_string(folder.path().join("reads")).unwrap_or_default();
    let mut last = String::new();
    for _ in 0..READERS_KILLED {
        program.wait_until(|| reader() != last);
        last = reader();
        assert!(program.kill_process(last.parse().unwrap()));
        let line = program.wait_for(&["replaced", "lost"]);
        assert!(line.starts_with("replaced 2"), "{line}");
    }
    program.wait_until(|| reader() != last);
    program.end();
}

pub fn locks_of_a_dead_process_are_released() {
    // Waiting threads wake now and then, and a file of the log that was just begun is named under a latch, which
    // takes as long as the disk. If one is killed while it holds a latch, the case is repeated, a little later.
    let replaced =
        (0..12).any(|attempt| is_replaced_and_inherited(Duration::from_millis(1 << attempt)));
    assert!(replaced, "an idle engine always held a latch");
}

fn is_replaced_and_inherited(later: Duration) -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start("successor", folder.path());
    let content = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    program.wait_until(|| !content("asks").is_empty());
    thread::sleep(later);
    assert!(program.kill_process(content("holds").parse().unwrap()));
    if program.wait_for(&["replaced", "lost"]).starts_with("lost") {
        return false;
    }
    program.wait_until(|| !content("got").is_empty());
    assert_eq!(
        content("got"),
        "0",
        "the balance without the uncommitted change"
    );
    assert!(
        program
            .end()
            .contains(&"replaced 1: engine 1 was ended by SIGKILL".to_owned())
    );
    true
}
