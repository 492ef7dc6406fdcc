//! Loads of small export sets into the embedded databases, and errors.

use std::fs;
use std::path::Path;

use concurve_storage::database::{self, Kind};
use concurve_storage::error::Error;
use concurve_storage::export::{self, Export, Extent, Manifest};
use concurve_storage::load::{self, Launch, Loaders, Outcome};

const SMALL: Extent = Extent {
    bytes: 1 << 20,
    tables: Some(100),
    seed: 3,
};

fn exported(extent: &Extent) -> (tempfile::TempDir, Manifest) {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = export::write(extent, folder.path()).expect("an export set");
    (folder, manifest)
}

fn threads(count: usize) -> Loaders {
    Loaders {
        count,
        processes: None,
    }
}

fn load(kind: Kind, loaders: usize, exports: &Path) -> Result<Outcome, Error> {
    let folder = tempfile::tempdir().expect("a folder");
    let manifest = Manifest::read(exports)?;
    let database = database::open(kind, folder.path().to_str().expect("UTF-8"))?;
    load::run(&manifest, &*database, &threads(loaders), |_| Ok(()))
}

#[test]
fn an_export_set_matches_its_manifest_and_depends_on_its_seed() {
    let (folder, manifest) = exported(&SMALL);
    assert_eq!(manifest.files.len(), 34);
    assert_eq!(manifest.tables(), 100);
    assert!(manifest.bytes() > SMALL.bytes, "each table has whole rows");
    let (mut tables, mut rows) = (0, 0);
    for file in &manifest.files {
        let mut export = Export::open(&folder.path().join(&file.name)).unwrap();
        while export.next_table().unwrap().is_some() {
            tables += 1;
            while export.next_row().unwrap().is_some() {
                rows += 1;
            }
        }
    }
    assert_eq!((tables, rows), (100, manifest.rows()));

    let (again, _) = exported(&SMALL);
    let (other, _) = exported(&Extent { seed: 4, ..SMALL });
    let text = |folder: &tempfile::TempDir| fs::read(folder.path().join("export-01")).unwrap();
    assert!(text(&folder) == text(&again));
    assert!(text(&folder) != text(&other));
}

#[test]
fn each_loader_count_loads_each_table_once() {
    let (folder, manifest) = exported(&SMALL);
    for kind in [Kind::Sqlite, Kind::Records] {
        for loaders in [1, 5] {
            let outcome = load(kind, loaders, folder.path()).unwrap();
            let mut names: Vec<_> = outcome.tables().map(|it| &it.table).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), 100, "{kind:?}");
            let rows: u64 = outcome.tables().map(|it| it.content.rows).sum();
            assert_eq!(rows, manifest.rows());
            assert_eq!(outcome.loaders.len(), loaders);
            assert!(outcome.whole >= outcome.loading);
        }
    }
}

/// Loader processes of a program, to whose arguments their numbers are added.
fn processes(count: usize, program: &str, arguments: &[&str]) -> Loaders {
    Loaders {
        count,
        processes: Some(Launch {
            program: program.into(),
            arguments: arguments.iter().map(Into::into).collect(),
        }),
    }
}

#[test]
fn processes_and_threads_load_the_same() {
    let (folder, manifest) = exported(&SMALL);
    let database_folder = tempfile::tempdir().unwrap();
    let at = database_folder.path().to_str().expect("UTF-8");
    let database = database::open(Kind::Sqlite, at).unwrap();
    let program = env!("CARGO_BIN_EXE_concurve-storage-under-test");
    let loaders = processes(3, program, &["loader", "sqlite", at]);
    let manifest = Manifest::read(&manifest.folder).unwrap();
    let outcome = load::run(&manifest, &*database, &loaders, |_| Ok(())).unwrap();
    let contents = |outcome: &Outcome| {
        let tables = outcome.tables().map(|it| (it.table.clone(), it.content));
        let mut tables: Vec<_> = tables.collect();
        tables.sort_by(|one, other| one.0.cmp(&other.0));
        tables
    };
    let by_threads = load(Kind::Sqlite, 3, folder.path()).unwrap();
    assert_eq!(contents(&outcome), contents(&by_threads));
    assert_eq!(outcome.loaders.len(), 3);
    let times = outcome.tables().map(|it| it.loading + it.savepoint);
    assert!(times.sum::<std::time::Duration>() <= outcome.loading * 3);
}

#[test]
fn a_loader_that_dies_is_reported_with_its_file_and_ends_the_load() {
    let (_folder, manifest) = exported(&SMALL);
    let biggest = Manifest::read(&manifest.folder).unwrap().files[0]
        .name
        .clone();
    // The first loader, number 0, dies.
    for (death, how) in [
        ("kill -KILL $$", "was ended by SIGKILL"),
        ("exit 3", "ended with code 3"),
        ("echo nonsense; exit 0", "was ended by SIGKILL"),
    ] {
        let script = format!(
            "read file; case $0$file in 0*|*{biggest}*) {death};; esac; \
             echo '\"Done\"'; while read file; do echo '\"Done\"'; done"
        );
        let database_folder = tempfile::tempdir().unwrap();
        let at = database_folder.path().to_str().expect("UTF-8");
        let database = database::open(Kind::Sqlite, at).unwrap();
        let loaders = processes(1, "/bin/sh", &["-c", &script]);
        let manifest = Manifest::read(&manifest.folder).unwrap();
        let error = load::run(&manifest, &*database, &loaders, |_| Ok(())).unwrap_err();
        let error = error.to_string();
        let place = format!("while it loaded {biggest}");
        assert!(
            error.starts_with("loader 1 ") && error.contains(&place),
            "{error}"
        );
        assert!(
            error.contains(how) || error.contains("ended with code 0"),
            "{error}"
        );
        // The other loaders are ended, too.
        let loaders = processes(4, "/bin/sh", &["-c", &script]);
        let error = load::run(&manifest, &*database, &loaders, |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with("loader "), "{error}");
    }
}

