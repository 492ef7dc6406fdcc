//! The scripts that Redlock clients send. There is no interpreter: the server recognises a script
//! by its text, ignoring blanks and kinds of quotes, and refuses all others.

use concurve_latch::{Class, Mutex};
use hashbrown::HashMap;
use sha1::{Digest, Sha1};

/// What a script does to `KEYS[1]` if its value is `ARGV[1]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Script {
    /// Removes it; 1 or 0.
    Release,
    /// Sets its time to live to `ARGV[2]` ms; 1 or 0.
    Reacquire,
    /// Adds `ARGV[2]` ms to its time to live, or sets it if `ARGV[3]` is not "0"; 1 or 0.
    Extend,
    /// Returns its time to live in ms; 0 if it has another value.
    Left,
}

/// Texts as published, in the form that [`plain`] gives them.
const KNOWN: &[(Script, &str)] = &[
    // redis.io, "Distributed Locks with Redis"; most clients
    (
        Script::Release,
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"del\",KEYS[1]) else return 0 end",
    ),
    // redis-py's Lock
    (
        Script::Release,
        "local token = redis.call(\"get\", KEYS[1]) if not token or token ~= ARGV[1] then return 0 end redis.call(\"del\", KEYS[1]) return 1",
    ),
    (
        Script::Reacquire,
        "local token = redis.call(\"get\", KEYS[1]) if not token or token ~= ARGV[1] then return 0 end redis.call(\"pexpire\", KEYS[1], ARGV[2]) return 1",
    ),
    (
        Script::Extend,
        "local token = redis.call(\"get\", KEYS[1]) if not token or token ~= ARGV[1] then return 0 end local expiration = redis.call(\"pttl\", KEYS[1]) if not expiration then expiration = 0 end if expiration < 0 then return 0 end local newttl = ARGV[2] if ARGV[3] == \"0\" then newttl = ARGV[2] + expiration end redis.call(\"pexpire\", KEYS[1], newttl) return 1",
    ),
    // pottery, redlock-py, Redlock.net
    (
        Script::Reacquire,
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then return redis.call(\"pexpire\",KEYS[1],ARGV[2]) else return 0 end",
    ),
    (
        Script::Left,
        "if redis.call(\"get\",KEYS[1]) == ARGV[1] then local pttl = redis.call(\"pttl\",KEYS[1]) return (pttl > 0) and pttl or 0 else return 0 end",
    ),
];

/// Scripts by the SHA-1 of the text that was loaded.
#[derive(Debug)]
pub struct ScriptRegistry {
    loaded: Mutex<HashMap<[u8; 20], Script>>,
}

/// Maximum number of texts that are stored. A client needs one or two, which differ in blanks.
const LOADED_MAX: usize = 1024;

impl Default for ScriptRegistry {
    fn default() -> Self {
        Self {
            loaded: Class::named("scripts").mutex(HashMap::new()),
        }
    }
}

impl ScriptRegistry {
    /// Stores a text. Returns its SHA-1 in hexadecimal; `None` if it is not a known script.
    pub fn load(&self, text: &[u8]) -> Option<String> {
        let script = recognise(text)?;
        let digest: [u8; 20] = Sha1::digest(text).into();
        let mut loaded = self.loaded.lock();
        if loaded.len() < LOADED_MAX {
            loaded.insert(digest, script);
        }
        Some(digest.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// The script that was loaded with this SHA-1 in hexadecimal.
    pub fn find(&self, digest: &[u8]) -> Option<Script> {
        let mut bytes = [0; 20];
        if digest.len() != 40 {
            return None;
        }
        for (at, pair) in digest.chunks(2).enumerate() {
            let pair = std::str::from_utf8(pair).ok()?;
            bytes[at] = u8::from_str_radix(pair, 16).ok()?;
        }
        self.loaded.lock().get(&bytes).copied()
    }
}

/// The text without blanks, and with one kind of quotes.
fn plain(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text).replace('\'', "\"");
    text.split_whitespace().collect()
}

/// The script with this text, if it is known.
pub fn recognise(text: &[u8]) -> Option<Script> {
    let text = plain(text);
    let known = KNOWN
        .iter()
        .find(|(_, known)| plain(known.as_bytes()) == text);
    known.map(|(script, _)| *script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_known_by_their_text_and_by_nothing_less() {
        let spread = b"\n if redis.call('get', KEYS[1]) == ARGV[1] then\n  return redis.call('del', KEYS[1])\n else\n return 0\n end\n";
        assert_eq!(recognise(spread), Some(Script::Release));
        for (script, text) in KNOWN {
            assert_eq!(recognise(text.as_bytes()), Some(*script));
        }
        assert_eq!(recognise(b"return redis.call(\"del\",KEYS[1])"), None);
        assert_eq!(recognise(b""), None);
    }
}
