use clap::CommandFactory;

use super::*;

#[test]
fn the_command_line_is_sound_and_a_password_is_needed_beyond_loopback() {
    ServerArgs::command().debug_assert();
    let parse =
        |arguments: &[&str]| ServerArgs::try_parse_from([&["concurve-server"], arguments].concat());
    assert!(parse(&[]).unwrap().options().is_ok());
    let error = parse(&["--bind", "0.0.0.0"])
        .unwrap()
        .options()
        .unwrap_err();
    assert!(error.to_string().contains("needs a password"), "{error}");
    assert!(parse(&["--io-threads", "0"]).is_err());
    assert!(parse(&["--idle", "spin:x"]).is_err());
}

#[test]
fn options_say_how_many_engines_there_are() {
    let options = |line: &str| {
        let words = std::iter::once("concurve-server").chain(line.split_whitespace());
        ServerArgs::try_parse_from(words).unwrap().options()
    };
    for (line, execution, engines, io_threads) in [
        ("", Execution::Worker, 1, 1),
        ("--engine-count 3 --io-threads 2", Execution::Worker, 3, 2),
        ("--execution inline --io-threads 4", Execution::Inline, 4, 4),
        ("--engines processes", Execution::Inline, 1, 1),
        (
            "--engines processes --engine-count 2",
            Execution::Inline,
            2,
            2,
        ),
    ] {
        let found = options(line).unwrap().threads;
        let found = (found.execution(), found.engines(), found.io_threads());
        assert_eq!(found, (execution, engines, io_threads), "{line}");
    }
    for (line, why) in [
        ("--engines processes --io-threads 2", "say --engine-count"),
        ("--engines processes --execution worker", "leave it out"),
        ("--execution inline --engine-count 2", "say --io-threads"),
        ("--engines processes --replies engine", "--replies is for"),
    ] {
        let error = options(line).unwrap_err();
        assert!(error.to_string().contains(why), "{line}: {error}");
    }
}

#[test]
fn each_service_has_its_own_options() {
    let options = |line: &str| {
        let words = std::iter::once("concurve-server").chain(line.split_whitespace());
        ServerArgs::try_parse_from(words).unwrap().options()
    };
    for (line, why) in [
        ("--latching file", "--latching file is not for locks"),
        ("--durability each", "--durability each is not for locks"),
        ("--folder x", "--folder is not for locks"),
        ("--service records", "needs --folder"),
        (
            "--service records --folder x --backup y",
            "--backup is not for records",
        ),
        (
            "--service records --folder x --durability power",
            "not for records: take none",
        ),
        (
            "--statement-cache off",
            "--statement-cache is not for locks: say --service statements",
        ),
        (
            "--service records --folder x --procedure-cache 16384",
            "--procedure-cache is not for records: say --service statements",
        ),
        ("--spin only", "--spin is not for locks"),
        (
            "--cache-mib 64",
            "--cache-mib is not for locks: say --service records",
        ),
        (
            "--service statements --folder x --capacity 5",
            "--capacity is not for statements: say --service locks",
        ),
    ] {
        let error = options(line).unwrap_err();
        assert!(error.to_string().contains(why), "{line}: {error}");
    }
    let statements = options("--service statements --folder x --spin only").unwrap();
    let statements = statements.statements.unwrap();
    assert_eq!(statements.procedure_cache_kib, 16_384);
    assert_eq!(statements.spin.to_string(), "only");
    let records = options("--service records --folder x --latching file --cache-mib 1");
    let records = records.unwrap().records.unwrap();
    assert_eq!(records.engine.cache_pages, 128);
    assert_eq!(
        records.engine.durability,
        concurve_records::Durability::Group
    );
}

#[test]
fn a_distance_of_checkpoints_that_was_given_is_kept() {
    let distance = |given: &str| {
        let line = format!("concurve-server --service records --folder x {given}");
        let parsed = ServerArgs::try_parse_from(line.split_whitespace()).unwrap();
        let engine = parsed.options().unwrap().records.unwrap().engine;
        (engine.checkpoint_bytes >> 20, engine.checkpoint_stretch)
    };
    assert_eq!(distance(""), (64, 4));
    assert_eq!(distance("--checkpoint-mib 64"), (64, 1));
    assert_eq!(distance("--checkpoint-mib 7"), (7, 1));
}

/// Each numeric option: the least and the greatest value that it takes, and what else the command line
/// needs for it.
const NUMBERS: &[(&str, u64, u64, &str)] = &[
    ("--port", 0, 65_535, ""),
    ("--engine-count", 1, 256, ""),
    ("--io-threads", 1, 256, ""),
    ("--shared-memory", 16, 65_536, ""),
    ("--login-timeout-s", 1, u32::MAX as u64, ""),
    ("--wrong-passwords-per-s", 1, 1_000_000, ""),
    ("--request-bytes-max", 64, 1 << 28, ""),
    ("--arguments-max", 1, 1 << 20, ""),
    ("--pipeline-max", 1, u32::MAX as u64, ""),
    ("--output-bytes-max", 1024, u32::MAX as u64, ""),
    ("--maxmemory-clients", 1 << 16, 1 << 44, ""),
    ("--stalled-s", 1, u32::MAX as u64, ""),
    ("--capacity", 1, 1_000_000_000, ""),
    ("--cache-mib", 1, 1 << 20, "--service records --folder x"),
    (
        "--checkpoint-mib",
        1,
        1 << 20,
        "--service records --folder x",
    ),
    (
        "--procedure-cache",
        2,
        1 << 22,
        "--service statements --folder x",
    ),
    (
        "--spin",
        0,
        u32::MAX as u64,
        "--service statements --folder x",
    ),
];

