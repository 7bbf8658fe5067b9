//! `fake-apiserver man`: manual pages, generated from the command line itself. It must not know any subcommand.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man as Page;

use crate::{Failure, output, stage};

/// Print the manual page, or write the pages of all subcommands.
///
/// Read it at once with `fake-apiserver man | man -l -`. With DIR, pages such as `fake-apiserver-ctl-fail.1` are written there:
/// `~/.local/share/man/man1` is a folder that `man` reads.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write a page for each subcommand to this folder.
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

/// Prints the page of the program, or writes all pages.
///
/// # Errors
/// The folder cannot be written to, or standard output is closed.
pub(crate) fn run(arguments: &Man, command: Command) -> Result<(), Failure> {
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        Page::new(command)
            .render(&mut page)
            .map_err(|error| Failure::System("cannot render the manual page".to_owned(), error))?;
        let page = String::from_utf8_lossy(&page).into_owned();
        return stage::block_on(async |stop| output::print(page, &stop).await);
    };
    std::fs::create_dir_all(folder)
        .and_then(|()| clap_mangen::generate_to(command, folder))
        .map_err(|error| Failure::System(format!("cannot write to {}", folder.display()), error))
}
