//! Passwords: a type that cannot be printed, and addresses without theirs.

use std::fmt;

/// What is shown in place of a secret.
pub const MASK: &str = "***";

/// A password. It is formatted as a mask; only the log-in takes its text.
#[derive(Clone, PartialEq, Eq)]
pub struct Password(String);

impl Password {
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// The text, for the log-in alone.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(MASK)
    }
}

/// An address as messages show it: without a password before the host, and without the values
/// behind the `?`, of which any may be one under a name that is mistyped.
pub fn shown_address(text: &str) -> String {
    let (scheme, rest) = match text.find("://") {
        Some(at) => text.split_at(at + 3),
        None => ("", text),
    };
    if rest.rfind('@') > rest.find('?') && rest.contains('?') {
        // A password with a ?, or a setting with an @: neither is shown.
        let known = rest.find([':', '?']).map_or(0, |at| at + 1);
        return format!("{scheme}{}{MASK}", &rest[..known]);
    }
    // All up to the last @: a password may hold characters that should have been encoded.
    let (user, rest) = match rest.rsplit_once('@') {
        Some((user, rest)) => (Some(user), rest),
        None => (None, rest),
    };
    let (place, query) = match rest.split_once('?') {
        Some((place, query)) => (place, Some(query)),
        None => (rest, None),
    };
    let mut shown = scheme.to_owned();
    match user.map(|it| it.split_once(':').ok_or(it)) {
        Some(Ok((name, _))) => shown.extend([name, ":", MASK, "@", place]),
        Some(Err(name)) => shown.extend([name, "@", place]),
        None => shown.push_str(&without_stray_password(place)),
    }
    if let Some(query) = query {
        let names = query.split('&').map(|it| match it.split_once('=') {
            Some((name, _)) => format!("{name}={MASK}"),
            None => MASK.to_owned(),
        });
        shown.push('?');
        shown.push_str(&names.collect::<Vec<_>>().join("&"));
    }
    shown
}

/// `HOST:PORT/PATH`; what stands in place of the port and is none may be a password without its
/// host.
fn without_stray_password(place: &str) -> String {
    let end = place.find('/').unwrap_or(place.len());
    match place[..end].rsplit_once(':') {
        Some((host, port)) if !is_port(port) => {
            format!("{host}:{MASK}{}", &place[end..])
        }
        _ => place.to_owned(),
    }
}

/// Whether what follows `SCHEME://` has a password before its host. One with characters that should
/// have been encoded is told by what stands in place of the port.
pub fn holds_password(rest: &str) -> bool {
    let authority = &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())];
    if let Some((user, _)) = authority.rsplit_once('@') {
        return user.contains(':');
    }
    match authority.rsplit_once(':') {
        Some((host, port)) => rest.contains('@') && (host.is_empty() || !is_port(port)),
        None => false,
    }
}

/// Whether the end of an authority may be a port, or of an IPv6 address without one.
fn is_port(text: &str) -> bool {
    text.ends_with(']') || text.bytes().all(|it| it.is_ascii_digit())
}

/// Whether the name of an option behind the `?` says that its value is a password.
pub fn is_password(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["password", "passwd", "passphrase", "pwd", "secret", "token"]
        .iter()
        .any(|it| name.ends_with(it))
        || name == "pass"
        || name == "auth"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_not_formatted() {
        let password = Password::new("geheim".to_owned());
        assert_eq!(format!("{password:?}"), MASK);
        assert_eq!(
            format!("{:#?}", Some(password.clone())),
            "Some(\n    ***,\n)"
        );
        assert_eq!(password.reveal(), "geheim");
    }

    #[test]
    fn an_address_is_shown_without_its_passwords() {
        for (text, shown) in [
            ("redis://:geheim@host:1/0", "redis://:***@host:1/0"),
            ("redis://me:geheim@host", "redis://me:***@host"),
            ("me:geheim@host:1", "me:***@host:1"),
            ("redis://:ge/he?i#m@host", "redis://:***"),
            ("redis://:ge/heim@host", "redis://:***@host"),
            ("redis://:geheim", "redis://:***"),
            ("redis://[::1]:7000/0", "redis://[::1]:7000/0"),
            ("redis://[::1]", "redis://[::1]"),
            ("redis://:ge@heim@host", "redis://:***@host"),
            (
                "postgresql://me@host/b?password=geheim&x=geheim",
                "postgresql://me@host/b?password=***&x=***",
            ),
            (
                "postgresql://me@host/b?geheim",
                "postgresql://me@host/b?***",
            ),
            ("redis://host:1", "redis://host:1"),
            ("nowhere", "nowhere"),
        ] {
            let found = shown_address(text);
            assert_eq!(found, shown);
        }
    }

    #[test]
    fn an_at_sign_behind_the_question_mark_shows_no_value() {
        let shown = shown_address("postgresql://host/b?user=a@b&password=geheim");
        assert!(!shown.contains("geheim"), "{shown}");
    }

    #[test]
    fn names_of_passwords_are_known() {
        for name in ["password", "PASSWORD", "passwd", "sslpassword", "auth"] {
            assert!(is_password(name), "{name}");
        }
        for name in ["host", "password_encryption", "sslmode", "search_path"] {
            assert!(!is_password(name), "{name}");
        }
    }
}