#[test]
fn numbers_beyond_their_borders_are_refused_with_the_option_and_the_value() {
    let parse = |name: &str, value: &str, others: &str| {
        let words = std::iter::once("concurve-server").chain(others.split_whitespace());
        let option = format!("{name}={value}");
        let words = words.map(str::to_owned).chain([option]);
        let parsed = ServerArgs::try_parse_from(words).map_err(|error| error.to_string());
        parsed.and_then(|it| it.options().map_err(|error| error.to_string()))
    };
    let refused = |name: &str, value: &str| {
        let error = parse(name, value, "").expect_err(&format!("{name}={value}"));
        assert!(error.contains(name) && error.contains(value), "{error}");
    };
    for (name, least, most, others) in NUMBERS {
        for value in [least, most] {
            let parsed = parse(name, &value.to_string(), others);
            assert!(parsed.is_ok(), "{name}={value}: {parsed:?}");
        }
        if *least > 0 {
            refused(name, &(least - 1).to_string());
        }
        refused(name, &(most + 1).to_string());
    }
    let others = [
        ("--clients-max", &["0", "4294967295", "4294967296"][..]),
        ("--idle", &["spin:0", "spin:1000001", "spin:-1"]),
    ];
    let names = NUMBERS.iter().map(|(name, ..)| *name);
    for name in names.clone().chain(["--clients-max"]) {
        for value in ["-1", "1.5", "1e3", "x", "99999999999999999999999999"] {
            refused(name, value);
        }
    }
    for (name, values) in others {
        values.iter().for_each(|value| refused(name, value));
    }
    // A number that is added to the command line is added here, too.
    let command = ServerArgs::command();
    let numbers = command.get_arguments().filter(|it| {
        let default = it.get_default_values().first();
        let default = default.and_then(|it| it.to_str()).map(str::parse::<u64>);
        let unit = it
            .get_value_names()
            .and_then(|it| it.first())
            .map(|it| it.as_str());
        let units = [
            "N",
            "MIB",
            "KIB",
            "LOCKS",
            "BYTES",
            "SECONDS",
            "CHECKS|only",
        ];
        matches!(default, Some(Ok(_))) || unit.is_some_and(|it| units.contains(&it))
    });
    for argument in numbers {
        let name = format!("--{}", argument.get_long().expect("options have names"));
        let is_known = names.clone().any(|it| it == name) || name == "--clients-max";
        assert!(is_known, "{name} is missing here");
    }
}

#[test]
fn before_the_login_the_limits_are_small_and_let_a_password_pass() {
    for line in [
        &["concurve-server"][..],
        &["concurve-server", "--request-bytes-max", "64"],
    ] {
        let options = ServerArgs::try_parse_from(line).unwrap().options().unwrap();
        let (login, limits) = (options.login.limits, options.limits);
        assert!(login.request.bytes_max >= 2048 && login.request.bytes_max <= 16_384);
        assert!(
            login.request.arguments_max >= 7,
            "HELLO 3 AUTH user password SETNAME name"
        );
        assert!(
            login.output_bytes_max <= 1024 && login.output_bytes_max <= limits.output_bytes_max
        );
        assert!(login.pipeline_max <= limits.pipeline_max);
    }
}

#[test]
fn what_the_memory_cannot_hold_is_refused_with_the_figure_to_set() {
    let options = |line: &str| {
        let words = std::iter::once("concurve-server").chain(line.split_whitespace());
        ServerArgs::try_parse_from(words).unwrap().options()
    };
    for (line, is_refused) in [
        (
            "--service records --folder x --cache-mib 60 --shared-memory 64",
            false,
        ),
        (
            "--service records --folder x --cache-mib 64 --shared-memory 64",
            true,
        ),
        (
            "--service records --folder x --cache-mib 1048576 --shared-memory 65536",
            true,
        ),
        (
            "--service statements --folder x --procedure-cache 4194304 --shared-memory 64",
            true,
        ),
        ("--service locks --shared-memory 16", false),
        (
            "--service locks --shared-memory 64 --capacity 174762",
            false,
        ),
        ("--service locks --shared-memory 64 --capacity 174763", true),
        (
            "--service locks --shared-memory 65536 --capacity 1000000000",
            true,
        ),
    ] {
        let found = options(line).unwrap().check_memory(None);
        assert_eq!(found.is_err(), is_refused, "{line}");
        if let Err(error) = found {
            assert!(error.to_string().contains("raise it, or lower"), "{error}");
        }
    }
    // A container of 64 MiB.
    for (line, is_refused) in [
        ("--service locks --capacity 500000", false),
        ("--service locks --capacity 600000", true),
        ("--service records --folder x --cache-mib 63", false),
        ("--service records --folder x --cache-mib 65", true),
        (
            "--service statements --folder x --cache-mib 32 --procedure-cache 65536",
            true,
        ),
    ] {
        let found = options(line).unwrap().check_memory(Some(64 << 20));
        assert_eq!(found.is_err(), is_refused, "{line}");
        if let Err(error) = found {
            let text = error.to_string();
            assert!(
                text.contains("64 MiB") && text.contains("lower --"),
                "{text}"
            );
        }
    }
}
