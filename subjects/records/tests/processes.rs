//! Sessions in processes that share one engine: they are isolated from each other, and whichever of
//! them is killed, what was committed is there and nobody waits for what a dead one held.
//!
//! A program of its own: its services fork, and their heap is shared.

mod common;
#[path = "common/program.rs"]
mod program;
#[path = "common/services.rs"]
mod services;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

use common::history::cycle;
use common::{audit, make_bank, options};
use concurve_engines::memory::SharedAllocator;
use concurve_records::{Durability, Engine, Latching};
use program::{FOLDER, Program, SERVICE};
use services::{CLIENTS, ENGINES, HISTORY, PROMISED, histories, promised};

#[global_allocator]
static ALLOCATOR: SharedAllocator = SharedAllocator;

const KILLS: usize = 12;

fn main() -> ExitCode {
    if let (Ok(service), Some(folder)) = (std::env::var(SERVICE), std::env::var_os(FOLDER)) {
        return services::serve(&service, Path::new(&folder));
    }
    let tests: [(&str, fn()); 4] = [
        (
            "transactions_of_processes_have_a_serial_order",
            transactions_of_processes_have_a_serial_order,
        ),
        (
            "they_have_one_when_processes_are_killed",
            they_have_one_when_processes_are_killed,
        ),
        (
            "what_was_promised_is_there_whoever_is_killed",
            what_was_promised_is_there_whoever_is_killed,
        ),
        (
            "locks_of_a_dead_process_are_given_back",
            locks_of_a_dead_process_are_given_back,
        ),
    ];
    let wanted = std::env::args().nth(1).filter(|it| !it.starts_with('-'));
    for (name, test) in tests {
        if wanted.as_ref().is_none_or(|it| name.contains(it.as_str())) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

/// Places in files where something is found of all clients' doings.
fn bytes(folder: &Path, name: &str) -> u64 {
    fs::metadata(folder.join(name)).map_or(0, |it| it.len())
}

/// Kills engines, and lets them work in between.
fn kill_some(program: &mut Program, folder: &Path, file: &str) -> usize {
    let (mut killed, mut draw) = (0, 1_u64);
    while killed < KILLS {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (before, more) = (bytes(folder, file), 1 + (draw >> 40) % 2000);
        program.wait_until(|| bytes(folder, file) >= before + more);
        killed += usize::from(program.kill_one((draw >> 33) as usize));
    }
    // They go on after the last one, too.
    let before = bytes(folder, file);
    program.wait_until(|| bytes(folder, file) > before);
    killed
}

/// Nothing but being killed is a reason to begin anew.
fn must_be_kills(said: &[String]) {
    let deaths = said.iter().filter(|it| !it.starts_with("ready"));
    for line in deaths {
        let is_kill = line.contains("SIGKILL") || line.contains("exited, because it waited");
        assert!(is_kill, "{line:?} in {said:#?}");
    }
}

fn transactions_of_processes_have_a_serial_order() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start("history", folder.path());
    program.wait_until(|| histories(folder.path()).len() > 2000);
    assert_eq!(program.end(), ["ready 1"]);
    let history = histories(folder.path());
    assert_eq!(cycle(&history), None, "{history:?}");
}

fn they_have_one_when_processes_are_killed() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start("history", folder.path());
    kill_some(&mut program, folder.path(), HISTORY);
    must_be_kills(&program.end());
    let history = histories(folder.path());
    assert_eq!(cycle(&history), None, "{history:?}");
}

fn what_was_promised_is_there_whoever_is_killed() {
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
        kill_some(&mut program, folder.path(), PROMISED);
        must_be_kills(&program.end());
        let (engine, recovered) = Engine::open(folder.path(), options).unwrap();
        assert_eq!(recovered.records, 0, "it was closed in order");
        services::check(&engine, folder.path());
        let clients: BTreeMap<_, _> = audit(&engine).into_iter().collect();
        assert_eq!(clients.len() as u32, ENGINES * CLIENTS);
        let told: usize = promised(folder.path()).values().map(|it| it.len()).sum();
        let found: usize = clients.values().map(Vec::len).sum();
        // Each kill may come between a commit and its telling, for each client.
        let untold = KILLS * (ENGINES * CLIENTS) as usize;
        assert!((told..=told + untold).contains(&found), "{told}, {found}");
    }
}

fn locks_of_a_dead_process_are_given_back() {
    // Threads wake now and then to look around, and one may be killed with a latch: then it is no test.
    let replaced = (0..10).any(|_| is_replaced_and_inherited());
    assert!(replaced, "an idle engine always held a latch");
}

fn is_replaced_and_inherited() -> bool {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start("heir", folder.path());
    let content = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap_or_default();
    program.wait_until(|| !content("asks").is_empty());
    assert!(program.kill_process(content("holds").parse().unwrap()));
    if program.wait_for(&["replaced", "lost"]).starts_with("lost") {
        return false;
    }
    program.wait_until(|| !content("got").is_empty());
    assert_eq!(content("got"), "0", "the balance that nobody had committed");
    assert!(
        program
            .end()
            .contains(&"replaced 1: engine 1 was ended by SIGKILL".to_owned())
    );
    true
}
