//! What a process says of itself, and where it runs.

use std::io;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

/// The server's core.
pub(crate) const SERVER: usize = 0;
/// The clients' core.
pub(crate) const CLIENT: usize = 1;

/// Keeps this process, and the threads it will have, on one core. Where there is one only, nothing happens.
pub(crate) fn pin(core: usize) {
    let mut cores = CpuSet::new();
    cores.set(core);
    if sched_setaffinity(None, &cores).is_err() {
        // Measured all the same: the ratio is between two that are disturbed alike.
    }
}

/// Processor time of all threads of this process so far.
pub(crate) fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// What is resident now, in bytes: `VmRSS`.
pub(crate) fn resident() -> io::Result<u64> {
    status("VmRSS:")
}

/// The most that ever was: `VmHWM`. Not `ru_maxrss`, which survives `exec`.
pub(crate) fn peak() -> io::Result<u64> {
    status("VmHWM:")
}

/// From now on [`peak`] is of what comes.
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
