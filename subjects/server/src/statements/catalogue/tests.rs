//! A catalogue over an engine in a folder.

use concurve_records::EngineOptions;

use super::*;

fn names(fields: &[&str]) -> Vec<String> {
    fields.iter().map(|it| (*it).to_owned()).collect()
}

fn create(catalogue: &Catalogue, engine: &Engine, name: &str, fields: &[&str]) -> String {
    let created = catalogue.create(engine, name.to_owned(), names(fields), None);
    created.map_or_else(|it| it.to_string(), |()| "OK".to_owned())
}

#[test]
fn files_are_there_again_after_another_start_with_their_fields_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let many: Vec<String> = (0..FIELDS_MAX).map(|it| format!("f{it}")).collect();
    for start in 0..2 {
        let (engine, _) = Engine::open(folder.path(), EngineOptions::default()).unwrap();
        let catalogue = Catalogue::open(&engine).unwrap();
        if start == 0 {
            assert_eq!(create(&catalogue, &engine, "b", &["id", "x"]), "OK");
            assert_eq!(create(&catalogue, &engine, "d-b", &["id"]), "OK");
            assert_eq!(create(&catalogue, &engine, "gone", &["id"]), "OK");
            catalogue.drop_file(&engine, "gone").unwrap();
            let many = many.clone();
            catalogue
                .create(&engine, "many".to_owned(), many, Some(1000))
                .unwrap();
        }
        let view = |database| View {
            catalogue: &catalogue,
            database,
        };
        assert_eq!(view("").files(""), ["b", "many"]);
        assert_eq!(view("d").files("b"), ["b"]);
        assert_eq!(view("d").file_named("b").unwrap().fields, ["id"]);
        let file = view("").file_named("many").unwrap();
        assert_eq!(
            (file.fields.clone(), file.record_bytes),
            (many.clone(), 1000)
        );
        engine.close().unwrap();
    }
}

#[test]
fn an_incomplete_file_after_a_crash_does_not_exist_and_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = Engine::open(folder.path(), EngineOptions::default()).unwrap();
    Catalogue::open(&engine).unwrap();
    fields::insert(&mut engine.session(), "half", &names(&["a", "b", "c"])).unwrap();
    let catalogue = Catalogue::open(&engine).unwrap();
    let view = View {
        catalogue: &catalogue,
        database: "",
    };
    assert!(view.files("").is_empty());
    assert_eq!(create(&catalogue, &engine, "half", &["id"]), "OK");
    let again = Catalogue::open(&engine).unwrap();
    assert_eq!(again.file(FileId(0)).fields, ["id"]);
}

#[test]
fn invalid_definitions_are_refused_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (engine, _) = Engine::open(folder.path(), EngineOptions::default()).unwrap();
    engine.create_file("records", &definition(8)).unwrap();
    let catalogue = Catalogue::open(&engine).unwrap();
    for (name, fields, why) in [
        ("a", &["id", "x", "id"][..], "two fields are named id"),
        ("a", &[], "0 fields: a file has 1 to 64"),
        ("a", &["id", "a b"], "'a b' is not a valid name of a field"),
        ("records", &["id"], "the statement service has not created"),
    ] {
        let refusal = create(&catalogue, &engine, name, fields);
        assert!(refusal.contains(why), "{refusal}");
    }
    let short = catalogue.create(&engine, "a".to_owned(), names(&["id", "x"]), Some(15));
    assert!(short.unwrap_err().to_string().contains("2 fields need 16"));
    assert_eq!(create(&catalogue, &engine, "a", &["id"]), "OK");
    assert!(create(&catalogue, &engine, "a", &["id"]).starts_with("59:"));
    assert!(catalogue.drop_file(&engine, "records").is_err());
    let view = View {
        catalogue: &catalogue,
        database: "",
    };
    assert_eq!(view.files(""), ["a"]);
    for name in ["", "a-b", "é", &"x".repeat(65)] {
        assert!(view.name(name).is_err(), "{name}");
    }
    let long = View {
        database: &"d".repeat(60),
        ..view
    };
    assert!(long.name("files").is_err());
}
