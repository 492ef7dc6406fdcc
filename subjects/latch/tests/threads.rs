//! Latches between threads: no update is lost, no thread sleeps for ever, and the counts are right.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use concurve_latch::{Class, Condvar, Counts, Mutex, Spin, counts};

const ROUNDS: usize = 20_000;

fn counts_of(name: &str) -> Counts {
    let found = counts().into_iter().find(|it| it.name == name);
    found.unwrap_or_else(|| panic!("no counts of {name}"))
}

#[test]
fn no_update_under_a_mutex_is_lost_with_any_spin() {
    // More spinning threads than CPUs would wait for one another's time slices.
    for (name, spin, threads) in [
        ("sleeps at once", Spin::Times(0), 4),
        ("spins first", Spin::Times(100), 4),
        ("only spins", Spin::Only, 2),
    ] {
        let latch = Class::named(name).spinning(spin).mutex((0_usize, 0_usize));
        thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    for _ in 0..ROUNDS {
                        let mut pair = latch.lock();
                        pair.0 += 1;
                        assert_eq!(pair.0, pair.1 + 1);
                        pair.1 = pair.0;
                    }
                });
            }
        });
        assert_eq!(latch.lock().1, threads * ROUNDS);
        let counts = counts_of(name);
        assert_eq!(counts.acquisitions, (threads * ROUNDS + 1) as u64);
        assert_eq!(counts.held, 0);
        assert!(spin != Spin::Only || counts.sleeps == 0);
    }
}

#[test]
fn readers_see_whole_values_and_writers_do_not_starve() {
    for (name, spin, written) in [
        ("sleep", Spin::Times(0), 2_000),
        ("spin first", Spin::Times(100), 2_000),
        ("spin only", Spin::Only, 200),
    ] {
        let latch = Class::named(name).spinning(spin).rwlock((0_u64, 0_u64));
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..written {
                        let mut pair = latch.write();
                        pair.0 += 1;
                        thread::yield_now();
                        pair.1 += 1;
                    }
                });
            }
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..written {
                        let pair = latch.read();
                        assert_eq!(pair.0, pair.1);
                        drop(pair);
                        thread::yield_now();
                    }
                });
            }
        });
        assert_eq!(*latch.read(), (2 * written, 2 * written));
        let counts = counts_of(name);
        assert_eq!(counts.acquisitions, 4 * written + 1);
        assert_eq!(counts.held, 0);
    }
}

#[test]
fn only_a_contended_acquisition_counts_as_a_wait() {
    let latch = Class::named("contended").spinning(Spin::Times(7)).mutex(());
    drop(latch.lock());
    assert_eq!(counts_of("contended").waits, 0);
    let guard = latch.lock();
    thread::scope(|scope| {
        let waiter = scope.spawn(|| drop(latch.lock()));
        // It spins seven times, and sleeps.
        while counts_of("contended").sleeps == 0 {
            thread::yield_now();
        }
        assert_eq!(counts_of("contended").held, 2);
        drop(guard);
        waiter.join().expect("no panic");
    });
    let counts = counts_of("contended");
    assert_eq!((counts.acquisitions, counts.waits, counts.held), (3, 1, 0));
    assert_eq!(counts.spins, 7);
}

#[test]
fn a_failed_try_is_no_acquisition() {
    let mutex = Class::named("tried mutex").mutex(());
    let rwlock = Class::named("tried rwlock").rwlock(());
    let (held, read) = (mutex.lock(), rwlock.read());
    thread::scope(|scope| {
        scope.spawn(|| {
            assert!(mutex.try_lock().is_none());
            assert!(rwlock.try_write().is_none());
            assert!(rwlock.try_read().is_some());
        });
    });
    drop((held, read));
    assert!(mutex.try_lock().is_some());
    assert!(rwlock.try_write().is_some());
    assert_eq!(counts_of("tried mutex").acquisitions, 2);
    assert_eq!(counts_of("tried rwlock").acquisitions, 3);
    assert_eq!(counts_of("tried rwlock").held, 0);
}

#[test]
fn every_message_of_a_queue_arrives() {
    let queue = Class::named("queue").mutex((VecDeque::new(), 0_usize));
    let (filled, emptied) = (Condvar::new(), Condvar::new());
    let total: usize = thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for number in 1..=ROUNDS {
                    let mut state = queue.lock();
                    emptied.wait_while(&mut state, |it| it.0.len() >= 2);
                    state.0.push_back(number);
                    drop(state);
                    filled.notify_one();
                }
            });
        }
        let consumers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut sum = 0;
                    for _ in 0..ROUNDS {
                        let mut state = queue.lock();
                        filled.wait_while(&mut state, |it| it.0.is_empty());
                        sum += state.0.pop_front().expect("not empty");
                        drop(state);
                        emptied.notify_one();
                    }
                    sum
                })
            })
            .collect();
        let sums = consumers.into_iter().map(|it| it.join().expect("no panic"));
        sums.sum()
    });
    assert_eq!(total, ROUNDS * (ROUNDS + 1));
    assert_eq!(counts_of("queue").held, 0);
}

