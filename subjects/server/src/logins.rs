//! The state of logins, which all engines share: the password, and who has tried one lately.

use std::time::{Duration, Instant};

use concurve_latch::{Class, Mutex};

use crate::guesses::Guesses;
use crate::options::Password;
use crate::source::Source;

/// The only user.
const USER: &[u8] = b"default";

/// Decides who may log in.
#[derive(Debug)]
pub struct LoginService {
    /// `None`: the server needs no password.
    guarded: Option<Guarded>,
}

#[derive(Debug)]
struct Guarded {
    password: Password,
    guesses: Mutex<Guesses>,
    begin: Instant,
}

/// What a connection has tried before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Before {
    Nothing,
    WrongPassword,
    /// The right password: it does not wait for the guesses of others behind its address.
    RightPassword,
}

/// The outcome of an attempt to log in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    Right,
    Wrong,
    /// The password was not looked at: the source has tried too many lately.
    MustWait(Duration),
    /// The server has no password.
    NotNeeded,
}

impl LoginService {
    /// With this password, of which a source may try so many wrong ones a second.
    pub fn new(password: Option<Password>, guesses_per_s: u32) -> Self {
        let guarded = password.map(|password| Guarded {
            password,
            guesses: Class::named("passwords").mutex(Guesses::new(guesses_per_s)),
            begin: Instant::now(),
        });
        Self { guarded }
    }

    pub fn needs_password(&self) -> bool {
        self.guarded.is_some()
    }

    /// Tries a password. A source that has sent many wrong ones must wait first.
    pub fn attempt(&self, source: Source, before: Before, user: &[u8], password: &[u8]) -> Attempt {
        let Some(guarded) = &self.guarded else {
            return Attempt::NotNeeded;
        };
        let is_counted = before != Before::RightPassword;
        let is_first = before == Before::Nothing;
        let now_us = guarded.begin.elapsed().as_micros() as u64;
        if is_counted && let Err(wait_us) = guarded.guesses.lock().take(source, is_first, now_us) {
            return Attempt::MustWait(Duration::from_micros(wait_us));
        }
        if !(guarded.password.is(password) & (user == USER)) {
            return Attempt::Wrong;
        }
        if is_counted {
            guarded.guesses.lock().give_back(source, now_us);
        }
        Attempt::Right
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_logged_in_does_not_wait_for_guessers_behind_the_same_address() {
        let service = LoginService::new(Some(Password::new(b"right")), 1);
        let attempt =
            |before, password: &[u8]| service.attempt(Source::UNKNOWN, before, USER, password);
        assert_eq!(attempt(Before::Nothing, b"right"), Attempt::Right);
        let mut wrong = 0;
        while attempt(Before::Nothing, b"wrong") == Attempt::Wrong {
            wrong += 1;
        }
        assert!(wrong >= 10);
        for password in [&b"right"[..], b"wrong"] {
            let waits = attempt(Before::WrongPassword, password);
            assert!(matches!(waits, Attempt::MustWait(_)), "{waits:?}");
        }
        assert_eq!(attempt(Before::RightPassword, b"right"), Attempt::Right);
        assert_eq!(attempt(Before::RightPassword, b"wrong"), Attempt::Wrong);
        let other_user = service.attempt(Source::UNKNOWN, Before::RightPassword, b"x", b"right");
        assert_eq!(other_user, Attempt::Wrong);
    }

    #[test]
    fn without_a_password_none_is_needed() {
        let service = LoginService::new(None, 1);
        assert!(!service.needs_password());
        let attempt = service.attempt(Source::UNKNOWN, Before::Nothing, USER, b"any");
        assert_eq!(attempt, Attempt::NotNeeded);
    }
}
