//! The name by which the user called this program: messages begin with it, and what they propose to
//! type does.

/// `concurve load`, which becomes this program, or `concurve-load`.
pub fn program() -> String {
    let called = std::env::args().next().unwrap_or_default();
    match called.as_str() {
        "concurve load" => called,
        _ => "concurve-load".to_owned(),
    }
}
