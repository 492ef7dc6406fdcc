//! PostgreSQL servers of the test's own, in every version that is installed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, Uid, User, chown};
use tempfile::TempDir;

/// Rules that admit a user for each way to log in, and no other users.
const RULES: &str = "
local   all all                   trust
host    all postgres 127.0.0.1/32 trust
host    all md5      127.0.0.1/32 md5
host    all scram    127.0.0.1/32 scram-sha-256
host    all plain    127.0.0.1/32 password
";

/// A server that ends with this value.
pub struct PostgreSql {
    tools: PathBuf,
    pub port: u16,
    child: Child,
    folder: TempDir,
}

/// Folders of the programs of each version, the newest last.
pub fn installed() -> Vec<PathBuf> {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let roots = [
        PathBuf::from("/usr/lib/postgresql"),
        PathBuf::from("/opt/concurve/postgresql"),
        home.join(".local/share/concurve/postgresql"),
    ];
    let folders = roots
        .iter()
        .filter_map(|root| fs::read_dir(root).ok())
        .flatten();
    let folders = folders.flatten().map(|it| it.path().join("bin"));
    let mut found: Vec<PathBuf> = folders.filter(|it| it.join("initdb").exists()).collect();
    found.sort_by(|a, b| version(a).total_cmp(&version(b)));
    if found.is_empty() {
        eprintln!("skipped: no PostgreSQL on this machine (Debian: postgresql)");
    }
    found
}

/// Of a folder such as `/usr/lib/postgresql/15/bin`.
pub fn version(tools: &Path) -> f64 {
    let name = tools.parent().and_then(Path::file_name);
    let number = name.and_then(|it| it.to_str()?.parse().ok());
    number.unwrap_or(0.0)
}

impl PostgreSql {
    /// The newest that is installed; `None`, and a line that says why, if there is none.
    pub fn start() -> Option<Self> {
        installed().pop().map(Self::start_of)
    }

    pub fn start_of(tools: PathBuf) -> Self {
        let folder = TempDir::new().unwrap();
        if let Some(name) = user() {
            let user = User::from_name(name).unwrap().expect("made by the package");
            chown(folder.path(), Some(user.uid), Some(user.gid)).unwrap();
        }
        let data = folder.path().join("data");
        let made = as_user(&tools.join("initdb"))
            .args(["-U", "postgres", "-A", "trust", "-N", "-D"])
            .arg(&data)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success(), "{said}");
        let rules = match version(&tools) {
            ..10.0 => RULES.replace("scram-sha-256", "md5"),
            _ => RULES.to_owned(),
        };
        fs::write(data.join("pg_hba.conf"), rules).unwrap();
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut server = Self {
            child: launch(&tools, &folder, port),
            tools,
            port,
            folder,
        };
        server.wait();
        server
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(180);
        while self.psql("SELECT 1").is_err() {
            let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ended: {}", log());
            assert!(Instant::now() < deadline, "not ready: {}", log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Executes statements as the superuser; returns the output.
    pub fn ask(&self, statements: &str) -> String {
        self.psql(statements)
            .unwrap_or_else(|said| panic!("{statements}: {said}"))
    }

    /// Executes statements with the client of any version.
    fn psql(&self, statements: &str) -> Result<String, String> {
        let psql = installed()
            .iter()
            .rev()
            .map(|it| it.join("psql"))
            .find(|it| it.exists());
        let output = Command::new(psql.expect("Debian's package has it"))
            .args([
                "-X",
                "-q",
                "-A",
                "-t",
                "-U",
                "postgres",
                "-p",
                &self.port.to_string(),
            ])
            .args(["-v", "ON_ERROR_STOP=1", "-c", statements, "-h"])
            .arg(self.folder.path())
            .arg("postgres")
            .output()
            .unwrap();
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Its address over TCP.
    pub fn address(&self, user: &str, database: &str) -> String {
        format!("postgresql://{user}@127.0.0.1:{}/{database}", self.port)
    }

    /// Its address over the Unix socket.
    pub fn local_address(&self) -> String {
        let folder = self.folder.path().display();
        format!(
            "postgresql://postgres@/postgres?host={folder}&port={}",
            self.port
        )
    }

    /// A file beside its data.
    pub fn file(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    /// Kills all its processes at once, without a checkpoint, like a crash.
    pub fn crash(&mut self) {
        let _ = kill(Pid::from_raw(self.child.id() as i32), Signal::SIGQUIT);
        self.child.wait().unwrap();
    }

    /// Starts it again with the same data.
    pub fn restart(&mut self) {
        self.child = launch(&self.tools, &self.folder, self.port);
        self.wait();
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        self.crash();
    }
}

fn launch(tools: &Path, folder: &TempDir, port: u16) -> Child {
    let sockets = format!("unix_socket_directories={}", folder.path().display());
    as_user(&tools.join("postgres"))
        .arg("-D")
        .arg(folder.path().join("data"))
        .args(["-p", &port.to_string(), "-c", &sockets])
        .args(["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"])
        .args(["-c", "dynamic_shared_memory_type=mmap"])
        .stdout(Stdio::null())
        .stderr(File::create(folder.path().join("log")).unwrap())
        .spawn()
        .unwrap()
}

/// PostgreSQL does not run as root.
fn user() -> Option<&'static str> {
    Uid::effective().is_root().then_some("postgres")
}

/// Runs a program as a user that is not root, and ends it with the test.
fn as_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    if let Some(user) = user() {
        command
            .args(["--reuid", user, "--regid", user, "--clear-groups"])
            .current_dir("/");
    }
    command.args(["--pdeathsig", "QUIT", "--"]).arg(program);
    command.env("LC_ALL", "C");
    command
}
