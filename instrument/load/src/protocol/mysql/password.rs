//! How a password is shown to be known without sending it.

use sha1::{Digest, Sha1};
use sha2::Sha256;

/// A plugin of the server that asks for the password, by the name of its other half in the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    Native,
    CachingSha2,
}

impl Method {
    pub fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"mysql_native_password" => Some(Self::Native),
            b"caching_sha2_password" => Some(Self::CachingSha2),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// The answer to the server's `scramble`: empty without a password.
    pub fn answer(self, password: &str, scramble: &[u8]) -> Vec<u8> {
        if password.is_empty() {
            return Vec::new();
        }
        match self {
            // SHA1(password) XOR SHA1(scramble, SHA1(SHA1(password)))
            Self::Native => {
                let once = Sha1::digest(password);
                let twice = Sha1::digest(once);
                let mixed = Sha1::new().chain_update(scramble).chain_update(twice);
                xor(&once, &mixed.finalize())
            }
            // SHA256(password) XOR SHA256(SHA256(SHA256(password)), scramble)
            Self::CachingSha2 => {
                let once = Sha256::digest(password);
                let twice = Sha256::digest(once);
                let mixed = Sha256::new().chain_update(twice).chain_update(scramble);
                xor(&once, &mixed.finalize())
            }
        }
    }
}

fn xor(left: &[u8], right: &[u8]) -> Vec<u8> {
    left.iter().zip(right).map(|(a, b)| a ^ b).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server checks: it knows only the digest of the digest.
    #[test]
    fn the_server_can_check_the_answer() {
        let scramble = b"01234567890123456789";
        let answer = Method::Native.answer("secret", scramble);
        let stored = Sha1::digest(Sha1::digest("secret"));
        let mixed = Sha1::new().chain_update(scramble).chain_update(stored);
        assert_eq!(Sha1::digest(xor(&answer, &mixed.finalize())), stored);

        let answer = Method::CachingSha2.answer("secret", scramble);
        let stored = Sha256::digest(Sha256::digest("secret"));
        let mixed = Sha256::new().chain_update(stored).chain_update(scramble);
        assert_eq!(Sha256::digest(xor(&answer, &mixed.finalize())), stored);
    }

    #[test]
    fn without_a_password_nothing_is_answered() {
        assert!(Method::Native.answer("", b"x").is_empty());
        assert!(Method::CachingSha2.answer("", b"x").is_empty());
    }
}
