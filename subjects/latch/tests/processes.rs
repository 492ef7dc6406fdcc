//! Latches in shared memory between processes, also when a process is killed.
#![allow(unsafe_code)]

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use concurve_latch::{
    Class, Condvar, EXIT_LATCH_LOST, Mutex, RwLock, Section, check_failure_every, counts, fail,
    forks, held, reap, renew, seat_number, set_engine_of_process,
};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};

const ROUNDS: u32 = 20_000;

/// A value at the same address in all processes forked from here on; never freed.
struct Shared<T: 'static>(&'static T);

impl<T> Shared<T> {
    fn new(value: T) -> Self {
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping, large enough and aligned to a page; written before it is read.
        unsafe {
            let bytes = size_of::<T>();
            let place = mmap_anonymous(ptr::null_mut(), bytes, flags, MapFlags::SHARED);
            let place: *mut T = place.expect("memory").cast();
            place.write(value);
            Self(&*place)
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

/// Forks a process that does some work, and ends with status 0, or 101 if it panics. One that hangs
/// is ended after two minutes.
fn process(work: impl FnOnce()) -> Pid {
    // SAFETY: the C library's allocator may be used in a forked child, and children print nothing
    // unless they fail.
    match unsafe { fork() }.expect("fork") {
        ForkResult::Parent { child } => child,
        ForkResult::Child => {
            nix::unistd::alarm::set(120);
            let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
            // SAFETY: ends the process.
            unsafe { nix::libc::_exit(if done.is_ok() { 0 } else { 101 }) }
        }
    }
}

fn end_of(child: Pid) -> WaitStatus {
    waitpid(child, None).expect("wait")
}

fn assert_done(child: Pid) {
    assert_eq!(end_of(child), WaitStatus::Exited(child, 0));
}

fn kill_now(child: Pid) {
    kill(child, Signal::SIGKILL).expect("kill");
    let expected = WaitStatus::Signaled(child, Signal::SIGKILL, false);
    assert_eq!(end_of(child), expected);
}

fn wait_until(word: &AtomicU32, value: u32) {
    while word.load(SeqCst) != value {
        std::thread::yield_now();
    }
}

/// Sleeps until it is killed.
fn sleep_for_ever() -> ! {
    loop {
        nix::unistd::pause();
    }
}

#[test]
fn processes_add_to_what_a_mutex_and_a_rwlock_protect() {
    // A board of its own, so that latches of other tests are not counted.
    assert_done(process(|| {
        renew();
        let class = Class::named("shared");
        let state = Shared::new((class.mutex(0_u32), class.rwlock((0_u32, 0_u32))));
        let children: Vec<_> = (0..3)
            .map(|_| {
                process(|| {
                    for _ in 0..ROUNDS {
                        *state.0.0.lock() += 1;
                        let mut pair = state.0.1.write();
                        (pair.0, pair.1) = (pair.0 + 1, pair.1 + 1);
                        drop(pair);
                        let pair = state.0.1.read();
                        assert_eq!(pair.0, pair.1);
                    }
                })
            })
            .collect();
        children.into_iter().for_each(assert_done);
        assert_eq!(*state.0.0.lock(), 3 * ROUNDS);
        assert_eq!(*state.0.1.read(), (3 * ROUNDS, 3 * ROUNDS));
        let counts = &counts()[0];
        assert_eq!(counts.name, "shared");
        assert_eq!(counts.acquisitions, u64::from(9 * ROUNDS + 2));
        assert_eq!(counts.held, 0);
    }));
}

#[test]
fn processes_alternate_by_a_condition() {
    // The children share a board only if it was made before they were forked.
    assert_done(process(|| {
        renew();
        let state = Shared::new((Mutex::new(0_u32), Condvar::new()));
        let children: Vec<_> = (0..2)
            .map(|me| {
                let (turn, changed) = &state.0;
                process(move || {
                    for _ in 0..ROUNDS / 4 {
                        let mut turn = turn.lock();
                        changed.wait_while(&mut turn, |it| *it % 2 != me);
                        *turn += 1;
                        changed.notify_one();
                    }
                })
            })
            .collect();
        children.into_iter().for_each(assert_done);
        assert_eq!(*state.0.0.lock(), ROUNDS / 2);
    }));
}

#[test]
fn no_wake_up_is_lost() {
    // A thread that is not woken would sleep longer than the process may live.
    assert_done(process(|| {
        renew();
        check_failure_every(Duration::from_secs(3600));
        let class = Class::named("sleepers").spinning(concurve_latch::Spin::Times(0));
        let state = Shared::new((class.mutex(0_u32), class.rwlock(0_u32), Condvar::new()));
        let (mutex, rwlock, changed) = &state.0;
        let children: Vec<_> = (0..4)
            .map(|me| {
                process(move || {
                    for round in 0..ROUNDS / 8 {
                        *mutex.lock() += 1;
                        // Some rounds have writers only.
                        if (me + round) % 2 == 0 || round % 100 > 50 {
                            let mut number = rwlock.write();
                            // Other processes begin to wait.
                            std::thread::yield_now();
                            *number += 1;
                        } else {
                            drop(rwlock.read());
                        }
                        std::thread::yield_now();
                    }
                    let mut turn = mutex.lock();
                    for round in 1..=ROUNDS / 8 {
                        let begin = 4 * (ROUNDS / 8);
                        // All four add once, then the next round begins.
                        *turn += 1;
                        changed.notify_all();
                        changed.wait_while(&mut turn, |it| *it < begin + 4 * round);
                    }
                })
            })
            .collect();
        children.into_iter().for_each(assert_done);
        assert_eq!(*mutex.lock(), ROUNDS);
    }));
}

#[test]
fn a_child_has_a_seat_of_its_own() {
    let mine = seat_number();
    assert_done(process(move || assert_ne!(seat_number(), mine)));
}

#[test]
fn a_child_knows_that_it_was_forked() {
    seat_number();
    let here = forks();
    assert_done(process(move || {
        let child = forks();
        assert_ne!(child, here);
        renew();
        assert_eq!(forks(), child, "another board is no fork");
    }));
    assert_eq!(forks(), here);
}

#[test]
fn the_seat_of_a_process_that_died_with_nothing_held_is_freed() {
    assert_done(process(|| {
        renew();
        let state = Shared::new((Mutex::new(()), AtomicU32::new(0), AtomicU32::new(0)));
        let (latch, step, seat) = state.0;
        let child = process(|| {
            set_engine_of_process(3);
            drop(latch.lock());
            seat.store(seat_number() as u32, SeqCst);
            step.store(1, SeqCst);
            sleep_for_ever();
        });
        wait_until(step, 1);
        kill_now(child);
        assert_eq!(held(3), []);
        reap(3);
        // Its seat and the latch are free again.
        assert_done(process(|| {
            assert!(seat_number() <= seat.load(SeqCst) as usize)
        }));
        drop(latch.lock());
    }));
}

#[test]
fn latches_of_a_killed_process_are_listed_by_class() {
    assert_done(process(|| {
        renew();
        let (pages, table) = (Class::named("pages"), Class::named("table"));
        let state = Shared::new((pages.rwlock(()), table.mutex(()), AtomicU32::new(0)));
        let (page, stripe, step) = state.0;
        let child = process(|| {
            set_engine_of_process(1);
            let _held = (page.read(), stripe.lock(), Section::enter(pages));
            step.store(1, SeqCst);
            sleep_for_ever();
        });
        wait_until(step, 1);
        kill_now(child);
        let found = held(1);
        assert_eq!(found, [("pages".to_owned(), 2), ("table".to_owned(), 1)]);
    }));
}

#[test]
fn a_process_that_waits_for_the_latch_of_a_killed_one_exits() {
    for kind in ["mutex", "reader", "writer", "condition", "spinner"] {
        assert_done(process(|| {
            renew();
            let spinning = Class::named("spinning").spinning(concurve_latch::Spin::Only);
            let state = Shared::new((
                Mutex::new(()),
                RwLock::new(()),
                spinning.mutex(()),
                Condvar::new(),
                AtomicU32::new(0),
            ));
            let (mutex, rwlock, spinlock, never, step) = state.0;
            let holder = process(|| {
                set_engine_of_process(1);
                let _held = (mutex.lock(), rwlock.write(), spinlock.lock());
                step.store(1, SeqCst);
                sleep_for_ever();
            });
            wait_until(step, 1);
            let own = Shared::new(Mutex::new(()));
            let waiter = process(|| {
                set_engine_of_process(2);
                step.store(2, SeqCst);
                match kind {
                    "mutex" => drop(mutex.lock()),
                    "reader" => drop(rwlock.read()),
                    "writer" => drop(rwlock.write()),
                    "spinner" => drop(spinlock.lock()),
                    _ => never.wait(&mut own.lock()),
                }
            });
            wait_until(step, 2);
            kill_now(holder);
            assert_ne!(held(1), []);
            fail();
            let end = WaitStatus::Exited(waiter, EXIT_LATCH_LOST);
            // Wake-ups may be spurious, but no process wakes this one before the failure.
            assert_eq!(end_of(waiter), end, "{kind}");
        }));
    }
}

#[test]
fn random_kills_leave_either_nothing_held_or_the_failure() {
    // A process is killed at any instruction: if its counts show that it holds nothing, others
    // continue.
    assert_done(process(|| {
        let mut harmless = 0;
        for round in 0..60 {
            renew();
            let class = Class::named("hammered");
            let state = Shared::new((class.mutex((0_u64, 0_u64)), AtomicU32::new(0)));
            let (pair, step) = state.0;
            let work = |engine| {
                move || {
                    set_engine_of_process(engine);
                    step.store(1, SeqCst);
                    loop {
                        let mut pair = pair.lock();
                        pair.0 += 1;
                        pair.1 += 1;
                        drop(pair);
                        // Most of the time without the latch.
                        for _ in 0..500 {
                            std::hint::spin_loop();
                        }
                    }
                }
            };
            let victim = process(work(1));
            wait_until(step, 1);
            for _ in 0..round * 1000 {
                std::hint::spin_loop();
            }
            kill_now(victim);
            if held(1).is_empty() {
                harmless += 1;
                let pair = pair.lock();
                assert_eq!(pair.0, pair.1);
            } else {
                let waiter = process(|| drop(pair.lock()));
                fail();
                // The process may have been killed just before or just after it held the latch.
                let end = end_of(waiter);
                let status = |code| WaitStatus::Exited(waiter, code);
                assert!(
                    end == status(EXIT_LATCH_LOST) || end == status(0),
                    "{end:?}"
                );
            }
        }
        assert!(harmless > 0);
    }));
}

#[test]
fn the_number_of_spins_can_be_set() {
    assert_done(process(|| {
        renew();
        concurve_latch::spin_by_default(concurve_latch::Spin::Times(3));
        let latch = Class::named("set by default").mutex(());
        let sleeps = || counts().iter().map(|it| it.sleeps).sum::<u64>();
        let guard = latch.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(latch.lock()));
            while sleeps() == 0 {
                std::thread::yield_now();
            }
            drop(guard);
        });
        assert_eq!(counts()[0].spins, 3);
    }));
}