#[test]
fn waiting_for_a_condition_ends_with_its_time() {
    let (latch, never) = (Mutex::new(()), Condvar::new());
    let mut guard = latch.lock();
    assert!(never.wait_while_for(&mut guard, |()| true, Duration::from_millis(1)));
    assert!(!never.wait_while_for(&mut guard, |()| false, Duration::ZERO));
}

#[test]
fn a_latch_whose_holder_panicked_cannot_be_taken() {
    let mutex = Mutex::new(0);
    let rwlock = concurve_latch::RwLock::new(0);
    let asleep = Barrier::new(3);
    thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let (mut number, mut other) = (mutex.lock(), rwlock.write());
            asleep.wait();
            (*number, *other) = (1, 1);
            panic!("half of it is done");
        });
        let waiter = scope.spawn(|| {
            asleep.wait();
            drop(mutex.lock());
        });
        let reader = scope.spawn(|| {
            asleep.wait();
            drop(rwlock.read());
        });
        for thread in [holder, waiter, reader] {
            assert!(thread.join().is_err());
        }
    });
    let panics = |work: &dyn Fn()| catch_unwind(AssertUnwindSafe(work)).is_err();
    assert!(panics(&|| drop(mutex.lock())));
    assert!(panics(&|| drop(mutex.try_lock())));
    assert!(panics(&|| drop(rwlock.read())));
    assert!(panics(&|| drop(rwlock.write())));
    assert!(rwlock.try_read().is_none());
}

#[test]
fn a_reader_that_panics_changes_nothing() {
    let rwlock = concurve_latch::RwLock::new(0);
    let read = catch_unwind(AssertUnwindSafe(|| {
        let _guard = rwlock.read();
        panic!("nothing was changed");
    }));
    assert!(read.is_err());
    *rwlock.write() += 1;
}

#[test]
fn a_latch_taken_by_a_destructor_in_a_panic_is_sound() {
    struct Cleaner<'a>(&'a Mutex<u32>, &'a concurve_latch::RwLock<u32>);
    impl Drop for Cleaner<'_> {
        fn drop(&mut self) {
            *self.0.lock() += 1;
            *self.1.write() += 1;
        }
    }
    let (mutex, rwlock) = (Mutex::new(0), concurve_latch::RwLock::new(0));
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let _cleaner = Cleaner(&mutex, &rwlock);
        panic!("it cleans up");
    }));
    assert!(ended.is_err());
    assert_eq!((*mutex.lock(), *rwlock.read()), (1, 1));
}

#[test]
fn taking_a_held_latch_again_panics() {
    let mutex = Mutex::new(());
    let rwlock = concurve_latch::RwLock::new(());
    let twice = catch_unwind(AssertUnwindSafe(|| {
        let _first = mutex.lock();
        let _second = mutex.lock();
    }));
    let text = *twice
        .expect_err("a panic")
        .downcast::<&str>()
        .expect("text");
    assert!(text.contains("holds already"));
    let twice = catch_unwind(AssertUnwindSafe(|| {
        let _first = rwlock.write();
        let _second = rwlock.write();
    }));
    assert!(twice.is_err());
}

#[test]
fn seats_are_reused() {
    // More threads than there are seats, one after the other.
    let first = thread::spawn(concurve_latch::seat_number).join();
    assert!(first.expect("no panic") < concurve_latch::SEATS);
    for _ in 0..concurve_latch::SEATS + 10 {
        let number = thread::spawn(concurve_latch::seat_number).join();
        assert!(number.expect("no panic") < 64);
    }
}

#[test]
fn destructors_of_a_thread_may_use_latches() {
    struct Last;
    impl Drop for Last {
        fn drop(&mut self) {
            drop(Class::named("last").mutex(()).lock());
        }
    }
    thread_local!(static LAST: Last = const { Last });
    for _ in 0..concurve_latch::SEATS + 10 {
        // In both orders.
        let work = || LAST.with(|_| drop(Class::named("last").mutex(()).lock()));
        thread::spawn(work).join().expect("no panic");
    }
}

#[test]
fn a_class_is_found_by_its_name() {
    assert_eq!(Class::named("one"), Class::named("one"));
    assert_ne!(Class::named("one"), Class::named("two"));
    assert_eq!(Class::named("other"), Class::OTHER);
    assert!(catch_unwind(|| Class::named(&"x".repeat(41))).is_err());
}

#[test]
fn counts_can_be_read_while_they_change() {
    let latch = Class::named("read while counting").mutex(0_u64);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ROUNDS {
                *latch.lock() += 1;
            }
            is_over.store(true, Relaxed);
        });
        let mut before = 0;
        while !is_over.load(Relaxed) {
            let found = counts()
                .into_iter()
                .find(|it| it.name == "read while counting");
            let now = found.map_or(0, |it| it.acquisitions);
            assert!(now >= before && now <= ROUNDS as u64);
            before = now;
        }
    });
    assert_eq!(counts_of("read while counting").acquisitions, ROUNDS as u64);
}
