//! Records of the log, and statements of clients, with any contents. Pages, and small files with a checksum
//! of their own, are in `hostile_pages.rs`.

use std::sync::Arc;

use concurve_fuzz::Target;
use concurve_records::command::{Client, Command};
use concurve_records::log::record::{FRAME, Record, SlotChange, add, lsn_of, read, seal, set_lsn};
use concurve_records::page::{PAGE_BYTES, PageId};
use concurve_records::{Engine, EngineOptions, Waiting};

use crate::simulated::Simulated;

/// Frames of the log, with one record and with all of them.
fn log() -> Vec<Vec<u8>> {
    let id = PageId { file: 1, number: 7 };
    let image = [3; PAGE_BYTES];
    // A change of slot 4 of that page by transaction 9.
    let change = |before: &[u8], after: &[u8]| {
        let mut body = vec![2];
        body.extend(9_u64.to_le_bytes());
        body.extend(id.file.to_le_bytes());
        body.extend(id.number.to_le_bytes());
        body.extend([4, 0, 1, 2, 12, 0]);
        for text in [before, after] {
            body.extend((text.len() as u16).to_le_bytes());
            body.extend_from_slice(text);
        }
        body
    };
    let bodies = [change(b"before", b"after"), change(b"", b"x")];
    let changes = bodies.iter().map(|it| Record::decode(it).unwrap());
    let others = [
        Record::Format(id),
        Record::EntryIn(id, 3, b"entry"),
        Record::EntryOut(id, 3, 5),
        Record::Images(vec![(id, &image[..])]),
        Record::Commit {
            transaction: 9,
            needs_purge: true,
        },
        Record::Finished { transaction: 9 },
        Record::Forced { before: 100 },
    ];
    let records: Vec<Record> = changes.chain(others).collect();
    let frame = |records: &[Record]| {
        let mut frame = Vec::new();
        records.iter().for_each(|it| add(it, &mut frame));
        seal(&mut frame);
        frame
    };
    let with_one = records.chunks(1);
    with_one.chain([&records[..]]).map(frame).collect()
}

/// The body of a record that is read is the body that is written.
fn comes_out_as_it_went_in(record: &Record) {
    let mut body = Vec::new();
    record.encode(&mut body);
    assert_eq!(Record::decode(&body).as_ref(), Some(record));
    if let Record::Slot(SlotChange { file, position, .. }) = record {
        let expected = PageId {
            file: *file,
            number: position.page,
        };
        assert_eq!(record.pages()[..], [expected]);
    }
}

#[test]
fn log_records_of_any_contents() {
    let corpus = log();
    Target::new(env!("CARGO_PKG_NAME"), "log_records_of_any", &corpus)
        .bytes_max(2 * PAGE_BYTES)
        .cases(5000)
        .run(|input, draw| {
            let mut input = input.to_vec();
            // Often with a checksum, a length and an LSN that are right.
            if draw.below(4) > 0 && input.len() >= FRAME {
                seal(&mut input);
                set_lsn(&mut input, draw.number());
            }
            let lsn = lsn_of(&input).unwrap_or(0);
            if let Some(frame) = read(&input, lsn) {
                assert!(frame.bytes() <= input.len());
                let records = frame.records().inspect(|it| comes_out_as_it_went_in(&it.0));
                assert!(records.count() > 0);
            }
            if let Some(record) = input.get(FRAME..).and_then(Record::decode) {
                comes_out_as_it_went_in(&record);
            }
        });
}

/// Statements of a client, of which each line is one.
const SCRIPTS: [&str; 4] = [
    "CREATE made 24 KEY 0:12:text\nINSERT made 000000000042-00000000007\nGET EQUAL made 0 000000000042 SINGLE \
     FIELD 12 12\nUPDATE made 000000000042000000000100\nSTAT made\nSUM made 12 12\nDROP m*",
    "BEGIN EXCLUSIVE\nGET FIRST f 0\nGET NEXT f COUNT 7\nGET PREVIOUS f MULTIPLE NOWAIT\nDELETE f\nCOUNT f\nEND",
    "BEGIN\nINSERT f 000000000999000000000000\nGET ATMOST f 0 000000000999 FIELD 12 12\nPOSITION f\nABORT\n\
     UNLOCK f\nFILES m\nCHECKPOINT",
    "CREATE other 30 KEY 0:12:text,12:4:unsigned DUPLICATES KEY 16:8:integer\nCOMPARE f 12 12 BY 0 12 WITH f 12 12 \
     BY 0 12\nFILL other 1 5 000000000000000000\nOPEN f",
];
/// A client may ask for as many as it likes, and waits for them.
const FILLED_MAX: u64 = 1000;

/// Runs a script with a client that parks, on an engine that has a file.
fn serve(script: &[u8]) {
    let options = EngineOptions {
        cache_pages: 64,
        checkpoint_bytes: 1 << 18,
        ..EngineOptions::default()
    };
    let (engine, _) = Engine::open_shared_in(Arc::new(Simulated::new()), options).unwrap();
    let mut session = engine.session();
    session.set_waiting(Waiting::Parks(Arc::new(|| ())));
    let mut client = Client::new(session);
    let first = b"CREATE f 24 KEY 0:12:text\nFILL f 1 50 000000000000\n";
    for line in first
        .split(|it| *it == b'\n')
        .chain(script.split(|it| *it == b'\n'))
    {
        let words = line.split(u8::is_ascii_whitespace);
        let words: Vec<&[u8]> = words.filter(|it| !it.is_empty()).collect();
        let Ok(command) = Command::parse(&words[..]) else {
            continue;
        };
        match command {
            Command::Fill { first, last, .. } if last.saturating_sub(first) > FILLED_MAX => {}
            command => drop(client.execute(&command, &words[..])),
        }
    }
    assert_eq!(engine.failure(), None);
    drop(client);
    engine.verify().unwrap();
}

#[test]
fn statements_of_any_contents() {
    let corpus = SCRIPTS.map(|it| it.as_bytes().to_vec());
    let words: [&[u8]; 14] = [
        b" ",
        b"\n",
        b" KEY ",
        b"0:12:text",
        b" 0 ",
        b" FIELD 18446744073709551615 12",
        b" COUNT 10000",
        b" COUNT 10001",
        b"f",
        b"-1",
        b"65536",
        b" SINGLE",
        b"*",
        b"BY",
    ];
    Target::new(env!("CARGO_PKG_NAME"), "statements_of_any", &corpus)
        .words(&words)
        .bytes_max(1000)
        .memory_max(16 << 20)
        .cases(500)
        .run(|input, _| serve(input));
}
