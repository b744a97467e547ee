//! Memory that was freed, and is still the process's.

/// Returns freed memory to the operating system, where the allocator keeps it: glibc's does, and has
/// a heap for each thread, of which others take nothing.
pub fn release_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        unsafe extern "C" {
            fn malloc_trim(pad: usize) -> i32;
        }
        // SAFETY: glibc has this function of this type; it may be called by any thread at any time, and
        // touches only memory that nobody has.
        unsafe { malloc_trim(0) };
    }
}
