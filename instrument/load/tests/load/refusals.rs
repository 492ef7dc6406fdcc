//! Wrong usage, and servers that are missing, of another kind, or not responding: each is an error
//! that states what failed, where, and what to try.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::common::{Ended, PROGRAM, Server, load, start};

/// Addresses of servers with a log-in: the parts before and after the host.
const GREETING: [(&str, &str); 4] = [
    ("redis://", "?protocol=3"),
    ("records://", "/"),
    ("postgresql://me@", "/bank"),
    ("mysql://me@", "/bank"),
];
/// First bytes that other services send.
const MARIADB: &[u8] =
    b"\x64\0\0\0\x0a5.5.5-10.11.19-MariaDB-0+deb12u1\0\x04\0\0\0>%;:Qi;*\0\xfe\xf7\
    \x08\x02\0\xff\x81\x15\0\0\0\0\0\0\x1d\0\0\0`&<9ICT[LKt)\0mysql_native_password\0";
const REDIS: &[u8] = b"-ERR unknown command\r\n";
const SSH: &[u8] = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n";
const HTTP: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\r\n";

fn assert_refused(ended: &Ended, code: i32, words: &[&str]) {
    let said = ended.stderr();
    assert_eq!(ended.output.status.code(), Some(code), "{said}");
    for word in words {
        assert!(said.contains(word), "{word:?} is not in {said:?}");
    }
    assert!(!said.contains("secret"), "{said}");
    assert!(said.lines().count() <= 3, "{said}");
    assert_eq!(ended.stdout(), "");
}

#[test]
fn invalid_addresses_are_refused() {
    for (address, words) in [
        ("nowhere", ["nowhere", "redis://HOST:PORT"]),
        (
            "oracle://host/bank",
            ["oracle is not a known scheme", "mysql://"],
        ),
        ("rediss://host", ["TLS is not supported", "redis://"]),
        ("redis://me:secret@host", ["--password-from", "redis://"]),
        ("redis://:sec/secret@host", ["--password-from", "redis://"]),
        (
            "redis://host?password=secret",
            ["--password-from", "redis://"],
        ),
        ("me:secret@host:1", ["--password-from", "redis://"]),
        (
            "postgres://host/bank?password=secret",
            ["--password-from", "postgresql://USER"],
        ),
        ("oracle://me:secret@host", ["oracle is not", "mysql://"]),
        (
            "mysql://me:secret@host",
            ["--password-from", "mysql://USER@HOST"],
        ),
        (
            "mysql://me@host?ssl-mode=REQUIRED",
            ["TLS", "mysql://USER@HOST"],
        ),
        ("mysql://me@127.0.0.1:99999", ["99999", "mysql://USER@HOST"]),
        (
            "mysql://me@host?socket=/s",
            ["one of them", "mysql://USER@HOST"],
        ),
        (
            "postgresql://me:secret@host",
            ["--password-from", "postgresql://USER"],
        ),
        (
            "postgres://me@host?sslmode=verify-full",
            ["TLS", "postgresql://USER"],
        ),
        (
            "postgres://me@127.0.0.1:x/bank",
            ["127.0.0.1:x", "postgresql://USER"],
        ),
        ("sqlite:", ["sqlite:", "PATH"]),
        ("sqlite:/nowhere/x?journal=none", ["none", "journal=wal"]),
    ] {
        assert_refused(&load(address, "--transactions 1"), 2, &words);
    }
}

#[test]
fn contradictory_options_are_refused() {
    let postgres = "postgresql://me@127.0.0.1:1/bank";
    let redis = "redis://127.0.0.1:1";
    for (address, arguments, words) in [
        (postgres, "--workload get", ["\"get\"", "tpcb-rw3"]),
        (redis, "--workload tpcb-rw3", ["\"tpcb-rw3\"", "ping, get"]),
        (redis, "--init", ["--init", "databases"]),
        (postgres, "--mix get=1", ["--mix", "--workload"]),
        (
            postgres,
            "--workload read --keys zipf:100000:0.99",
            ["--keys is for key-value servers", "read has keys"],
        ),
        (postgres, "--keys nonsense", ["--keys is", "--command"]),
        (postgres, "--prefill", ["--prefill is", "tpcb-rw3 has keys"]),
        (
            postgres,
            "--command SELECT({key}) --prefill",
            [
                "--prefill is for key-value servers",
                "statements of your own",
            ],
        ),
        (
            redis,
            "--mix get=1,incr=1 --prefill",
            ["--prefill with incr", "leave it out"],
        ),
        (
            redis,
            "--workload ping --prefill",
            ["--prefill is for commands with a {key}", "leave it out"],
        ),
        (
            "sqlite:/nowhere/x",
            "--value-bytes 9",
            ["--value-bytes is", "tpcb-rw3 has keys"],
        ),
        (
            redis,
            "--command A --command B --round-trips one",
            ["--round-trips is for", "leave it out"],
        ),
        (redis, "--new-statements 0", ["--new-statements is", "rw3"]),
        (redis, "--scale 1", ["--scale is", "databases"]),
        (
            redis,
            "--mix get=1 --accounts 9",
            ["--accounts", "databases"],
        ),
        (
            postgres,
            "--command COMMIT --files 2",
            ["--files is for", "such as tpcb-rw3"],
        ),
        (
            postgres,
            "--pipeline 2 --command BEGIN --command COMMIT",
            ["--pipeline 2", "mixed"],
        ),
        (
            postgres,
            "--pipeline 2",
            ["--pipeline 2", "--round-trips one"],
        ),
        (
            "sqlite:/nowhere/x",
            "--password-from HOME",
            ["--password-from", "engine"],
        ),
        (
            redis,
            "--password-from NOT_SET_ANYWHERE",
            ["NOT_SET_ANYWHERE", "not set"],
        ),
        (
            redis,
            "--password-from secret",
            ["environment variable", "not the password"],
        ),
        (redis, "--spin 2s", ["--spin", "1s at most"]),
        (
            "sqlite:/nowhere/x",
            "--workload update --spin 1ms",
            ["--spin", "no socket"],
        ),
    ] {
        assert_refused(&load(address, arguments), 2, &words);
    }
}

