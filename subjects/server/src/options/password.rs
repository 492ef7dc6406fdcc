//! The password that clients must give.

use std::path::Path;

use crate::error::Error;

/// The environment variable with the password, if no file is named.
pub const PASSWORD_VARIABLE: &str = "CONCURVE_PASSWORD";

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
    /// If the file cannot be read, or the password is empty.
    pub fn find(file: Option<&Path>) -> Result<Option<Self>, Error> {
        let text = match file {
            Some(path) => {
                let action = format!("read the password file {}", path.display());
                Some(std::fs::read(path).map_err(Error::io(action))?)
            }
            None => std::env::var(PASSWORD_VARIABLE)
                .ok()
                .map(String::into_bytes),
        };
        let Some(text) = text else {
            return Ok(None);
        };
        let text = text.trim_ascii_end();
        if text.is_empty() {
            return Err(Error::Usage(format!(
                "the password is empty: put one into the file, or unset {PASSWORD_VARIABLE}"
            )));
        }
        Ok(Some(Self::new(text)))
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
}
