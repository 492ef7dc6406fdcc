//! The password that clients must give.

use std::os::unix::ffi::OsStringExt;
use std::path::Path;

use crate::error::Error;

/// The environment variable with the password, if no file is named.
pub const PASSWORD_VARIABLE: &str = "CONCURVE_PASSWORD";

/// Longest password: a request with it is not too large for a client that has not logged in.
const BYTES_MAX: usize = 1024;

/// A password; its debug output does not show it.
#[derive(Clone)]
pub struct Password(Vec<u8>);

impl std::fmt::Debug for Password {
    fn fmt(&self, out: &mut std::fmt::Formatter) -> std::fmt::Result {
        out.write_str("Password")
    }
}

impl Password {
    /// Reads the password from the file or from the environment; `None` if neither has one.
    ///
    /// # Errors
    /// If the file cannot be read, or the password is empty or too long.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, Error> {
        let text = match file {
            Some(path) => {
                let action = format!("read the password file {}", path.display());
                // Also the blanks after it.
                let read = concurve_files::read_named(path, 4 * BYTES_MAX as u64);
                Some(read.map_err(Error::io(action))?)
            }
            None => std::env::var_os(PASSWORD_VARIABLE).map(OsStringExt::into_vec),
        };
        text.map(|it| Self::check(it.trim_ascii_end())).transpose()
    }

    fn check(text: &[u8]) -> Result<Self, Error> {
        match text.len() {
            0 => Err(Error::Usage(format!(
                "the password is empty: put one into the file, or unset {PASSWORD_VARIABLE}"
            ))),
            1..=BYTES_MAX => Ok(Self::new(text)),
            _ => Err(Error::Usage(format!(
                "the password is longer than {BYTES_MAX} bytes: name a file that has the password \
                 alone"
            ))),
        }
    }

    pub fn new(text: &[u8]) -> Self {
        Self(text.to_owned())
    }

    /// Compares in constant time: it compares all bytes of two digests of equal length, so the time
    /// reveals neither the length of the password nor how many bytes agree.
    pub fn is(&self, offered: &[u8]) -> bool {
        use sha1::{Digest, Sha1};
        use subtle::ConstantTimeEq;
        let (own, other) = (Sha1::digest(&self.0), Sha1::digest(offered));
        own.as_slice().ct_eq(other.as_slice()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_equal_to_itself_alone() {
        let password = Password::new(b"secret");
        assert!(password.is(b"secret"));
        assert!(!password.is(b"secret "));
        assert!(!password.is(b""));
        assert_eq!(format!("{password:?}"), "Password");
    }

    #[test]
    fn a_file_has_a_password_of_some_length_or_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        for (bytes, is_one) in [
            (0, false),
            (1, true),
            (BYTES_MAX, true),
            (BYTES_MAX + 1, false),
        ] {
            std::fs::write(&path, [&b"x".repeat(bytes)[..], b"\n"].concat()).unwrap();
            let found = Password::find(Some(&path));
            assert_eq!(found.is_ok(), is_one, "{bytes} bytes: {found:?}");
        }
        for path in ["/dev/zero", "/", "/there/is/none"] {
            let error = Password::find(Some(Path::new(path)))
                .unwrap_err()
                .to_string();
            assert!(error.contains("password"), "{path}: {error}");
        }
    }
}
