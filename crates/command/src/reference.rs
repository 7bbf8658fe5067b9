//! How long our watcher needs for a scenario. Also a part of the build script and of `cargo xtask conformance`, which cannot depend
//! on this package; it must not know files.

/// Milliseconds of virtual time that our watcher needs for a scenario, by the last line of its transcript that has a time:
/// `72.378s …`. Zero: no line has one.
pub(crate) fn reference_ms(transcript: &str) -> u64 {
    let time = |line: &str| {
        let (seconds, millis) = line
            .split_whitespace()
            .next()?
            .strip_suffix('s')?
            .split_once('.')?;
        Some(seconds.parse::<u64>().ok()? * 1000 + millis.parse::<u64>().ok()?)
    };
    transcript.lines().rev().find_map(time).unwrap_or(0)
}
