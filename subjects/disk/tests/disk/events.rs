//! The events of a simulation: they tell all that the disks do, and change nothing of it.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

const PROGRAM: &str = env!("CARGO_BIN_EXE_concurve-disk-under-test");

/// The lines of a simulation's events, each as its fields, and what the program printed.
fn told(words: &str) -> (Vec<HashMap<String, String>>, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new(PROGRAM)
        .args(words.split_whitespace())
        .arg("--events")
        .arg(file.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}: {said}");
    let text = fs::read_to_string(file.path()).unwrap();
    let lines = text.lines().map(fields).collect();
    (lines, String::from_utf8(output.stdout).unwrap())
}

/// The fields of a line: an object of numbers, words and truth values.
fn fields(line: &str) -> HashMap<String, String> {
    let inside = line.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    let pairs = inside
        .unwrap()
        .split(',')
        .map(|it| it.split_once(':').unwrap());
    pairs
        .map(|(name, value)| (name.replace('"', ""), value.replace('"', "")))
        .collect()
}

fn number(event: &HashMap<String, String>, name: &str) -> u64 {
    event[name].parse().unwrap()
}

const SCHEDULERS: [&str; 7] = [
    "noop",
    "deadline",
    "as",
    "cfq2",
    "cfq",
    "mq-deadline",
    "bfq",
];

#[test]
fn each_request_arrives_and_is_served_or_merged_once() {
    for scheduler in SCHEDULERS {
        let (events, _) = told(&format!(
            "streams --scheduler {scheduler} --disks 2 --layout stripe --sequential-readers 2 \
             --random-readers 2 --writers 2 --depth 4 --requests 60"
        ));
        assert_eq!(events[0]["event"], "disks");
        assert_eq!(number(&events[0], "disks"), 2);
        assert_eq!(events.last().unwrap()["event"], "end");
        let cylinders = number(&events[0], "cylinders");
        let mut waiting: HashMap<u64, String> = HashMap::new();
        let mut arm = HashMap::from([(0, (0, 0)), (1, (0, 0))]);
        let mut before = 0;
        for event in &events[1..] {
            let now = number(event, "at_ns");
            assert!(
                now >= before,
                "{scheduler}: events are in the order of time"
            );
            before = now;
            match event["event"].as_str() {
                "arrive" => {
                    let known = waiting.insert(number(event, "ticket"), event["process"].clone());
                    assert_eq!(known, None, "{scheduler}: a ticket is that of one request");
                    assert!(number(event, "cylinder") < cylinders);
                }
                "merge" => {
                    assert!(
                        waiting.remove(&number(event, "ticket")).is_some(),
                        "{scheduler}"
                    );
                    assert!(waiting.contains_key(&number(event, "into")), "{scheduler}");
                }
                "serve" => {
                    let process = waiting.remove(&number(event, "ticket"));
                    assert_eq!(process.as_ref(), Some(&event["process"]), "{scheduler}");
                    let (at, free) = arm[&number(event, "disk")];
                    assert_eq!(
                        number(event, "from"),
                        at,
                        "{scheduler}: the arm does not jump"
                    );
                    assert!(now >= free, "{scheduler}: the arm serves one at a time");
                    let there = (number(event, "to"), number(event, "end_ns"));
                    assert!(there.1 > now && there.0 < cylinders);
                    arm.insert(number(event, "disk"), there);
                }
                "end" => {}
                other => panic!("{other}"),
            }
        }
        assert!(waiting.is_empty(), "{scheduler}: all were served");
        let last = arm.values().map(|(_, free)| *free).max().unwrap();
        assert!(number(events.last().unwrap(), "at_ns") >= last);
    }
}

#[test]
fn what_is_told_changes_nothing() {
    let words = "streams --scheduler cfq --disks 1 --random-readers 3 --writers 2 --requests 200";
    let (_, with) = told(words);
    let without = Command::new(PROGRAM)
        .args(words.split_whitespace())
        .output()
        .unwrap();
    let figures = |text: &str| {
        let lines = text
            .lines()
            .filter(|line| !line.starts_with("simulated in"));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let without = String::from_utf8(without.stdout).unwrap();
    assert_eq!(figures(&with), figures(&without));
}

#[test]
fn writes_of_a_cache_are_done_before_they_are_written() {
    let (events, _) = told(
        "streams --scheduler deadline --disks 1 --writers 1 --write-cache-kib 1024 --requests 40",
    );
    let count = |name: &str| events.iter().filter(|it| it["event"] == name).count();
    assert!(count("cache") > 0);
    let served = events.iter().filter(|it| it["event"] == "serve");
    assert!(served.clone().count() > 0);
    assert!(served.clone().all(|it| it["reported"] == "true"));
}

#[test]
fn output_that_cannot_be_written_is_an_error() {
    let output = Command::new(PROGRAM)
        .args("streams --disks 1 --random-readers 1 --requests 10".split(' '))
        .stdout(fs::File::create("/dev/full").unwrap())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("standard output: No space left"), "{said}");
}

#[test]
fn a_file_that_cannot_be_written_is_refused() {
    let output = Command::new(PROGRAM)
        .args([
            "streams",
            "--random-readers",
            "1",
            "--events",
            "/no/such/folder/events",
        ])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        said.contains("/no/such/folder/events") && said.contains("--events"),
        "{said}"
    );
}
