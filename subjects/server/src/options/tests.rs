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
