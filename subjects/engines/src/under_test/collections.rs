//! Engines that change the same collections of the standard library.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use concurve_engines::memory::usage;
use concurve_engines::{Engine, Event, Service, Start};
use concurve_latch::{Class, Condvar, Mutex, RwLock};

const KEYS: u32 = 3000;

pub struct Collections {
    pub engines: u32,
}

pub struct Shared {
    by_key: Mutex<HashMap<u32, String>>,
    by_name: RwLock<BTreeMap<String, Arc<str>>>,
    /// How often an engine has reached the barrier.
    met: Mutex<u32>,
    all_met: Condvar,
    used_before: usize,
}

fn text(key: u32) -> String {
    format!("{key}:").repeat(1 + key as usize % 50)
}

impl Service for Collections {
    type Shared = Shared;

    fn open(&self, _: Start) -> Result<Shared, String> {
        let class = Class::named("collections");
        Ok(Shared {
            by_key: class.mutex(HashMap::new()),
            by_name: class.rwlock(BTreeMap::new()),
            met: class.mutex(0),
            all_met: Condvar::new(),
            used_before: usage().map_or(0, |it| it.used_bytes),
        })
    }

    fn run(&self, shared: &Shared, engine: &Engine) -> Result<(), String> {
        let mine = |key: &u32| key % self.engines == engine.number - 1;
        let my_keys: Vec<u32> = (0..KEYS).filter(mine).collect();
        // Many rounds, so that a memory leak would show.
        for _ in 0..5 {
            for &key in &my_keys {
                shared.by_key.lock().insert(key, text(key));
                let value: Arc<str> = text(key).into();
                shared.by_name.write().insert(text(key), value);
            }
            self.meet(shared);
            // Each engine removes what another one inserted, and so frees it.
            for key in my_keys.iter().map(|key| (key + 1) % KEYS) {
                let value = shared.by_name.read().get(&text(key)).cloned();
                let found = shared.by_key.lock().remove(&key);
                if found != Some(text(key)) || value.as_deref() != Some(&text(key)) {
                    return Err(format!("{key} has {found:?} and {value:?}"));
                }
                // Then the clone is the last reference.
                shared.by_name.write().remove(&text(key));
            }
            self.meet(shared);
        }
        Ok(())
    }

    fn close(&self, shared: Shared) -> Result<(), String> {
        let (by_key, by_name) = (shared.by_key.into_inner(), shared.by_name.into_inner());
        if !by_key.is_empty() || !by_name.is_empty() {
            return Err(format!("{} and {} are left", by_key.len(), by_name.len()));
        }
        drop((by_key, by_name));
        let now = usage().map_or(0, |it| it.used_bytes);
        let more = now.saturating_sub(shared.used_before);
        // Thread caches keep some.
        if more > 4 << 20 {
            return Err(format!("{more} bytes more are in use than before"));
        }
        Ok(())
    }

    fn on_event(&self, event: &Event) {
        crate::events::print(event);
    }
}

impl Collections {
    /// A barrier for all engines.
    fn meet(&self, shared: &Shared) {
        let mut met = shared.met.lock();
        let all = (*met / self.engines + 1) * self.engines;
        *met += 1;
        shared.all_met.notify_all();
        shared.all_met.wait_while(&mut met, |it| *it < all);
    }
}
