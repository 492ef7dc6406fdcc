//! Who called this program: the name by which the user did, with which messages begin and what they
//! propose to type does, and whether a study did, which reads the record.

use concurve_reporter::Reporter;

/// Set by `concurve`, which starts this program by its file: what its user would type.
const CALLED_VARIABLE: &str = "CONCURVE_CALLED";

/// Set by `concurve load --attach`: a trial observes this load, and its user waits for its answer.
const ATTACHED_VARIABLE: &str = "CONCURVE_LOAD_ATTACHED";

/// Does a study run this load? It reads from the record what was found and how busy the machine was,
/// so neither is the exit code's matter.
pub fn by_a_study(reporter: &Reporter) -> bool {
    reporter.is_connected() && !beside_attached()
}

/// Is the server of this load attached? Then it is a process of this machine, whatever its address.
pub fn beside_attached() -> bool {
    std::env::var_os(ATTACHED_VARIABLE).is_some()
}

/// `concurve load`, which starts this program, or `concurve-load`.
pub fn program() -> String {
    name_of(
        std::env::args().next().as_deref(),
        std::env::var(CALLED_VARIABLE).ok(),
    )
}

/// A name without a folder is what was typed. A file may have been started by `concurve`, in a trial
/// too, and then its user need not have this program on the path.
fn name_of(first_word: Option<&str>, started_as: Option<String>) -> String {
    match first_word {
        Some(typed @ ("concurve load" | "concurve-load")) => typed.to_owned(),
        _ => started_as.unwrap_or_else(|| "concurve-load".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::name_of;

    #[test]
    fn messages_have_the_name_that_the_user_has() {
        let by_concurve = || Some("concurve load".to_owned());
        for (first_word, started_as, name) in [
            ("concurve load", None, "concurve load"),
            ("concurve-load", None, "concurve-load"),
            ("concurve-load", by_concurve(), "concurve-load"),
            ("/venv/bin/concurve-load", by_concurve(), "concurve load"),
            ("./target/release/concurve-load", None, "concurve-load"),
        ] {
            assert_eq!(name_of(Some(first_word), started_as), name);
        }
    }
}
