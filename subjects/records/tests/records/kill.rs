//! A process that is killed many times while it works: no acknowledged transaction is lost.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use concurve_records::{Durability, Engine};

use crate::common::{LATCHINGS, Teller, audit, make_bank, options};

const FOLDER: &str = "CONCURVE_RECORDS_TEST_FOLDER";
const OPTIONS: &str = "CONCURVE_RECORDS_TEST_OPTIONS";
const KILLS: usize = 50;
const CLIENTS: u32 = 4;
const DURABILITIES: [Durability; 3] = [Durability::None, Durability::Group, Durability::Each];

fn open(folder: &Path, setting: usize) -> Engine {
    let options = options(LATCHINGS[setting % 3], DURABILITIES[setting / 3 % 3]);
    Engine::open(folder, options).unwrap().0
}

/// The killed process: it prints a line for each acknowledged transaction.
#[test]
#[ignore = "started by the other test"]
fn works_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let setting = std::env::var(OPTIONS).unwrap().parse().unwrap();
    let engine = open(Path::new(&folder), setting);
    let next: BTreeMap<u32, u32> = audit(&engine)
        .into_iter()
        .map(|(client, numbers)| (client, numbers.len() as u32))
        .collect();
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let mut teller = Teller::new(&engine, client).unwrap();
            teller.next = next.get(&client).copied().unwrap_or(0);
            scope.spawn(move || {
                loop {
                    teller.transact().unwrap();
                    let line = format!("done {client} {}\n", teller.next - 1);
                    // Not captured by the test harness; a line is written at once.
                    std::io::stderr().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

fn start(folder: &Path, setting: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "kill::works_until_it_is_killed", "--ignored"])
        .args(["--nocapture"])
        .env(FOLDER, folder)
        .env(OPTIONS, setting.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn nothing_that_a_killed_process_acknowledged_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    {
        let engine = open(folder.path(), 0);
        make_bank(&engine);
    }
    let mut acknowledged = BTreeMap::new();
    for kill in 0..KILLS {
        let mut child = start(folder.path(), kill);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Killed after a different number of transactions each time.
        for _ in 0..1 + kill * 37 % 80 {
            note(
                &lines.next().expect("it works until it is killed"),
                &mut acknowledged,
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(|line| note(&line, &mut acknowledged));
        let engine = open(folder.path(), kill + 1);
        let mut found = BTreeMap::new();
        for (client, numbers) in audit(&engine) {
            let count = numbers.len() as u32;
            assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "kill {kill}");
            let acknowledged = acknowledged.get(&client).map_or(0, |last| last + 1);
            assert!(
                count >= acknowledged,
                "kill {kill}: {acknowledged} acknowledged, found {count}"
            );
            // In each process, one may have committed without being acknowledged.
            assert!(
                count <= acknowledged + 1,
                "kill {kill}: {acknowledged} acknowledged, found {count}"
            );
            found.insert(client, count - 1);
        }
        acknowledged = found;
    }
}

fn note(line: &std::io::Result<String>, acknowledged: &mut BTreeMap<u32, u32>) {
    let line = line.as_ref().unwrap();
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("done"), "{line}");
    let mut number = || words.next().unwrap().parse().unwrap();
    let (client, number) = (number(), number());
    acknowledged.insert(client, number);
}
