//! Backup files, whole, torn and damaged.

use super::*;
use crate::lock_table::mode::Mode;

fn record(argument: &str, count: u32) -> Record<'_> {
    Record {
        count,
        mode: Mode::Exclusive,
        table: b"T",
        argument: argument.as_bytes(),
        owner: b"o",
    }
}

fn held(backup: &BackupFile) -> Vec<(String, u32)> {
    let text = |it: Record| (String::from_utf8_lossy(it.argument).into_owned(), it.count);
    let mut held: Vec<_> = backup.held().map(text).collect();
    held.sort();
    held
}

fn open(path: &Path) -> (BackupFile, LoadedBackup) {
    BackupFile::open(path, Durability::Process).unwrap()
}

#[test]
fn what_was_committed_is_held_again_wherever_the_file_is_torn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let steps = [("a", 1), ("b", 1), ("a", 2), ("b", 0), ("c", 1)];
    // After each step: the length of the file, and what is held.
    let mut whole = Vec::new();
    {
        let (mut backup, _) = open(&path);
        whole.push((backup.length, held(&backup)));
        for (argument, count) in steps {
            backup.note(&record(argument, count));
            backup.commit().unwrap();
            whole.push((backup.length, held(&backup)));
        }
    }
    let bytes = std::fs::read(&path).unwrap();
    for length in 0..bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        let error = BackupFile::open(&path, Durability::Process).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("cut") || text.contains("missing"), "{text}");
    }
    // A loss of power has torn it: the mark on the disk is an older one.
    let mark = Mark {
        end: BEGIN_BYTES,
        boot: 0,
    };
    let mut bytes = bytes;
    bytes[HEADER.len()..BEGIN_BYTES as usize].copy_from_slice(&mark.encode());
    for length in 0..=bytes.len() {
        std::fs::write(&path, &bytes[..length]).unwrap();
        std::fs::remove_file(other_path(&path)).unwrap();
        let (backup, loaded) = open(&path);
        let good = whole.iter().rev().find(|it| it.0 <= length as u64);
        let good = good.map_or((0, vec![]), Clone::clone);
        assert_eq!(held(&backup), good.1, "of {length} bytes");
        assert_eq!(loaded.torn_bytes, length as u64 - good.0);
    }
}

#[test]
fn damage_with_records_after_it_is_refused_by_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    {
        let (mut backup, _) = open(&path);
        backup.note(&record("a", 1));
        backup.note(&record("b", 1));
        backup.commit().unwrap();
    }
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[BEGIN_BYTES as usize + 9] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let error = BackupFile::open(&path, Durability::Process).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("damaged at byte 37, and 1 whole"),
        "{error}"
    );
    std::fs::write(&path, "something else").unwrap();
    let error = BackupFile::open(&path, Durability::Process).unwrap_err();
    assert!(matches!(error, BackupError::Foreign { .. }));
}

#[test]
fn a_rewritten_file_holds_the_same_and_one_server_owns_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let (mut backup, _) = open(&path);
    for round in 0..120_000_u32 {
        backup.note(&record("x", round % 2));
        if round % 1000 == 0 {
            backup.commit().unwrap();
        }
    }
    backup.note(&record("kept", 3));
    backup.commit().unwrap();
    assert!(backup.compactions > 1 && backup.length < COMPACT_BYTES_MIN);
    let before = held(&backup);
    let error = BackupFile::open(&path, Durability::Process).unwrap_err();
    assert!(matches!(error, BackupError::InUse { .. }));
    drop(backup);
    let backup = open(&path).0;
    assert_eq!(held(&backup), before);
    backup.end();
    assert!(!other_path(&path).exists());
}

#[test]
fn a_file_of_format_1_is_read_and_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let mut bytes = b"concurve locks 1\n".to_vec();
    encode(&record("a", 2), &mut bytes);
    encode(&record("b", 1), &mut bytes);
    bytes.extend([7; 5]);
    std::fs::write(&path, &bytes).unwrap();
    for torn_bytes in [5, 0] {
        let (backup, loaded) = open(&path);
        assert_eq!(held(&backup), [("a".to_owned(), 2), ("b".to_owned(), 1)]);
        assert_eq!(loaded.torn_bytes, torn_bytes);
        assert!(std::fs::read(&path).unwrap().starts_with(HEADER));
    }
}

#[test]
fn every_commit_after_a_failed_write_tells_why_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let (mut backup, _) = open(&path);
    // A descriptor that cannot be written.
    let other = folder.path().join("other");
    std::fs::write(&other, b"").unwrap();
    backup.files[0] = lock(File::open(&other).unwrap(), &other).unwrap();
    backup.note(&record("a", 1));
    let first = backup.commit().unwrap_err().to_string();
    assert!(first.contains("append to it: Bad file"), "{first}");
    assert_eq!(backup.commit().unwrap_err().to_string(), first);
}

#[test]
fn both_files_are_for_their_owner_also_those_of_an_older_version() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("locks");
    let files = [path.clone(), other_path(&path)];
    let set = |to: u32| {
        for file in &files {
            std::fs::set_permissions(file, PermissionsExt::from_mode(to)).unwrap();
        }
    };
    let are_private = || {
        files.iter().all(|file| {
            let mode = std::fs::metadata(file).unwrap().permissions().mode();
            mode & 0o7777 == 0o600
        })
    };
    let (mut backup, _) = open(&path);
    assert!(are_private());
    backup.note(&record("a", 1));
    backup.commit().unwrap();
    drop(backup);
    set(0o644);
    let (mut backup, _) = open(&path);
    assert!(are_private());
    backup.compact().unwrap();
    assert!(are_private());
    assert_eq!(held(&backup), [("a".to_owned(), 1)]);
}

#[test]
fn a_file_that_is_refused_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hosts");
    std::fs::write(&path, "127.0.0.1 localhost\n").unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
    let error = BackupFile::open(&path, Durability::Process).unwrap_err();
    assert!(matches!(error, BackupError::Foreign { .. }));
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o644);
}
