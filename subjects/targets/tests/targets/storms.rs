//! Thread storms, and the limits that stop them.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::getuid;

use crate::program::{PROGRAM, target, wrapped};

#[test]
fn thread_storm_reaches_what_it_was_asked_for() {
    let ended = target("thread-storm --threads 300")
        .run()
        .ok()
        .measured(300.0, 1);
    assert_eq!(ended.indicator("threads_reached"), 300.0);
    assert!(!ended.stdout.contains("limited"));
}

#[test]
fn churning_threads_end_at_once() {
    let ended = target("thread-storm --churn 200 --cpu-us 5").run();
    ended.ok().measured(200.0, 1);
}

#[test]
fn thread_storm_survives_the_limit_of_a_cgroup() {
    let Some(group) = PidsCgroup::create(40) else {
        eprintln!("skipped: no pids cgroup can be created here");
        return;
    };
    let enter = format!(
        "echo $$ > {}/cgroup.procs && exec \"$0\" \"$@\"",
        group.0.display()
    );
    let storm = |threads: &str| {
        let arguments = format!("thread-storm --threads {threads}");
        wrapped(&["sh", "-c", &enter, PROGRAM], &arguments).run()
    };

    // The first thread of the program counts too.
    let ended = storm("max").ok().measured(39.0, 1);
    assert_eq!(ended.indicator("threads_reached"), 39.0);
    let cause = ended.fact("threads_limited_by").to_string();
    assert!(
        cause.contains("pids cgroup") && cause.contains("40 of 40"),
        "{cause}"
    );
    assert!(cause.contains("EAGAIN"), "{cause}");

    let ended = storm("100");
    assert_eq!(ended.status.code(), Some(1));
    assert!(
        ended.stderr.contains("reached 39 of 100 threads"),
        "{}",
        ended.stderr
    );
}

#[test]
fn thread_storm_survives_rlimit_nproc() {
    const NOBODY: u32 = 65_534;
    if !getuid().is_root() {
        eprintln!("skipped: needs root to become a user without other processes");
        return;
    }
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    let program = directory.path().join("targets");
    // `cp` writes the copy: if this process wrote it, a child that another test forks would inherit
    // the descriptor, and a file that is open for writing cannot be executed.
    let copied = Command::new("cp").arg(PROGRAM).arg(&program).status();
    assert!(copied.unwrap().success());
    let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(directory.path(), open).unwrap();

    let path = program.to_str().unwrap();
    let mut storm = wrapped(
        &["prlimit", "--nproc=50:50", path],
        "thread-storm --threads max",
    );
    storm.command.uid(NOBODY).gid(NOBODY);
    fs::set_permissions(
        storm.report.path(),
        std::os::unix::fs::PermissionsExt::from_mode(0o666),
    )
    .unwrap();
    if Command::new("prlimit").arg("--version").output().is_err() {
        eprintln!("skipped: prlimit is missing (util-linux)");
        return;
    }
    let ended = storm.run().ok();
    let cause = ended.fact("threads_limited_by").to_string();
    assert!(
        cause.contains("RLIMIT_NPROC") && cause.contains("of 50"),
        "{cause}"
    );
    let reached = ended.indicator("threads_reached");
    assert!((1.0..50.0).contains(&reached), "{reached}");
}

/// A cgroup for one test, removed at its end.
struct PidsCgroup(PathBuf);

impl PidsCgroup {
    fn create(limit: u32) -> Option<Self> {
        let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
        let roots = groups.lines().filter_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?.trim_start_matches('/'));
            match controllers {
                "pids" => Some(Path::new("/sys/fs/cgroup/pids").join(path)),
                // Beside our own group: one with processes can have no children in version 2.
                "" => Some(Path::new("/sys/fs/cgroup").join(Path::new(path).parent()?)),
                _ => None,
            }
        });
        for root in roots {
            let group = Self(root.join(format!("concurve-test-{}", std::process::id())));
            if fs::create_dir(&group.0).is_ok()
                && fs::write(group.0.join("pids.max"), limit.to_string()).is_ok()
            {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for PidsCgroup {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