#[test]
fn a_secret_that_is_no_text_is_refused() {
    for arguments in [
        "--password-from SECRET",
        "--slo p99=1ms --follow 127.0.0.1:1 --token-from SECRET",
    ] {
        let output = Command::new(PROGRAM)
            .arg("redis://127.0.0.1:1")
            .args(arguments.split(' '))
            .env("SECRET", OsStr::from_bytes(b"p\xe4ss"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("-from SECRET: the value"), "{said}");
        assert!(said.contains("is not UTF-8 text"), "{said}");
    }
}

#[test]
fn a_server_that_is_not_there() {
    for (before, behind) in GREETING {
        let address = format!("{before}127.0.0.1:1{behind}");
        let words = ["127.0.0.1:1", "is the server up?"];
        assert_refused(&load(&address, "--transactions 1"), 1, &words);
    }
    for address in [
        "/nowhere/s",
        "mysql://me@/?socket=/nowhere/s",
        "postgresql://me@/bank?host=/nowhere",
    ] {
        let words = ["/nowhere/", "No such file", "is the server up?"];
        assert_refused(&load(address, "--transactions 1"), 1, &words);
    }
}

fn silent(mut stream: &TcpStream) {
    // Until the client has given up.
    let _ = stream.read_to_end(&mut Vec::new());
}

#[test]
fn a_server_that_does_not_answer() {
    let server = Server::start_with(|stream, _| silent(stream));
    for (before, behind) in GREETING {
        let address = format!("{before}{}{behind}", server.address);
        let ended = load(&address, "--transactions 1 --connect-timeout 300ms");
        let words = [&*server.address, "no answer in 0.3 s", "the right port"];
        assert_refused(&ended, 1, &words);
    }
}

#[test]
fn a_server_that_closes_at_once() {
    let server = Server::start_with(|stream, _| {
        let _ = stream.shutdown(Shutdown::Both);
    });
    for (before, behind) in GREETING {
        let address = format!("{before}{}{behind}", server.address);
        let ended = load(&address, "--transactions 1");
        assert_refused(&ended, 1, &[&server.address, "is it the right port?"]);
    }
}

#[test]
fn a_service_of_another_kind() {
    for greeting in [MARIADB, REDIS, SSH, HTTP] {
        let server = Server::start_with(move |mut stream, _| {
            let _ = stream.write_all(greeting);
            silent(stream);
        });
        for (before, behind) in GREETING {
            if greeting == MARIADB && before.starts_with("mysql") {
                continue;
            }
            let address = format!("{before}{}{behind}", server.address);
            let ended = load(&address, "--transactions 1 --connect-timeout 10s");
            let said = ended.stderr();
            assert_eq!(ended.output.status.code(), Some(1), "{said}");
            assert!(said.contains(&server.address), "{said}");
            let refused = said.contains("is this the right port?")
                || (greeting == REDIS && said.contains("ERR unknown command"));
            assert!(refused, "{address}: {said}");
        }
    }
}

#[test]
fn a_signal_stops_it_while_nothing_answers() {
    let server = Server::start_with(|stream, counter| {
        counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        silent(stream);
    });
    let (int, term) = ((Signal::SIGINT, 130), (Signal::SIGTERM, 143));
    for (what, connections, (signal, code)) in [
        ("--command COMMIT --threads 1", 1, int),
        ("--command COMMIT --threads 3", 3, term),
        ("--command COMMIT --processes", 3, int),
        ("--workload read", 1, int),
        ("--workload read", 1, term),
    ] {
        let address = format!("mysql://me@{}", server.address);
        let arguments = format!("--sessions 3 --connect-timeout 1h {what}");
        let arguments: Vec<&str> = arguments.split_whitespace().collect();
        let before = server.requests();
        let child = start(&address, &arguments);
        server.wait_for(before + connections);
        kill(Pid::from_raw(child.id() as i32), signal).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{what}: {said}");
        assert!(said.contains("stopped before"), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
}
