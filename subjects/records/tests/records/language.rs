//! The record language: operations on records and files, counts and sums, errors.

use concurve_records::command::{Client, Command, Reply};
use concurve_records::{Engine, EngineOptions};

fn options() -> EngineOptions {
    EngineOptions {
        cache_pages: 64,
        checkpoint_bytes: 1 << 20,
        ..EngineOptions::default()
    }
}

/// The reply to a statement, in short.
fn run(client: &mut Client, text: &str) -> String {
    let words: Vec<&[u8]> = text.split(' ').map(str::as_bytes).collect();
    let answered = Command::parse(&words[..]).and_then(|command| {
        Ok(match client.execute(&command, &words[..])? {
            Reply::Done | Reply::Unconfirmed => "OK".to_owned(),
            Reply::Record(record)
            | Reply::Many {
                records: record, ..
            } => String::from_utf8_lossy(record).into_owned(),
            Reply::Field(_, number) | Reply::Number(number) => number.to_string(),
            Reply::Figures(figures) => format!("{figures:?}"),
        })
    });
    answered.unwrap_or_else(|refusal| refusal.word().to_owned())
}

fn all(client: &mut Client, statements: &[(&str, &str)]) {
    for (statement, expected) in statements {
        assert_eq!(run(client, statement), *expected, "{statement}");
    }
}

const MAKE: &str = "CREATE f 8 KEY 0:4:text KEY 4:4:text DUPLICATES";

#[test]
fn records_are_inserted_found_changed_and_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = Engine::open(folder.path(), options()).unwrap();
    let mut client = Client::new(engine.session());
    all(
        &mut client,
        &[
            ("OPEN f", "FILENOTFOUND"),
            (MAKE, "OK"),
            (MAKE, "FILEEXISTS"),
            ("CREATE g 0", "ERR"),
            ("CREATE g/h 8 KEY 0:4:text", "ERR"),
            ("INSERT f 00010007", "OK"),
            ("INSERT f 00020005", "OK"),
            ("INSERT f 0003-001", "OK"),
            ("INSERT f 00010009", "DUPLICATEKEY"),
            ("INSERT f 0001", "RECORDLENGTH"),
            ("GET EQUAL f 0 0002", "00020005"),
            ("GET EQUAL f 0 0002 FIELD 4 4", "5"),
            ("GET EQUAL f 0 0002 FIELD 5 4", "ERR"),
            ("GET EQUAL f 0 2", "KEYLENGTH"),
            ("GET EQUAL f 0 0009", "KEYNOTFOUND"),
            ("GET EQUAL f 7 0002", "INVALIDKEYNUMBER"),
            ("GET FIRST f 1 FIELD 4 4", "-1"),
            ("GET NEXT f COUNT 5", "0002000500010007"),
            ("GET NEXT f", "ENDOFFILE"),
            ("GET NEXT f COUNT 5", "ENDOFFILE"),
            ("COUNT f", "3"),
            ("SUM f 4 4", "11"),
            ("SUM f 6 4", "ERR"),
            ("DELETE f", "OK"),
            ("SUM f 4 4", "4"),
            ("DELETE f", "INVALIDPOSITION"),
            ("END", "NOTRANSACTION"),
            ("BEGIN EXCLUSIVE", "OK"),
            ("BEGIN", "TRANSACTIONACTIVE"),
            ("DROP f", "TRANSACTIONACTIVE"),
            ("GET LAST f 0 MULTIPLE", "0003-001"),
            ("UPDATE f 00030100", "OK"),
            ("SUM f 4 4", "105"),
            ("ABORT", "OK"),
            ("SUM f 4 4", "4"),
            ("FILES f", "1"),
            ("FILES x", "0"),
            ("CHECKPOINT", "OK"),
            (
                "STAT f",
                "[(\"record_bytes\", 8), (\"keys\", 2), (\"pages\", 4), (\"records\", 2)]",
            ),
        ],
    );
    engine.verify().unwrap();
}

#[test]
fn a_file_may_have_no_key() {
    let folder = tempfile::tempdir().unwrap();
    {
        let (engine, _) = Engine::open(folder.path(), options()).unwrap();
        let mut client = Client::new(engine.session());
        all(
            &mut client,
            &[
                ("CREATE h 8", "OK"),
                ("INSERT h 00010007", "OK"),
                ("INSERT h 00010007", "OK"),
                ("GET FIRST h 0", "INVALIDKEYNUMBER"),
                ("BEGIN", "OK"),
                ("INSERT h 00010007", "OK"),
                ("COUNT h", "3"),
                ("ABORT", "OK"),
                ("BEGIN", "OK"),
                ("INSERT h 00010001", "OK"),
            ],
        );
        // Still open when the engine ends.
    }
    let (engine, recovered) = Engine::open(folder.path(), options()).unwrap();
    assert!(recovered.records > 0);
    engine.verify().unwrap();
    let mut client = Client::new(engine.session());
    all(&mut client, &[("COUNT h", "2"), ("SUM h 4 4", "14")]);
}

