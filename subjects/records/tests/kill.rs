//! A process that is killed in the middle of its work, many times: what it acknowledged is there.

mod common;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use common::{LATCHINGS, Teller, audit, make_bank, options};
use concurve_records::{Durability, Engine};

const FOLDER: &str = "CONCURVE_RECORDS_TEST_FOLDER";
const SETTING: &str = "CONCURVE_RECORDS_TEST_SETTING";
const KILLS: usize = 50;
const CLIENTS: u32 = 4;
const DURABILITIES: [Durability; 3] = [Durability::None, Durability::Group, Durability::Each];

fn open(folder: &Path, setting: usize) -> Engine {
    let options = options(LATCHINGS[setting % 3], DURABILITIES[setting / 3 % 3]);
    Engine::open(folder, options).unwrap().0
}

/// What the killed process does: it tells each acknowledged transaction by a line.
#[test]
#[ignore = "started by the other test"]
fn works_until_it_is_killed() {
    let Some(folder) = std::env::var_os(FOLDER) else {
        return;
    };
    let setting = std::env::var(SETTING).unwrap().parse().unwrap();
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
                    // The test harness does not see it, and a line is written whole.
                    std::io::stderr().write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
}

fn start(folder: &Path, setting: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "works_until_it_is_killed", "--ignored"])
        .args(["--nocapture"])
        .env(FOLDER, folder)
        .env(SETTING, setting.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

#[test]
fn what_a_killed_process_acknowledged_is_there() {
    let folder = tempfile::tempdir().unwrap();
    {
        let engine = open(folder.path(), 0);
        make_bank(&engine);
    }
    let mut told = BTreeMap::new();
    for kill in 0..KILLS {
        let mut child = start(folder.path(), kill);
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        // Killed after another number of transactions each time; those on the way count as well.
        for _ in 0..1 + kill * 37 % 80 {
            note(
                &lines.next().expect("it works until it is killed"),
                &mut told,
            );
        }
        child.kill().unwrap();
        child.wait().unwrap();
        lines.for_each(|line| note(&line, &mut told));
        let engine = open(folder.path(), kill + 1);
        let mut found = BTreeMap::new();
        for (client, numbers) in audit(&engine) {
            let count = numbers.len() as u32;
            assert_eq!(numbers, (0..count).collect::<Vec<_>>(), "kill {kill}");
            let told = told.get(&client).map_or(0, |last| last + 1);
            assert!(count >= told, "kill {kill}: told {told}, found {count}");
            // One was on its way to be told, in each life of the process.
            assert!(count <= told + 1, "kill {kill}: told {told}, found {count}");
            found.insert(client, count - 1);
        }
        told = found;
    }
}

fn note(line: &std::io::Result<String>, told: &mut BTreeMap<u32, u32>) {
    let line = line.as_ref().unwrap();
    let mut words = line.split(' ');
    assert_eq!(words.next(), Some("done"), "{line}");
    let mut number = || words.next().unwrap().parse().unwrap();
    let (client, number) = (number(), number());
    told.insert(client, number);
}
