//! The statement service: finds or compiles the plan of a text.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use concurve_latch::Spin;

use crate::cache::{Cached, Caching, Counters, SessionOptions, StatementCache};
use crate::error::StatementError;
use crate::plan::Plan;
use crate::procedures::{ProcedureCache, pages_for};
use crate::text::{Catalogue, compile};

/// The kinds and sizes of the statement cache and the procedure cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheOptions {
    pub caching: Caching,
    /// Pages of [`crate::PAGE_BYTES`] of the procedure cache.
    pub pages: usize,
    pub engines: usize,
    /// How threads wait for the latch of the global part.
    pub spin: Spin,
}

/// Finds and compiles statements for all engines.
#[derive(Debug)]
pub struct Statements {
    cache: Option<StatementCache>,
    procedures: ProcedureCache,
    compiled: AtomicU64,
    exhausted: AtomicU64,
}

/// A plan in use. Its pages stay allocated until this is dropped.
#[derive(Debug)]
pub struct InUse<'a> {
    owner: &'a Statements,
    engine: usize,
    // `None` only during the drop.
    cached: Option<Arc<Cached>>,
}

impl Deref for InUse<'_> {
    type Target = Plan;

    fn deref(&self) -> &Plan {
        &self.cached.as_ref().expect("it is in use").plan
    }
}

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        let cached = self.cached.take();
        // The last user of a plan that is not, or no longer, in the cache.
        if let Some(cached) = cached.and_then(Arc::into_inner) {
            self.owner.procedures.give_back(self.engine, cached.pages);
        }
    }
}

impl Statements {
    pub fn new(options: &CacheOptions) -> Self {
        let cache = match options.caching {
            Caching::Off => None,
            Caching::Single => Some(StatementCache::new(false)),
            Caching::Striped => Some(StatementCache::new(true)),
        };
        Self {
            cache,
            procedures: ProcedureCache::new(options.pages, options.engines, options.spin),
            compiled: AtomicU64::new(0),
            exhausted: AtomicU64::new(0),
        }
    }

    /// The plan of a statement, found or compiled, for an engine (from 0).
    ///
    /// # Errors
    /// If the text is no statement, or [`StatementError::Exhausted`].
    pub fn plan<C: Catalogue>(
        &self,
        engine: usize,
        text: &str,
        options: &SessionOptions,
        catalogue: &C,
    ) -> Result<InUse<'_>, StatementError> {
        let Some(cache) = &self.cache else {
            let new = Arc::new(self.compile(engine, text, options, catalogue)?);
            return Ok(self.in_use(engine, new));
        };
        let hash = cache.hash(text, options);
        if let Some(found) = cache.find(hash, text, options, catalogue.version()) {
            return Ok(self.in_use(engine, found));
        }
        let new = Arc::new(self.compile(engine, text, options, catalogue)?);
        if let Some(old) = cache.insert(hash, &new) {
            self.forget(engine, old);
        }
        Ok(self.in_use(engine, new))
    }

    pub fn counters(&self) -> Counters {
        let cache = self.cache.as_ref();
        let of_cache = cache.map(StatementCache::counters).unwrap_or_default();
        Counters {
            compiled: self.compiled.load(Relaxed),
            exhausted: self.exhausted.load(Relaxed),
            ..of_cache
        }
    }

    /// Pages of the procedure cache.
    pub fn pages(&self) -> usize {
        self.procedures.pages()
    }

    /// The number of free pages.
    pub fn free_pages(&self) -> usize {
        self.procedures.free()
    }

    fn compile<C: Catalogue>(
        &self,
        engine: usize,
        text: &str,
        options: &SessionOptions,
        catalogue: &C,
    ) -> Result<Cached, StatementError> {
        let plan = compile(text, catalogue)?;
        let bytes = size_of::<Cached>() + text.len();
        let pages = self.take(engine, pages_for(bytes))?;
        self.compiled.fetch_add(1, Relaxed);
        Ok(Cached {
            text: text.to_owned(),
            options: options.clone(),
            plan,
            pages,
        })
    }

    /// Takes pages; drops unused plans until enough are free.
    fn take(&self, engine: usize, wanted: usize) -> Result<Vec<u32>, StatementError> {
        loop {
            if let Some(pages) = self.procedures.take(engine, wanted) {
                return Ok(pages);
            }
            match self.cache.as_ref().and_then(StatementCache::drop_one) {
                Some(dropped) => self.forget(engine, dropped),
                None => break,
            }
        }
        self.procedures
            .take_from_all(engine, wanted)
            .ok_or_else(|| {
                self.exhausted.fetch_add(1, Relaxed);
                let pages = self.procedures.pages();
                StatementError::Exhausted { pages, wanted }
            })
    }

    fn in_use(&self, engine: usize, cached: Arc<Cached>) -> InUse<'_> {
        InUse {
            owner: self,
            engine,
            cached: Some(cached),
        }
    }

    /// Drops the reference of the cache; the holder of the last reference returns the pages.
    fn forget(&self, engine: usize, cached: Arc<Cached>) {
        if let Some(cached) = Arc::into_inner(cached) {
            self.procedures.give_back(engine, cached.pages);
        }
    }
}