#[test]
fn sums_by_groups_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = Engine::open(folder.path(), options()).unwrap();
    let mut client = Client::new(engine.session());
    let compare = "COMPARE b 4 4 BY 0 4 WITH t 8 4 BY 4 4";
    all(
        &mut client,
        &[
            ("CREATE b 8 KEY 0:4:text", "OK"),
            ("CREATE t 12 KEY 0:4:text", "OK"),
            ("INSERT b 00010007", "OK"),
            ("INSERT b 00020000", "OK"),
            ("INSERT t 000100010003", "OK"),
            ("INSERT t 000200010004", "OK"),
            (compare, "0"),
            ("COMPARE b 4 4 WITH t 8 4", "0"),
            ("INSERT t 000300020001", "OK"),
            ("COMPARE b 4 4 WITH t 8 4", "1"),
            (compare, "1"),
            ("INSERT t 000400090001", "OK"),
            (compare, "2"),
            ("INSERT t 00050009-001", "OK"),
            (compare, "1"),
        ],
    );
}

#[test]
fn a_range_is_filled_completely_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = Engine::open(folder.path(), options()).unwrap();
    let mut client = Client::new(engine.session());
    all(
        &mut client,
        &[
            ("CREATE f 16 KEY 0:12:text", "OK"),
            ("FILL f 1 1000 0007", "OK"),
            ("COUNT f", "1000"),
            ("SUM f 12 4", "7000"),
            ("FILL f 1001 1002 7", "RECORDLENGTH"),
            ("FILL f 999 2000 0001", "DUPLICATEKEY"),
            ("FILL f 500 0 0001", "OK"),
            ("BEGIN", "OK"),
            ("FILL f 1001 2000 0001", "TRANSACTIONACTIVE"),
            ("END", "OK"),
            ("SUM f 12 4", "7000"),
            ("GET LAST f 0", "0000000010000007"),
        ],
    );
    assert_eq!(engine.locks(), 0);
}

#[test]
fn a_file_is_dropped_and_another_one_gets_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let fill = |client: &mut Client, from: usize| {
        run(client, "BEGIN");
        for number in from..from + 3000 {
            assert_eq!(
                run(client, &format!("INSERT f {number:04}{number:04}")),
                "OK"
            );
        }
        run(client, "END");
    };
    {
        let (engine, _) = Engine::open(folder.path(), options()).unwrap();
        let [mut one, mut other] = [0, 1].map(|_| Client::new(engine.session()));
        run(&mut one, MAKE);
        fill(&mut one, 0);
        all(
            &mut other,
            &[("BEGIN", "OK"), ("GET FIRST f 0", "00000000")],
        );
        assert_eq!(run(&mut one, "DROP f"), "FILEINUSE");
        run(&mut other, "END");
        all(
            &mut one,
            &[
                ("DROP f", "1"),
                ("DROP f", "FILENOTFOUND"),
                ("DROP f*", "0"),
                ("GET FIRST f 0", "FILENOTFOUND"),
                (MAKE, "OK"),
            ],
        );
        fill(&mut one, 3000);
        assert_eq!(run(&mut other, "GET FIRST f 0"), "30003000", "the new one");
        engine.verify().unwrap();
        // Not closed: the log refers to both.
    }
    for _ in 0..2 {
        let (engine, _) = Engine::open(folder.path(), options()).unwrap();
        engine.verify().unwrap();
        let mut client = Client::new(engine.session());
        all(
            &mut client,
            &[
                ("COUNT f", "3000"),
                ("GET FIRST f 0", "30003000"),
                ("FILES f", "1"),
            ],
        );
        assert_eq!(engine.files().len(), 1);
        let gone = std::fs::metadata(folder.path().join("gone-00000000")).unwrap();
        assert_eq!(gone.len(), 3 * 8192, "its pages were freed");
    }
    // While the engine runs, once no log is needed that refers to the file.
    let (engine, _) = Engine::open(folder.path(), options()).unwrap();
    let (mut one, mut other) = (Client::new(engine.session()), Client::new(engine.session()));
    run(&mut other, &MAKE.replace(" f ", " g "));
    all(&mut other, &[("BEGIN", "OK"), ("INSERT g 00010001", "OK")]);
    assert_eq!(run(&mut one, "DROP f"), "1");
    let pages = || {
        engine.checkpoint().unwrap();
        let gone = std::fs::metadata(folder.path().join("gone-00000001")).unwrap();
        gone.len() / 8192
    };
    assert!(pages() > 3, "an older transaction needs the log");
    assert_eq!(run(&mut other, "END"), "OK");
    assert_eq!(pages(), 3);
    engine.verify().unwrap();
}
