//! A MariaDB or MySQL of the test's own, where one is installed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{Uid, User, chown};
use tempfile::TempDir;

/// A server that ends with this value.
pub struct MariaDb {
    pub port: u16,
    pub socket: PathBuf,
    child: Option<Child>,
    command: Command,
    folder: TempDir,
}

impl MariaDb {
    /// `None`, and a line that says why, if the machine has none.
    pub fn start(options: &[&str]) -> Option<Self> {
        for program in ["mariadbd", "mariadb-install-db", "mariadb", "setpriv"] {
            if which(program).is_none() {
                eprintln!("skipped: no {program} on this machine (Debian: mariadb-server)");
                return None;
            }
        }
        let folder = TempDir::new().unwrap();
        let user = Uid::effective().is_root().then_some("mysql");
        if let Some(name) = user {
            let user = User::from_name(name).unwrap().expect("made by the package");
            chown(folder.path(), Some(user.uid), Some(user.gid)).unwrap();
        }
        // A starting server removes the temporary tables of all servers that share the folder.
        let places = [
            argument("--datadir", &folder.path().join("data")),
            argument("--tmpdir", folder.path()),
        ];
        let installed = as_user(user, "mariadb-install-db")
            .args([
                "--no-defaults",
                "--skip-test-db",
                "--innodb-log-file-size=8M",
            ])
            .arg("--auth-root-authentication-method=normal")
            .args(&places)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&installed.stderr).into_owned();
        assert!(installed.status.success(), "{said}");
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut command = as_user(user, "mariadbd");
        command
            .args([
                "--no-defaults",
                "--bind-address=127.0.0.1",
                "--innodb-log-file-size=8M",
            ])
            .args(&places)
            .arg(argument("--socket", &folder.path().join("s")))
            .arg(format!("--port={port}"))
            .args(options)
            .stdout(Stdio::null());
        let mut server = Self {
            port,
            socket: folder.path().join("s"),
            child: None,
            command,
            folder,
        };
        server.start_again();
        Some(server)
    }

    /// Starts it, and waits until it accepts clients.
    pub fn start_again(&mut self) {
        let log = self.folder.path().join("log");
        self.command.stderr(File::create(&log).unwrap());
        let mut child = self.command.spawn().unwrap();
        let deadline = Instant::now() + Duration::from_secs(180);
        while UnixStream::connect(&self.socket).is_err() {
            let log = || fs::read_to_string(&log).unwrap_or_default();
            let ended = child.try_wait().unwrap();
            assert!(ended.is_none(), "mariadbd ended: {}", log());
            assert!(Instant::now() < deadline, "not ready: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
        self.child = Some(child);
    }

    /// Executes statements with the server's own client, as root; returns the output.
    pub fn ask(&self, statements: &str) -> String {
        let output = Command::new("mariadb")
            .args(["--no-defaults", "-u", "root", "-B", "-N", "-e", statements])
            .arg(argument("--socket", &self.socket))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{statements}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Its address over TCP.
    pub fn address(&self, user: &str, database: &str) -> String {
        format!("mysql://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Kills it, like a crash.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

impl Drop for MariaDb {
    fn drop(&mut self) {
        self.kill();
    }
}

fn argument(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// Runs a program as a user, and ends it with the test.
fn as_user(user: Option<&str>, program: &str) -> Command {
    let mut command = Command::new("setpriv");
    if let Some(user) = user {
        command
            .args(["--reuid", user, "--regid", user, "--clear-groups"])
            .current_dir("/");
    }
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    places.map(|it| it.join(program)).find(|it| it.is_file())
}
