//! The functions of the C library that programs call, ours in front of them.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use crate::system::Behind;
use crate::{acquire, begin, destroyed, end, forked, release};

type Lock = *mut c_void;
type Time = *const c_void;

/// A function of ours that stands in front of one of the same name: it acquires or releases the lock
/// that is its first argument.
macro_rules! in_front {
    ($how:ident $name:ident, $c_name:literal $(, $argument:ident: $kind:ty)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: Lock $(, $argument: $kind)*) -> c_int {
            static BEHIND: Behind = Behind::new($c_name, c"");
            // SAFETY: the C library has a function of this name and type.
            let behind = unsafe {
                transmute::<Lock, unsafe extern "C" fn(Lock $(, $kind)*) -> c_int>(BEHIND.get())
            };
            // SAFETY: the arguments are those of the caller.
            $how(lock as usize, || unsafe { behind(lock $(, $argument)*) })
        }
    };
}

in_front!(acquire pthread_mutex_lock, c"pthread_mutex_lock");
in_front!(acquire pthread_mutex_trylock, c"pthread_mutex_trylock");
in_front!(acquire pthread_mutex_timedlock, c"pthread_mutex_timedlock", until: Time);
in_front!(acquire pthread_mutex_clocklock, c"pthread_mutex_clocklock", clock: c_int, until: Time);
in_front!(release pthread_mutex_unlock, c"pthread_mutex_unlock");
in_front!(acquire pthread_rwlock_rdlock, c"pthread_rwlock_rdlock");
in_front!(acquire pthread_rwlock_wrlock, c"pthread_rwlock_wrlock");
in_front!(acquire pthread_rwlock_tryrdlock, c"pthread_rwlock_tryrdlock");
in_front!(acquire pthread_rwlock_trywrlock, c"pthread_rwlock_trywrlock");
in_front!(acquire pthread_rwlock_timedrdlock, c"pthread_rwlock_timedrdlock", until: Time);
in_front!(acquire pthread_rwlock_timedwrlock, c"pthread_rwlock_timedwrlock", until: Time);
in_front!(acquire pthread_rwlock_clockrdlock, c"pthread_rwlock_clockrdlock", clock: c_int, until: Time);
in_front!(acquire pthread_rwlock_clockwrlock, c"pthread_rwlock_clockwrlock", clock: c_int, until: Time);
in_front!(release pthread_rwlock_unlock, c"pthread_rwlock_unlock");

/// A function that destroys a lock.
macro_rules! destroys {
    ($name:ident, $c_name:literal) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: Lock) -> c_int {
            static BEHIND: Behind = Behind::new($c_name, c"");
            // SAFETY: the C library has a function of this name and type.
            let behind =
                unsafe { transmute::<Lock, unsafe extern "C" fn(Lock) -> c_int>(BEHIND.get()) };
            destroyed(lock as usize);
            // SAFETY: the argument is that of the caller.
            unsafe { behind(lock) }
        }
    };
}

destroys!(pthread_mutex_destroy, c"pthread_mutex_destroy");
destroys!(pthread_rwlock_destroy, c"pthread_rwlock_destroy");

/// A function that waits at a condition: it gives the mutex back meanwhile, and has it again when it
/// returns, whatever it returns.
macro_rules! waits {
    ($name:ident, $c_name:literal, $version:literal $(, $argument:ident: $kind:ty)*) => {
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(condition: *mut c_void, lock: Lock $(, $argument: $kind)*) -> c_int {
            static BEHIND: Behind = Behind::new($c_name, $version);
            // SAFETY: the C library has a function of this name and type.
            let behind = unsafe {
                transmute::<Lock, unsafe extern "C" fn(*mut c_void, Lock $(, $kind)*) -> c_int>(BEHIND.get())
            };
            let mut result = 0;
            let mut wait = || {
                // SAFETY: the arguments are those of the caller.
                result = unsafe { behind(condition, lock $(, $argument)*) };
                0
            };
            release(lock as usize, || acquire(lock as usize, &mut wait));
            result
        }
    };
}

// The C library has two of each: the older one is for conditions of another size.
waits!(pthread_cond_wait, c"pthread_cond_wait", c"GLIBC_2.3.2");
waits!(pthread_cond_timedwait, c"pthread_cond_timedwait", c"GLIBC_2.3.2", until: Time);
waits!(pthread_cond_clockwait, c"pthread_cond_clockwait", c"", clock: c_int, until: Time);

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

extern "C" fn load() {
    begin();
    // SAFETY: the function lives as long as the process.
    unsafe { pthread_atfork(None, None, Some(forked)) };
}

extern "C" fn unload() {
    end();
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOAD: extern "C" fn() = load;

#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;
