//! Roles whose processes run already: accounted, and left as they are.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use concurve_probe::proc_fs::ProcFs;
use concurve_probe::process;
use concurve_wire::record::{OutcomeKind, RoleRecord};
use serde_json::{Value, json};

use crate::common::{
    Trial, can_run_as_nobody, python, record, record_without_privilege, role, run,
    taskstats_granted,
};

/// Computes for the CPU time that each connection asks for, in a new thread, and answers at its end.
const VICTIM: &str = "\
import socket, threading, time
listening = socket.create_server(('127.0.0.1', 0))
print(listening.getsockname()[1], flush=True)
def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
while True:
    client, _ = listening.accept()
    with client:
        worker = threading.Thread(target=compute, args=(float(client.recv(64)),))
        worker.start()
        worker.join()
        client.sendall(b'x')
";

/// The same in a new process, for which it waits.
const FORKING: &str = "\
import os, socket, time
listening = socket.create_server(('127.0.0.1', 0))
print(listening.getsockname()[1], flush=True)
while True:
    client, _ = listening.accept()
    with client:
        seconds = float(client.recv(64))
        child = os.fork()
        if child == 0:
            end = time.process_time() + seconds
            while time.process_time() < end:
                pass
            os._exit(0)
        os.waitid(os.P_PID, child, os.WEXITED)
        client.sendall(b'x')
";

/// Forks as many processes as it is asked for, one by one, each of which touches 200 MB. Tells of all that it has
/// waited for in its life.
const TOUCHING: &str = "\
import os, mmap, resource, socket
listening = socket.create_server(('127.0.0.1', 0))
print(listening.getsockname()[1], flush=True)
while True:
    client, _ = listening.accept()
    with client:
        for _ in range(int(float(client.recv(64)))):
            child = os.fork()
            if child == 0:
                memory = mmap.mmap(-1, 200 << 20)
                for at in range(0, 200 << 20, 4096):
                    memory[at] = 1
                os._exit(0)
            os.waitpid(child, 0)
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        client.sendall(str(used.ru_utime + used.ru_stime).encode())
";

/// A running process that no trial has started.
struct Victim {
    child: Child,
    port: String,
}

impl Victim {
    fn start() -> Self {
        Self::running(VICTIM)
    }