#[test]
fn the_error_of_a_loader_is_reported_unchanged() {
    let (folder, manifest) = exported(&SMALL);
    damage(folder.path(), &manifest.files[3].name);
    let database_folder = tempfile::tempdir().unwrap();
    let at = database_folder.path().to_str().expect("UTF-8");
    let database = database::open(Kind::Sqlite, at).unwrap();
    let program = env!("CARGO_BIN_EXE_concurve-storage-under-test");
    let loaders = processes(2, program, &["loader", "sqlite", at]);
    let error = load::run(&manifest, &*database, &loaders, |_| Ok(())).unwrap_err();
    let error = error.to_string();
    assert!(error.ends_with("make the export set anew"), "{error}");
}

#[test]
fn the_biggest_files_go_first() {
    let (folder, manifest) = exported(&SMALL);
    let read = Manifest::read(folder.path()).unwrap();
    assert!(read.files.is_sorted_by(|a, b| a.bytes >= b.bytes));
    let outcome = load(Kind::Sqlite, 1, folder.path()).unwrap();
    let first = outcome.tables().next().expect("tables were loaded");
    let biggest = folder.path().join(&read.files[0].name);
    let heading = fs::read_to_string(biggest).unwrap();
    assert!(heading.contains(&format!("table {}\n", first.table)));
    assert_eq!(manifest.bytes(), read.bytes());
}

/// Changes one byte of the first row of a file.
fn damage(folder: &Path, name: &str) {
    let path = folder.join(name);
    let mut bytes = fs::read(&path).unwrap();
    let tab = bytes.iter().position(|&it| it == b'\t').unwrap();
    let letters = bytes[tab..]
        .iter()
        .position(u8::is_ascii_alphabetic)
        .unwrap();
    bytes[tab + letters] = b'?';
    fs::write(&path, bytes).unwrap();
}

#[test]
fn a_damaged_export_is_reported_with_its_line() {
    let (folder, manifest) = exported(&SMALL);
    let name = &manifest.files[3].name;
    damage(folder.path(), name);
    for kind in [Kind::Sqlite, Kind::Records] {
        let error = load(kind, 5, folder.path()).unwrap_err().to_string();
        assert!(error.contains(name), "{error}");
        assert!(error.contains(": line "), "{error}");
        assert!(error.ends_with("make the export set anew"), "{error}");
    }
}

#[test]
fn a_truncated_file_is_reported_before_anything_is_loaded() {
    let (folder, manifest) = exported(&SMALL);
    let path = folder.path().join(&manifest.files[0].name);
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let error = Manifest::read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("the manifest says"), "{error}");
    // Without the check of the manifest, reading the file detects it.
    let mut export = Export::open(&path).unwrap();
    let mut read = || -> Result<(), Error> {
        while export.next_table()?.is_some() {
            while export.next_row()?.is_some() {}
        }
        Ok(())
    };
    let error = read().unwrap_err().to_string();
    assert!(error.contains("it ends within a"), "{error}");
}

#[test]
fn a_wrong_table_is_an_error() {
    use concurve_storage::database::{Database, DatabaseSession};
    use concurve_storage::export::{Content, Sum};

    /// A database that loses a row or a letter.
    struct Lossy {
        counts: bool,
    }
    impl Database for Lossy {
        fn connect(&self, _: usize) -> Result<Box<dyn DatabaseSession + '_>, Error> {
            Ok(Box::new(LossySession {
                counts: self.counts,
                rows: 0,
                sum: Sum::default(),
            }))
        }
    }
    struct LossySession {
        counts: bool,
        rows: u64,
        sum: Sum,
    }
    impl DatabaseSession for LossySession {
        fn load(&mut self, _: &str, rows: &mut Export) -> Result<(), Error> {
            while rows.next_row()?.is_some() {}
            Ok(())
        }
        fn savepoint(&mut self) -> Result<(), Error> {
            Ok(())
        }
        fn count(&mut self, _: &str) -> Result<u64, Error> {
            Ok(self.rows + u64::from(!self.counts))
        }
        fn read(&mut self, _: &str) -> Result<Content, Error> {
            Ok(Content {
                rows: self.rows,
                sum: self.sum,
            })
        }
    }
    let (folder, _) = exported(&SMALL);
    let manifest = Manifest::read(folder.path()).unwrap();
    for counts in [true, false] {
        let error = load::run(&manifest, &Lossy { counts }, &threads(2), |_| Ok(())).unwrap_err();
        assert!(matches!(error, Error::Wrong { .. }), "{error}");
        assert!(error.to_string().contains("is wrong in the database: rows"));
    }
}

#[test]
fn a_folder_that_is_not_empty_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine"), "data").unwrap();
    let at = folder.path().to_str().unwrap();
    for kind in [Kind::Sqlite, Kind::Records] {
        let error = database::open(kind, at).err().expect("it is refused");
        assert!(matches!(error, Error::Usage(_)));
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
