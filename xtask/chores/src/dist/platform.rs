//! The platforms of a release, and what each packaging format calls them. It must not know how a binary is built.

/// How much is known about a platform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// The tests of this repository run on it.
    Tested,
    /// Built by every release and started once, under emulation.
    Built,
    /// It may build; nobody tried.
    Untested,
}

impl State {
    /// Returns the word in the table of the documentation.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Built => "built",
            Self::Untested => "untested",
        }
    }
}

/// A platform that a release may have.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Platform {
    /// Name of the target in Rust.
    pub(super) target: &'static str,
    /// How much is known about it.
    pub(super) state: State,
    /// Tags of a wheel. A static binary needs no C library: any Linux since the kernel of the oldest tag.
    pub(super) wheel: &'static str,
    /// `process.platform` and `process.arch` in Node.
    pub(super) npm: (&'static str, &'static str),
    /// `GOOS` and `GOARCH`; containers and `setup-envtest` use the same names.
    pub(super) go: (&'static str, &'static str),
    /// Folder in the jar: the properties `os.name` and `os.arch` of Java in lower case, Linux's names for processors.
    pub(super) java: &'static str,
    /// Whether `cargo xtask dist` builds it unless told otherwise.
    pub(super) default: bool,
}

/// All platforms, in the order of the documentation.
pub(super) static PLATFORMS: [Platform; 4] = [
    Platform {
        target: "x86_64-unknown-linux-musl",
        state: State::Tested,
        wheel: "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
        npm: ("linux", "x64"),
        go: ("linux", "amd64"),
        java: "linux-x86_64",
        default: true,
    },
    Platform {
        target: "aarch64-unknown-linux-musl",
        state: State::Built,
        wheel: "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
        npm: ("linux", "arm64"),
        go: ("linux", "arm64"),
        java: "linux-aarch64",
        default: true,
    },
    Platform {
        target: "aarch64-apple-darwin",
        state: State::Untested,
        wheel: "macosx_11_0_arm64",
        npm: ("darwin", "arm64"),
        go: ("darwin", "arm64"),
        java: "macos-aarch64",
        default: false,
    },
    Platform {
        target: "x86_64-apple-darwin",
        state: State::Untested,
        wheel: "macosx_10_12_x86_64",
        npm: ("darwin", "x64"),
        go: ("darwin", "amd64"),
        java: "macos-x86_64",
        default: false,
    },
];

/// Returns the platform of a target.
///
/// # Errors
/// No release has it; the error lists the others.
pub(super) fn named(target: &str) -> Result<&'static Platform, String> {
    let found = PLATFORMS.iter().find(|platform| platform.target == target);
    found.ok_or_else(|| {
        let all: Vec<&str> = PLATFORMS.iter().map(|platform| platform.target).collect();
        format!("no platform {target}: name {}", all.join(", "))
    })
}

/// What the header of an executable shows.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Executable {
    /// Platform of its system and processor.
    pub(super) platform: &'static Platform,
    /// Whether it needs a loader, and so the C library of the machine. Every program of macOS does.
    pub(super) dynamic: bool,
}

/// Reads the header of an executable: ELF or Mach-O, 64 bits, little-endian.
///
/// # Errors
/// It is neither, or for another processor.
pub(super) fn executable(bytes: &[u8]) -> Result<Executable, String> {
    const ELF: &[u8] = b"\x7fELF\x02\x01";
    const MACH_O: &[u8] = b"\xcf\xfa\xed\xfe";
    let half = |at: usize| Some(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?));
    let (target, dynamic) = if bytes.starts_with(ELF) {
        let target = match half(18) {
            Some(0x3e) => "x86_64-unknown-linux-musl",
            Some(0xb7) => "aarch64-unknown-linux-musl",
            _ => return Err("an ELF file for a processor that no release has".to_owned()),
        };
        (target, has_loader(bytes))
    } else if bytes.starts_with(MACH_O) {
        let target = match bytes.get(4..8) {
            Some(b"\x07\0\0\x01") => "x86_64-apple-darwin",
            Some(b"\x0c\0\0\x01") => "aarch64-apple-darwin",
            _ => return Err("a Mach-O file for a processor that no release has".to_owned()),
        };
        (target, true)
    } else {
        return Err("neither a 64-bit ELF file nor a Mach-O file".to_owned());
    };
    Ok(Executable {
        platform: named(target)?,
        dynamic,
    })
}

/// Whether an ELF file has a program header of type `PT_INTERP`. A truncated file has none.
fn has_loader(bytes: &[u8]) -> bool {
    const PT_INTERP: [u8; 4] = 3_u32.to_le_bytes();
    let field = |at: usize, length: usize| -> Option<u64> {
        let mut value = [0; 8];
        value
            .get_mut(..length)?
            .copy_from_slice(bytes.get(at..at.checked_add(length)?)?);
        Some(u64::from_le_bytes(value))
    };
    let (Some(start), Some(size), Some(count)) = (field(32, 8), field(54, 2), field(56, 2)) else {
        return false;
    };
    (0..count).any(|nth| {
        let at = start
            .checked_add(nth * size)
            .and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| bytes.get(at..at.checked_add(4)?)) == Some(&PT_INTERP)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::root;

    /// An ELF file with a processor and one program header.
    fn elf(machine: u8, header: u8) -> Vec<u8> {
        let mut bytes = vec![0; 120];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[18] = machine;
        (bytes[32], bytes[54], bytes[56], bytes[64]) = (64, 56, 1, header);
        bytes
    }

    #[test]
    fn the_platform_of_a_binary_is_in_its_header() {
        let of = |bytes: &[u8]| executable(bytes).map(|read| (read.platform.target, read.dynamic));
        assert_eq!(of(&elf(0x3e, 1)), Ok(("x86_64-unknown-linux-musl", false)));
        assert_eq!(of(&elf(0xb7, 3)), Ok(("aarch64-unknown-linux-musl", true)));
        assert_eq!(
            of(b"\xcf\xfa\xed\xfe\x0c\0\0\x01"),
            Ok(("aarch64-apple-darwin", true))
        );
        assert!(of(&elf(0x28, 1)).is_err());
        assert!(of(b"#!/bin/sh").is_err());
        // Nothing panics on a file that ends early.
        let whole = elf(0x3e, 3);
        assert!(
            (0..whole.len())
                .all(|length| of(&whole[..length]) != Ok(("x86_64-unknown-linux-musl", true)) || length > 67)
        );
    }

    #[test]
    fn the_documentation_has_every_platform_with_its_state() {
        let page = std::fs::read_to_string(root().join("docs/install.md")).unwrap();
        for platform in &PLATFORMS {
            let row = page
                .lines()
                .find(|line| line.contains(&format!("`{}`", platform.target)));
            let row = row.unwrap_or_else(|| panic!("docs/install.md has no row for {}", platform.target));
            let word = format!("| {} ", platform.state.word());
            assert!(
                row.contains(&word),
                "docs/install.md has another state than {word}: {row}"
            );
        }
    }
}
