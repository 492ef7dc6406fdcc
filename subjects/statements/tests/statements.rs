//! Results of statements with all kinds of caches, and invariants of the caches.

mod common;

use std::collections::HashMap;
use std::thread;

use common::{Memory, Schema};
use concurve_latch::Spin;
use concurve_statements::{
    Answer, CacheOptions, Caching, Counters, SessionOptions, StatementError, Statements, Value,
};
use proptest::prelude::*;

const ALL: [Caching; 3] = [Caching::Off, Caching::Single, Caching::Striped];

fn statements(caching: Caching, pages: usize) -> Statements {
    Statements::new(&CacheOptions {
        caching,
        pages,
        engines: 2,
        spin: Spin::Times(100),
    })
}

fn options() -> SessionOptions {
    SessionOptions::default()
}

fn run(
    statements: &Statements,
    text: &str,
    given: &[Value],
    files: &mut Memory,
) -> Result<Answer, StatementError> {
    let plan = statements.plan(0, text, &options(), &Schema(1))?;
    plan.execute(given, files)
}

#[test]
fn each_operation_has_its_effect() {
    for caching in ALL {
        let statements = statements(caching, 100);
        let mut files = Memory::default();
        let mut run =
            |text: &str, given: &[Value]| run(&statements, text, given, &mut files).expect("sound");
        assert_eq!(run("INSERT accounts ? ?", &[1, 10]), Answer::Done);
        assert_eq!(run("INSERT accounts ? ?", &[1, 11]), Answer::Exists);
        assert_eq!(run("insert accounts 2 -5", &[]), Answer::Done);
        assert_eq!(run("INSERT tellers ? 0", &[2]), Answer::Done);
        assert_eq!(run("GET accounts balance KEY ?", &[1]), Answer::Value(10));
        assert_eq!(
            run("ADD accounts balance ? key ?", &[7, 1]),
            Answer::Value(17)
        );
        assert_eq!(
            run("  GET accounts\tbalance KEY 1 ", &[]),
            Answer::Value(17)
        );
        assert_eq!(run("GET accounts balance KEY ?", &[3]), Answer::NotFound);
        assert_eq!(
            run("GET accounts balance KEY ? for update /* it */", &[1]),
            Answer::Value(17)
        );
        assert_eq!(run("ADD tellers balance ? KEY 9", &[1]), Answer::NotFound);
        assert_eq!(run("COUNT accounts FROM ? TO ?", &[1, 2]), Answer::Total(2));
        assert_eq!(run("COUNT accounts FROM 2 TO ?", &[9]), Answer::Total(1));
        let sum = "SUM accounts balance /* of all */ FROM ? TO 9 /* */";
        assert_eq!(run(sum, &[1]), Answer::Total(12));
        assert_eq!(run(sum, &[3]), Answer::Total(0));
        assert_eq!(run("DELETE accounts KEY ?", &[2]), Answer::Done);
        assert_eq!(run("DELETE accounts KEY ?", &[2]), Answer::NotFound);
    }
}

#[test]
fn invalid_statements_are_refused_with_the_reason() {
    let statements = statements(Caching::Single, 100);
    let refusal = |text: &str| {
        let error = statements.plan(0, text, &options(), &Schema(1));
        error.expect_err("no statement").to_string()
    };
    for (text, reason) in [
        (
            "",
            "'': it ends where GET, ADD, INSERT, DELETE, COUNT, SUM is expected",
        ),
        (
            "SELECT 1",
            "'SELECT 1': 'SELECT' is not one of GET, ADD, INSERT, DELETE, COUNT, SUM",
        ),
        (
            "GET nothing x KEY 1",
            "there is no file named nothing: create it first",
        ),
        (
            "GET accounts x KEY 1",
            "file accounts has no field named x: it has id, balance",
        ),
        (
            "GET accounts balance 1",
            "'GET accounts balance 1': '1' instead of KEY",
        ),
        (
            "GET accounts balance KEY",
            "'GET accounts balance KEY': it ends where a value is expected",
        ),
        (
            "GET accounts balance KEY 1 FOR",
            "'GET accounts balance KEY 1 FOR': it ends where UPDATE is expected",
        ),
        (
            "GET accounts balance KEY 1 FOR SHARE",
            "'GET accounts balance KEY 1 FOR SHARE': 'SHARE' instead of UPDATE",
        ),
        (
            "GET accounts balance KEY 1 2",
            "'GET accounts balance KEY 1 2': unexpected '2' after the end",
        ),
        (
            "DELETE accounts KEY 1 2",
            "'DELETE accounts KEY 1 2': unexpected '2' after the end",
        ),
        (
            "ADD accounts id 1 KEY 1",
            "'ADD accounts id 1 KEY 1': the first field is the key: DELETE the record, and INSERT \
             another",
        ),
        (
            "DELETE /* all of accounts",
            "'DELETE /* all of accounts': the comment has no */",
        ),
        (
            "INSERT accounts 1 x",
            "'INSERT accounts 1 x': 'x' is neither ? nor a 64-bit integer",
        ),
    ] {
        assert_eq!(refusal(text), reason);
    }
    assert_eq!(statements.counters(), Counters::default());
    assert_eq!(statements.free_pages(), 100);
    let error = run(
        &statements,
        "GET accounts balance KEY ?",
        &[],
        &mut Memory::default(),
    );
    let text = error.expect_err("too few").to_string();
    assert_eq!(text, "the statement has 1 parameters and was given 0");
}

