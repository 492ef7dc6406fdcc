//! What programs find: controls, descriptors, signals, and readers of their output.

use concurve_probe::proc_fs::ProcFs;
use concurve_wire::record::OutcomeKind;
use concurve_wire::spec::PolicyClass;
use serde_json::json;

use crate::common::{self, TRIAL, Trial, python, record, role};

#[test]
fn roles_are_ordinary_tasks_although_the_runner_is_not() {
    let script = "cut -d' ' -f19,41 /proc/self/stat";
    let record = record(role("target", ["sh", "-c", script]).into());
    let target = &record.roles[0];
    // The nice value is inherited, and these tests may run under one.
    let own = ProcFs::default().stat(std::process::id()).unwrap().nice;
    let ordinary = format!("{own} 0");
    assert_eq!(target.stdout.head.trim(), ordinary, "nice value, policy");
    let granted = record.instrument.sources.contains(&"real_time".to_owned());
    assert!(granted != record.instrument.absent.contains_key("real_time"));
}

#[test]
fn controls_are_granted_and_read_back() {
    let script =
        "import os; print(sorted(os.sched_getaffinity(0)), os.nice(0), os.sched_getscheduler(0))";
    let mut target = role("target", [python(), "-c", script]);
    target["controls"] = json!({"cpus": [0], "nice": 7, "policy": {"class": "batch"}});
    let record = record(target.into());
    let target = &record.roles[0];
    assert_eq!(target.stdout.head, "[0] 7 3\n");
    assert_eq!(
        (target.controls.cpus.clone(), target.controls.nice),
        (Some(vec![0]), Some(7))
    );
    assert_eq!(target.controls.policy.unwrap().class, PolicyClass::Batch);
    let thread = &target.threads.listed[0];
    assert_eq!(
        (thread.nice, thread.policy.unwrap().class),
        (Some(7), PolicyClass::Batch)
    );
}

#[test]
fn a_cpu_that_does_not_exist_stops_the_trial_before_it_runs() {
    let mut target = role("target", ["true"]);
    target["controls"] = json!({"cpus": [0, 4000]});
    let record = record(target.into());
    assert_eq!(record.outcome.kind, OutcomeKind::ControlRefused);
    assert!(record.outcome.message.unwrap().contains("4000"));
    assert_eq!(record.roles[0].exit, None);
}

#[test]
fn without_privilege_refusals_name_the_capability() {
    if !common::can_run_as_nobody() {
        eprintln!("skipped: setpriv cannot drop privileges here");
        return;
    }
    for (controls, missing) in [
        (json!({"nice": -5}), "RLIMIT_NICE"),
        (
            json!({"policy": {"class": "fifo", "priority": 5}}),
            "RLIMIT_RTPRIO",
        ),
    ] {
        let mut target = role("target", ["true"]);
        target["controls"] = controls;
        let refused = common::record_without_privilege(target.into());
        assert_eq!(refused.outcome.kind, OutcomeKind::ControlRefused);
        let message = refused.outcome.message.unwrap();
        assert!(
            message.contains(missing) && message.contains("CAP_SYS_NICE"),
            "{message}"
        );
    }
    // Sources that are not granted are absent with a reason; the others are read.
    let record =
        common::record_without_privilege(role("target", ["sh", "-c", "true | true"]).into());
    assert_eq!(record.outcome.kind, OutcomeKind::Ok);
    assert!(record.instrument.absent["taskstats"].contains("CAP_NET_ADMIN"));
    let target = &record.roles[0];
    assert!(target.usage.cpu_ns.unwrap() > 0);
    assert!(target.usage.run_queue_ns.is_none() && target.usage.absent.contains_key("slices"));
    match target.threads.absent.get("peak") {
        // The shell, and two more for the pipe, or one if the shell runs the last itself.
        None => assert!((2..=3).contains(&target.threads.processes.unwrap())),
        Some(_) => assert!(target.threads.absent.contains_key("total")),
    }
}

#[test]
fn output_of_any_length_is_drained_and_bounded() {
    let script = "head -c 100000000 /dev/zero | tr '\\0' a; printf end";
    let mut trial = Trial::from(role("target", ["sh", "-c", script]));
    trial.0["output_bytes_max"] = 1000.into();
    let record = record(trial);
    let output = &record.roles[0].stdout;
    assert_eq!((output.bytes, output.dropped), (100_000_003, 99_999_003));
    assert_eq!((output.head.len(), output.tail.len()), (500, 500));
    assert!(output.tail.ends_with("aend"));
}

#[test]
fn the_program_gets_its_four_descriptors_and_no_other() {
    let script = "import os; print(sorted(os.listdir('/proc/self/fd')), os.read(0, 1), os.environ['CONCURVE_REPORT'], os.environ['CONCURVE_TRIAL'])";
    let record = record(role("target", [python(), "-c", script]).into());
    // The fourth is the listing's own.
    assert_eq!(
        record.roles[0].stdout.head,
        format!("['0', '1', '2', '3', '4'] b'' 3 {TRIAL}\n")
    );
}

#[test]
fn signals_arrive_as_if_started_by_hand() {
    let script = "import signal; print(signal.pthread_sigmask(signal.SIG_BLOCK, []), [s for s in (signal.SIGTERM, signal.SIGCHLD) if signal.getsignal(s) != signal.SIG_DFL])";
    let record = record(role("target", [python(), "-c", script]).into());
    assert_eq!(record.roles[0].stdout.head, "set() []\n");
}

#[test]
fn the_timeline_of_the_cpus_adds_up_to_their_busy_time() {
    let script = "import time\n\
        time.sleep(0.6)\n\
        end = time.monotonic() + 0.3\n\
        while time.monotonic() < end: pass";
    let record = record(role("target", [python(), "-c", script]).into());
    let machine = &record.machine;
    let timeline = machine.cpu_timeline.as_ref().expect("a timeline");
    assert!(timeline.ends_ns.is_sorted_by(|one, next| one < next));
    assert!(timeline.ends_ns.len() >= 2);
    assert!(*timeline.ends_ns.last().unwrap() >= record.wall_ns);
    assert!(!timeline.busy_ticks.is_empty());
    for (cpu, ticks) in &timeline.busy_ticks {
        assert_eq!(ticks.len(), timeline.ends_ns.len(), "CPU {cpu}");
        let sum_ns = ticks.iter().sum::<u64>() * machine.tick_ns.unwrap();
        assert_eq!(sum_ns, machine.busy_ns_by_cpu[cpu], "CPU {cpu}");
    }
    assert!(!machine.absent.contains_key("cpu_timeline"));
}

#[test]
fn a_trial_that_is_too_short_for_a_timeline_says_so() {
    let machine = record(role("target", ["true"]).into()).machine;
    // It may take long where many others run.
    match machine.cpu_timeline {
        None => assert!(machine.absent["cpu_timeline"].contains("too short")),
        Some(timeline) => assert!(timeline.ends_ns.len() >= 2),
    }
}

#[test]
fn timers_of_a_program_are_as_exact_as_without_the_runner() {
    let read = "cat /proc/self/timerslack_ns";
    let own = std::fs::read_to_string("/proc/self/timerslack_ns").unwrap();
    let found = record(Trial::of([role("target", ["sh", "-c", read])]));
    assert_eq!(found.roles[0].stdout.head, own);
}