    fn running(program: &str) -> Self {
        let mut child = Command::new(python())
            .args(["-c", program])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut port).unwrap();
        let port = port.trim().to_owned();
        Self { child, port }
    }

    fn role(&self) -> Value {
        let pid = self.child.id();
        let started_ticks = ProcFs::default().stat(pid).unwrap().started_ticks;
        json!({
            "name": "server", "end": "serve",
            "attach": {"process": {"pid": pid, "started_ticks": started_ticks}},
        })
    }

    /// Has it compute, in a thread that ends then.
    fn compute(&self, seconds: f64) {
        let mut server = TcpStream::connect(format!("127.0.0.1:{}", self.port)).unwrap();
        server.write_all(seconds.to_string().as_bytes()).unwrap();
        server.read_exact(&mut [0]).unwrap();
    }

    /// A client that asks for CPU time before its phase, within it, and after it.
    fn client(&self, before: f64, within: f64, after: f64) -> Value {
        // The server rests at the edges of the phase, so their readings may be late.
        let code = format!(
            "import os, socket, time\n\
             def ask(seconds):\n\
             \x20   with socket.create_connection(('127.0.0.1', {})) as server:\n\
             \x20       server.sendall(str(seconds).encode()); server.recv(1)\n\
             def mark(edge):\n\
             \x20   time.sleep(0.2); os.write(3, edge); time.sleep(0.2)\n\
             ask({before})\n\
             mark(b'{{\"phase\":\"measure\",\"edge\":\"begin\"}}\\n')\n\
             ask({within})\n\
             mark(b'{{\"phase\":\"measure\",\"edge\":\"end\"}}\\n')\n\
             ask({after})\n",
            self.port
        );
        role("client", [python(), "-c", &code])
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_it_uses_in_a_phase_is_its_account() {
    let victim = Victim::start();
    let record = record(Trial::of([victim.role(), victim.client(0.3, 1.0, 0.3)]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    let server = &record.roles[0];
    assert_eq!(server.pid, Some(victim.child.id()));
    assert_eq!((server.exit, server.ended_by), (None, None));
    let [phase] = &server.phases[..] else {
        panic!("{:?}", server.phases)
    };
    assert_eq!(phase.marked_by.as_deref(), Some("client"));
    if taskstats_granted() {
        // Its computing threads end within the phase. Its own work beside theirs is small.
        let cpu_ns = phase.usage.cpu_ns.unwrap();
        assert!((1_000_000_000..1_060_000_000).contains(&cpu_ns), "{cpu_ns}");
        let whole_ns = server.usage.cpu_ns.unwrap();
        assert!(
            (1_600_000_000..1_700_000_000).contains(&whole_ns),
            "{whole_ns}"
        );
        assert_eq!(
            server.threads.total,
            Some(4),
            "its own, and one for each question"
        );
        assert!(server.threads.cpu_ns.unwrap().abs_diff(whole_ns) < 30_000_000);
        for reading in [
            phase.usage.run_queue_ns,
            phase.usage.voluntary_switches,
            server.usage.involuntary_switches,
        ] {
            assert!(reading.is_some());
        }
    }
    for name in ["user_ns", "migrations", "rss_bytes_max"] {
        assert!(server.usage.absent.contains_key(name), "{name}");
    }
    let foreign = &record.machine.foreign_processes;
    assert!(
        foreign.iter().all(|it| it.pid != victim.child.id()),
        "{foreign:?}"
    );
}

#[test]
fn what_it_used_before_is_not_counted() {
    let victim = Victim::start();
    // The first trial makes it old: it has used more than the second one will see.
    record(Trial::of([victim.role(), victim.client(0.5, 0.0, 0.0)]));
    let record = record(Trial::of([victim.role(), victim.client(0.0, 0.0, 0.0)]));
    let server = &record.roles[0];
    assert!(
        server.usage.cpu_ns.unwrap() < 100_000_000,
        "{:?}",
        server.usage
    );
    for thread in &server.threads.listed {
        assert!(thread.usage.cpu_ns.unwrap() < 100_000_000, "{thread:?}");
    }
}

#[test]
fn what_the_kernel_does_at_the_end_of_a_process_is_of_its_role() {
    if !taskstats_granted() {
        return;
    }
    check_ends(&Victim::running(TOUCHING), |pid| {
        ProcFs::default().stat(pid).unwrap().children_ticks * process::tick_ns()
    });
}

#[test]
fn it_is_so_while_nobody_has_waited_for_the_process() {
    if !taskstats_granted() {
        return;
    }
    let wait = "os.waitpid(child, 0)";
    assert!(TOUCHING.contains(wait));
    let leaving = "os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)";
    check_ends(&Victim::running(&TOUCHING.replace(wait, leaving)), |pid| {
        let children = ProcFs::default().children(pid).unwrap();
        children.into_iter().filter_map(process::cpu_ns).sum()
    });
}

/// Judges the CPU time of a role by what ended children of its process have used.
fn check_ends(victim: &Victim, children_ns: impl Fn(u32) -> u64) {
    let children_ns = || children_ns(victim.child.id());
    // What ended before the trial is none of it.
    victim.compute(3.0);
    let before_ns = children_ns();
    let record = record(Trial::of([victim.role(), victim.client(6.0, 6.0, 0.0)]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    let ended_ns = children_ns() - before_ns;
    let server = &record.roles[0];
    let used_ns = server.usage.cpu_ns.unwrap();
    // Its own work beside theirs is to fork.
    let listed = &server.threads.listed;
    let own = listed
        .iter()
        .find(|it| it.tid == victim.child.id())
        .unwrap();
    let own_ns = own.usage.cpu_ns.unwrap();
    let accounts_ns = server.threads.cpu_ns.unwrap() - own_ns;
    // Counters of ticks, of user and of system time, at both ends.
    let cut_ns = 4 * process::tick_ns();
    assert!(used_ns + cut_ns >= ended_ns, "{used_ns} of {ended_ns}");
    assert!(
        accounts_ns + cut_ns < ended_ns,
        "this test needs a kernel that books this late: {accounts_ns} of {ended_ns}"
    );
    let most_ns = ended_ns + own_ns + cut_ns;
    assert!(used_ns <= most_ns, "{used_ns} of {most_ns}");
    let phase_ns = server.phases[0].usage.cpu_ns.unwrap();
    assert!(phase_ns < used_ns, "{phase_ns} of {used_ns}");
}

#[test]
fn a_cgroup_says_what_it_used_beyond_the_accounts() {
    // A folder that looks like a cgroup, in which the client has five seconds be used.
    let folder = tempfile::tempdir().unwrap();
    let victim = Victim::start();
    std::fs::write(
        folder.path().join("cgroup.procs"),
        victim.child.id().to_string(),
    )
    .unwrap();
    let stat = folder.path().join("cpu.stat");
    std::fs::write(&stat, "usage_usec 7000000\n").unwrap();
    let attach = json!({"cgroup": folder.path().to_str().unwrap()});
    let server = json!({"name": "server", "end": "serve", "attach": attach});
    let script = format!("echo usage_usec 12000000 > '{}'", stat.display());
    let record = record(Trial::of([server, role("client", ["sh", "-c", &script])]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    let used_ns = record.roles[0].usage.cpu_ns.unwrap();
    assert_eq!(used_ns, 5_000_000_000, "with all that its processes used");
    assert_eq!(record.machine.foreign_cpu_ns.unwrap_or(0), 0);
}

#[test]
fn a_process_of_it_that_has_ended_is_no_stranger() {
    // It sees that they end, and leaves them in the table of processes.
    let program = FORKING.replace("os.WEXITED", "os.WEXITED | os.WNOWAIT");
    let victim = Victim::running(&program);
    // Others are looked for where they used the machine.
    let mut stranger = Command::new(python())
        .args(["-c", "while True: pass"])
        .spawn()
        .unwrap();
    let record = record(Trial::of([victim.role(), victim.client(0.0, 3.0, 0.0)]));
    stranger.kill().unwrap();
    stranger.wait().unwrap();
    let strangers = &record.machine.foreign_processes;
    // On a busy machine, those of others are named.
    assert!(!strangers.is_empty(), "{:?}", record.machine);
    if taskstats_granted() {
        let own = &record.roles[0].threads.listed;
        assert_eq!(own.len(), 4, "its own, and one for each question");
        for thread in own {
            assert!(
                strangers.iter().all(|it| it.pid != thread.tid),
                "{strangers:?}"
            );
        }
    }
}

#[test]
fn a_number_that_is_used_again_is_another_process() {
    let victim = Victim::start();
    let mut role = victim.role();
    let ticks = &mut role["attach"]["process"]["started_ticks"];
    *ticks = (ticks.as_u64().unwrap() - 1).into();
    let trial = Trial::of([role, self::role("client", ["true"])]);
    let checked = run(&["check"], &trial.0.to_string());
    let report: Value = serde_json::from_slice(&checked.stdout).unwrap();
    let problem = report["roles"][0]["problem"]["message"].as_str().unwrap();
    assert!(problem.contains("used again"), "{report}");
    let record = record(trial);
    assert_eq!(record.outcome.kind, OutcomeKind::ExecFailed);
    assert!(record.outcome.message.unwrap().contains("used again"));
    assert_eq!(record.roles[1].pid, None);
}

#[test]
fn its_end_fails_the_trial() {
    let victim = Victim::start();
    let pid = victim.child.id().to_string();
    // The client does to it what the runner never does.
    let client = role("client", ["sh", "-c", &format!("kill -9 {pid}; sleep 30")]);
    let record = record(Trial::of([victim.role(), client]));
    assert_eq!(record.outcome.kind, OutcomeKind::ProgramFailed);
    assert_eq!(record.outcome.role.as_deref(), Some("server"));
    let message = record.outcome.message.unwrap();
    assert!(message.contains("ended during the trial"), "{message}");
}

/// The record of a victim that computes in the course of a trial of the user nobody.
fn computing_without_privilege(victim: &Victim) -> RoleRecord {
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let path = folder.path().to_str().unwrap();
    // A client that the user nobody may execute: it says that the trial runs, and waits for the work.
    let script = format!("touch {path}/runs; until [ -e {path}/done ]; do sleep 0.05; done");
    let trial = Trial::of([victim.role(), role("client", ["sh", "-c", &script])]);
    let record = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !folder.path().join("runs").exists() {
                std::thread::sleep(Duration::from_millis(10));
            }
            victim.compute(0.6);
            std::fs::write(folder.path().join("done"), "").unwrap();
        });
        record_without_privilege(trial)
    });
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    record.roles.into_iter().next().unwrap()
}

#[test]
fn its_cpu_time_needs_no_privilege() {
    if !can_run_as_nobody() {
        return;
    }
    let server = computing_without_privilege(&Victim::start());
    let cpu_ns = server.usage.cpu_ns.unwrap();
    assert!((600_000_000..700_000_000).contains(&cpu_ns), "{cpu_ns}");
    // The thread that did the work has ended.
    let reason = &server.usage.absent["run_queue_ns"];
    assert!(reason.contains("threads ended meanwhile"), "{reason}");
    let absent = &server.threads.absent;
    assert!(absent.contains_key("total"), "{absent:?}");
}

#[test]
fn its_cpu_time_lacks_processes_that_have_ended_and_says_so() {
    if !can_run_as_nobody() {
        return;
    }
    let usage = computing_without_privilege(&Victim::running(FORKING)).usage;
    assert_eq!((usage.cpu_ns, usage.run_queue_ns), (None, None));
    for name in ["cpu_ns", "run_queue_ns"] {
        let reason = &usage.absent[name];
        assert!(reason.contains("ended meanwhile"), "{name}: {reason}");
    }
}

#[test]
fn a_thread_of_the_kernel_cannot_be_attached() {
    let Ok(kthreadd) = ProcFs::default().stat(2) else {
        return; // not visible, as in a container
    };
    if kthreadd.parent != 0 {
        return;
    }
    let attach = json!({"process": {"pid": 2, "started_ticks": kthreadd.started_ticks}});
    let server = json!({"name": "server", "end": "serve", "attach": attach});
    let record = record(Trial::of([server, role("client", ["true"])]));
    assert!(
        record
            .outcome
            .message
            .unwrap()
            .contains("thread of the kernel")
    );
}

#[test]
fn what_has_started_the_trial_cannot_be_attached() {
    let pid = std::process::id();
    let started_ticks = ProcFs::default().stat(pid).unwrap().started_ticks;
    let own = json!({
        "name": "server", "end": "serve",
        "attach": {"process": {"pid": pid, "started_ticks": started_ticks}},
    });
    let record = record(Trial::of([own, role("client", ["true"])]));
    assert_eq!(record.outcome.kind, OutcomeKind::ExecFailed);
    assert!(
        record
            .outcome
            .message
            .unwrap()
            .contains("holds the trial itself")
    );
}

#[test]
fn an_empty_or_missing_cgroup_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let attach = |path: &str| {
        let role = json!({"name": "server", "end": "serve", "attach": {"cgroup": path}});
        let record = record(Trial::of([role, self::role("client", ["true"])]));
        assert_eq!(record.outcome.kind, OutcomeKind::ExecFailed);
        record.outcome.message.unwrap()
    };
    let path = folder.path().to_str().unwrap();
    assert!(attach(path).contains("cgroup.procs"));
    std::fs::write(folder.path().join("cgroup.procs"), "").unwrap();
    assert!(attach(path).contains("has no process"));
}

#[test]
fn the_end_of_the_processes_of_a_cgroup_fails_the_trial() {
    let victim = Victim::start();
    // While the client goes on, and with its last act.
    for goes_on in ["; sleep 30", ""] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cgroup.procs");
        std::fs::write(&file, victim.child.id().to_string()).unwrap();
        let attach = json!({"cgroup": folder.path().to_str().unwrap()});
        let server = json!({"name": "server", "end": "serve", "attach": attach});
        let script = format!(": > '{}'{goes_on}", file.display());
        let record = record(Trial::of([server, role("client", ["sh", "-c", &script])]));
        assert_eq!(record.outcome.kind, OutcomeKind::ProgramFailed, "{goes_on}");
        assert_eq!(record.outcome.role.as_deref(), Some("server"));
        let message = record.outcome.message.unwrap();
        assert!(message.contains("ended during the trial"), "{message}");
        assert!(
            record.wall_ns < 20_000_000_000,
            "the client was not waited for"
        );
    }
}

#[test]
fn the_processes_of_a_cgroup_are_accounted_together() {
    // A folder that looks like a cgroup: what stands in its file is what is attached.
    let folder = tempfile::tempdir().unwrap();
    let victims = [Victim::start(), Victim::start()];
    let pids: Vec<String> = victims.iter().map(|it| it.child.id().to_string()).collect();
    std::fs::write(folder.path().join("cgroup.procs"), pids.join("\n")).unwrap();
    let attached = json!({
        "name": "server", "end": "serve", "attach": {"cgroup": folder.path().to_str().unwrap()},
    });
    let clients = [
        victims[0].client(0.4, 0.0, 0.0),
        victims[1].client(0.4, 0.0, 0.0),
    ];
    let [first, mut second] = clients;
    second["name"] = "second".into();
    let record = record(Trial::of([attached, first, second]));
    assert_eq!(record.outcome.kind, OutcomeKind::Ok, "{:?}", record.outcome);
    if taskstats_granted() {
        let cpu_ns = record.roles[0].usage.cpu_ns.unwrap();
        assert!((800_000_000..900_000_000).contains(&cpu_ns), "{cpu_ns}");
        assert_eq!(record.roles[0].threads.processes, Some(2));
    }
}