#[test]
fn plans_are_distinguished_by_options_and_versions() {
    for caching in [Caching::Single, Caching::Striped] {
        let statements = statements(caching, 100);
        let other = SessionOptions {
            user: "ann".to_owned(),
            ..options()
        };
        let plan = |options: &SessionOptions, version| {
            let plan = statements.plan(0, "DELETE accounts KEY 1", options, &Schema(version));
            plan.expect("sound").version
        };
        assert_eq!(
            (plan(&options(), 1), plan(&other, 1), plan(&options(), 1)),
            (1, 1, 1)
        );
        let counts = |it: Counters| (it.cached, it.dropped, it.found);
        assert_eq!(counts(statements.counters()), (2, 0, 1));
        // A file has changed.
        assert_eq!((plan(&options(), 2), plan(&options(), 2)), (2, 2));
        assert_eq!(counts(statements.counters()), (3, 1, 2));
    }
}

#[test]
fn only_plans_in_use_exhaust_the_procedure_cache() {
    for caching in ALL {
        let statements = statements(caching, 4);
        let text = |number: usize| format!("DELETE accounts KEY {number}");
        let plan =
            |number: usize| statements.plan(number % 2, &text(number), &options(), &Schema(1));
        // Many plans that are not in use.
        for number in 0..100 {
            plan(number).expect("pages are free");
        }
        let held: Vec<_> = (200..204)
            .map(|it| plan(it).expect("pages are free"))
            .collect();
        assert_eq!(statements.free_pages(), 0);
        let error = plan(300).expect_err("all in use");
        assert_eq!(
            error,
            StatementError::Exhausted {
                pages: 4,
                wanted: 1
            }
        );
        assert!(error.to_string().contains("--procedure-cache"));
        assert_eq!(statements.counters().exhausted, 1);
        // A plan in use stays in the cache.
        if caching != Caching::Off {
            plan(200).expect("it is there");
            assert_eq!(statements.counters().found, 1);
        }
        // All are still usable, and one that is released frees its pages.
        assert!(held.iter().all(|it| it.parameters == 0));
        drop(held);
        plan(300).expect("pages are free");
    }
}

#[test]
fn recently_found_plans_stay() {
    for caching in [Caching::Single, Caching::Striped] {
        let statements = statements(caching, 8);
        let hot = "GET accounts balance KEY ?";
        for number in 0..100 {
            let once = format!("DELETE accounts KEY {number}");
            for text in [hot, once.as_str()] {
                let plan = statements.plan(0, text, &options(), &Schema(1));
                plan.expect("pages are free");
            }
        }
        let counters = statements.counters();
        let found = (counters.found, counters.cached, counters.compiled);
        assert_eq!(found, (99, 101, 101), "{caching:?}");
    }
}

/// The text of a statement, its parameters, and its effect on a model.
#[derive(Debug, Clone)]
enum Step {
    Get(Value),
    Add(Value, Value),
    Insert(Value, Value),
    Delete(Value),
    Count(Value, Value),
    Sum(Value, Value),
}

impl Step {
    /// With literals or with parameters.
    fn text(&self, literal: bool) -> (String, Vec<Value>) {
        let (pattern, values) = match *self {
            Step::Get(key) => ("GET accounts balance KEY #", vec![key]),
            Step::Add(key, delta) => ("ADD accounts balance # KEY #", vec![delta, key]),
            Step::Insert(key, value) => ("INSERT accounts # #", vec![key, value]),
            Step::Delete(key) => ("DELETE accounts KEY #", vec![key]),
            Step::Count(from, to) => ("COUNT accounts FROM # TO #", vec![from, to]),
            Step::Sum(from, to) => ("SUM accounts balance FROM # TO #", vec![from, to]),
        };
        let mut text = pattern.to_owned();
        for value in &values {
            let word = if literal {
                value.to_string()
            } else {
                "?".to_owned()
            };
            text = text.replacen('#', &word, 1);
        }
        (text, if literal { Vec::new() } else { values })
    }

