//! Backup files with any contents, and each kind of damage at many places.

use std::panic::catch_unwind;

use concurve_fuzz::{Draw, Target};

use super::*;

const BOOT: u64 = 7;

/// A file of a server that was killed: some locks are held twice, some no longer.
fn file() -> Vec<u8> {
    let mut records = Vec::new();
    for number in 0..40_u32 {
        let argument = format!("argument {}", number % 25);
        let record = Record {
            count: number % 3,
            mode: Mode::Exclusive,
            table: b"table",
            argument: argument.as_bytes(),
            owner: if number % 2 == 0 {
                b"one"
            } else {
                b"another owner"
            },
        };
        encode(&record, &mut records);
    }
    let begin = HEADER.len() + Mark::BYTES;
    let mark = Mark {
        end: (begin + records.len()) as u64,
        boot: BOOT,
    };
    [HEADER, &mark.encode(), &records].concat()
}

fn read(bytes: &[u8]) -> Result<Read, BackupError> {
    HeldLocks::read(bytes, Path::new("locks"), BOOT)
}

/// What is held, in an order.
fn held(read: &Read) -> Vec<(Vec<u8>, u32)> {
    let mut held: Vec<_> = read
        .held
        .records()
        .map(|it| ([it.argument, it.owner].concat(), it.count))
        .collect();
    held.sort();
    held
}

#[test]
fn any_contents_are_read_or_refused() {
    let whole = file();
    let mut of_format_1 = HEADER_OF_FORMAT_1.to_vec();
    of_format_1.extend_from_slice(&whole[HEADER.len() + Mark::BYTES..]);
    let corpus = [whole, of_format_1, HEADER.to_vec()];
    Target::new(
        env!("CARGO_PKG_NAME"),
        "backup::held::tests::any_contents",
        &corpus,
    )
    .words(&[HEADER, HEADER_OF_FORMAT_1, b"E", b"\0\0\0\0"])
    .cases(1000)
    .run(|input, _| {
        if let Ok(read) = read(input) {
            assert!(read.length <= input.len() as u64);
            held(&read);
        }
    });
}

/// All single damages of a file that a kill left: all that was acknowledged is there, or the refusal says
/// in which file and where.
#[test]
fn no_single_damage_loses_a_lock_silently() {
    let whole = file();
    let expected = held(&read(&whole).unwrap());
    let mut draw = Draw::new(1);
    let mut damages: Vec<(String, Vec<u8>)> = Vec::new();
    let mut add = |what: String, bytes: Vec<u8>| damages.push((what, bytes));
    add("twice".to_owned(), [&whole[..], &whole].concat());
    for at in 0..whole.len() {
        let changed = |to: u8| {
            let mut bytes = whole.clone();
            bytes[at] = to;
            bytes
        };
        add(
            format!("{at} flipped"),
            changed(whole[at] ^ 1 << draw.below(8)),
        );
        add(
            format!("{at} changed"),
            changed(whole[at] ^ (1 + draw.below(255)) as u8),
        );
        add(format!("{at} zeroed"), changed(0));
        add(format!("cut at {at}"), whole[..at].to_vec());
        let many = (1 + draw.below(100)).min(whole.len() - at);
        let part = whole[at..at + many].to_vec();
        let mut bytes = whole.clone();
        bytes[at..at + many].fill(0);
        add(format!("{many} from {at} zeroed"), bytes);
        let mut bytes = whole.clone();
        drop(bytes.splice(at..at, part));
        add(format!("{many} from {at} doubled"), bytes);
        let mut bytes = whole.clone();
        drop(bytes.drain(at..at + many));
        add(format!("{many} from {at} deleted"), bytes);
    }
    let (mut refused, mut unharmed) = (0, 0);
    for (what, bytes) in &damages {
        let outcome = catch_unwind(|| read(bytes)).unwrap_or_else(|_| panic!("{what}: a panic"));
        match outcome {
            // The caller asks whether a server has used the file, and refuses it as missing.
            Ok(read) if read.length == 0 => refused += 1,
            Ok(read) => {
                assert_eq!(held(&read), expected, "{what}: locks are lost in silence");
                unharmed += 1;
            }
            Err(error) => {
                let text = error.to_string();
                let has_place =
                    text.contains(" byte ") || matches!(error, BackupError::Foreign { .. });
                assert!(text.contains("locks") && has_place, "{what}: {text}");
                refused += 1;
            }
        }
    }
    println!(
        "{} damages: {refused} refused, {unharmed} without a loss",
        damages.len()
    );
    assert!(damages.len() > 2_000 && refused > unharmed);
}
