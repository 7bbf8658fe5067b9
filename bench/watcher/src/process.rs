//! Memory, CPU time and core of the current process.

use std::io;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The server's core.
pub(crate) const SERVER: usize = 0;
/// The clients' core.
pub(crate) const CLIENT: usize = 1;

/// Pins this process and its future threads to one core. Does nothing on a single-core machine.
pub(crate) fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if sched_setaffinity(None, &cores).is_err() {
        // Failure is ignored: both sides of the ratio are disturbed alike.
    }
}

/// Returns the CPU time of all threads of this process so far.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Returns the resident memory in bytes: `VmRSS`.
pub(crate) fn resident() -> io::Result<u64> {
    status("VmRSS:")
}

/// Returns the peak resident memory: `VmHWM`. Not `ru_maxrss`, which survives `exec`.
pub(crate) fn peak() -> io::Result<u64> {
    status("VmHWM:")
}

/// Resets [`peak`].
pub(crate) fn forget_peak() -> io::Result<()> {
    std::fs::write("/proc/self/clear_refs", "5")
}

fn status(name: &str) -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let kilobytes = text
        .lines()
        .find_map(|line| line.strip_prefix(name)?.split_whitespace().next())
        .and_then(|number| number.parse::<u64>().ok())
        .ok_or_else(|| io::Error::other(format!("/proc/self/status has no {name}")))?;
    Ok(kilobytes * 1024)
}