    fn on_model(&self, model: &mut HashMap<Value, Value>) -> Answer {
        match *self {
            Step::Get(key) => model
                .get(&key)
                .map_or(Answer::NotFound, |it| Answer::Value(*it)),
            Step::Add(key, delta) => model.get_mut(&key).map_or(Answer::NotFound, |it| {
                *it += delta;
                Answer::Value(*it)
            }),
            Step::Insert(key, _) if model.contains_key(&key) => Answer::Exists,
            Step::Insert(key, value) => {
                model.insert(key, value);
                Answer::Done
            }
            Step::Delete(key) => model
                .remove(&key)
                .map_or(Answer::NotFound, |_| Answer::Done),
            Step::Count(from, to) => {
                let keys = model.keys().filter(|it| (from..=to).contains(it));
                Answer::Total(keys.count() as Value)
            }
            Step::Sum(from, to) => {
                let found = model.iter().filter(|it| (from..=to).contains(it.0));
                Answer::Total(found.map(|it| it.1).sum())
            }
        }
    }
}

fn steps() -> impl Strategy<Value = Step> {
    let key = || 0..12_i64;
    prop_oneof![
        key().prop_map(Step::Get),
        (key(), -99..99_i64).prop_map(|(key, delta)| Step::Add(key, delta)),
        (key(), -99..99_i64).prop_map(|(key, value)| Step::Insert(key, value)),
        key().prop_map(Step::Delete),
        (key(), key()).prop_map(|(from, to)| Step::Count(from, to)),
        (key(), key()).prop_map(|(from, to)| Step::Sum(from, to)),
    ]
}

proptest! {
    #[test]
    fn answers_are_the_models_and_counters_add_up(
        steps in prop::collection::vec((steps(), any::<bool>(), 0_usize..2), 1..200),
        pages in 1_usize..12,
        which in 0_usize..3,
    ) {
        let statements = statements(ALL[which], pages);
        let (mut files, mut model) = (Memory::default(), HashMap::new());
        let total = steps.len() as u64;
        for (step, literal, engine) in steps {
            let (text, given) = step.text(literal);
            let plan = statements.plan(engine, &text, &options(), &Schema(1)).expect("one fits");
            let answer = plan.execute(&given, &mut files).expect("sound");
            prop_assert_eq!(answer, step.on_model(&mut model));
        }
        let counters = statements.counters();
        prop_assert_eq!(counters.found + counters.compiled, total);
        prop_assert_eq!(counters.exhausted, 0);
        // Each plan in the cache has one page, because texts are short.
        let in_cache = counters.cached - counters.dropped;
        prop_assert_eq!(statements.free_pages() as u64, pages as u64 - in_cache);
        if ALL[which] == Caching::Off {
            prop_assert_eq!(counters.compiled, total);
            prop_assert_eq!(counters.cached, 0);
        } else {
            prop_assert_eq!(counters.cached, counters.compiled);
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_compiler_panic(text in "\\PC{0,80}") {
        let _ = statements(Caching::Off, 100).plan(0, &text, &options(), &Schema(1));
    }

    #[test]
    fn damaged_statements_are_executed_or_refused_and_leak_no_page(
        words in prop::collection::vec(
            prop_oneof![
                Just("GET"), Just("add"), Just("INSERT"), Just("DELETE"), Just("COUNT"), Just("SUM"),
                Just("accounts"), Just("tellers"), Just("id"), Just("balance"), Just("KEY"),
                Just("FROM"), Just("to"), Just("?"), Just("7"), Just("-9223372036854775808"),
                Just("9223372036854775808"), Just("/*"), Just("*/"), Just("+"), Just("é"),
            ],
            0..10,
        )
    ) {
        let statements = statements(Caching::Single, 100);
        let text = words.join(" ");
        match statements.plan(0, &text, &options(), &Schema(1)) {
            Ok(plan) => {
                let given = vec![1; plan.parameters];
                prop_assert!(plan.execute(&given, &mut Memory::default()).is_ok());
            }
            Err(error) => {
                prop_assert!(!error.to_string().is_empty());
                prop_assert_eq!(statements.free_pages(), 100);
            }
        }
    }
}

#[test]
fn engines_share_the_caches_without_losing_pages() {
    for caching in ALL {
        for spin in [Spin::Times(100), Spin::Only] {
            let statements = Statements::new(&CacheOptions {
                caching,
                pages: 24,
                engines: 3,
                spin,
            });
            thread::scope(|scope| {
                for engine in 0..3 {
                    let statements = &statements;
                    scope.spawn(move || {
                        let mut files = Memory::default();
                        let mut draw = engine as u32;
                        for _ in 0..3000 {
                            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                            let key = draw >> 16 & 31;
                            let text = format!("INSERT accounts {key} ?");
                            let plan = statements.plan(engine, &text, &options(), &Schema(1));
                            let answer = plan.expect("pages are free").execute(&[1], &mut files);
                            assert!(answer.is_ok());
                            assert!(files.0.contains_key(&(0, i64::from(key))));
                        }
                    });
                }
            });
            let counters = statements.counters();
            assert_eq!(counters.found + counters.compiled, 9000, "{caching:?}");
            let in_cache = (counters.cached - counters.dropped) as usize;
            assert_eq!(statements.free_pages() + in_cache, 24, "{caching:?}");
        }
    }
}
